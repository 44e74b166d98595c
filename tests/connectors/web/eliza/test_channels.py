"""Proves what clients are told of servers, channels and who is in them."""

from __future__ import annotations

import pytest

from tests.fakes.store.in_memory import MemoryStore
from tests.fakes.web.eliza import ANNA, API, BEN, SAM, ZERO, ZOE, open_web

NOBODY = "11111111-1111-1111-1111-111111111111"


async def test_there_is_a_default_server_and_all_agents_are_on_it() -> None:
    async with open_web() as bed:
        servers = (await bed.ask("GET", f"{API}/message-servers"))["messageServers"]
        assert [each["id"] for each in servers] == [ZERO]
        current = await bed.ask("GET", f"{API}/message-server/current")
        assert current["messageServerId"] == ZERO
        agents = await bed.ask("GET", f"{API}/message-servers/{ZERO}/agents")
        assert set(agents["agents"]) == {ANNA, BEN}


async def test_a_channel_is_made_and_shown_with_its_participants() -> None:
    async with open_web() as bed:
        channel = await bed.channel(ZOE, ANNA)
        shown = await bed.ask("GET", f"{API}/channels/{channel}/details")
        assert shown["type"] == "GROUP"
        assert shown["messageServerId"] == ZERO
        assert shown["metadata"]["participantCentralUserIds"] == [ZOE, ANNA]
        inside = await bed.ask("GET", f"{API}/channels/{channel}/participants")
        assert inside == [ZOE, ANNA]
        listed = await bed.ask("GET", f"{API}/message-servers/{ZERO}/channels")
        assert [each["id"] for each in listed["channels"]] == [channel]


async def test_a_channel_without_participants_is_its_makers() -> None:
    async with open_web() as bed:
        made = await bed.ask(
            "POST",
            f"{API}/channels",
            json={"name": "mine", "type": "GROUP"},
            headers={"X-Entity-Id": ZOE},
        )
        assert made["metadata"]["participantCentralUserIds"] == [ZOE]


async def test_two_have_one_channel_however_often_they_ask() -> None:
    async with open_web() as bed:
        ask = {"currentUserId": ZOE, "targetUserId": ANNA, "dmServerId": NOBODY}
        first = await bed.ask("GET", f"{API}/dm-channel", params=ask)
        again = {"currentUserId": ANNA, "targetUserId": ZOE}
        second = await bed.ask("GET", f"{API}/dm-channel", params=again)
        assert first == second
        assert first["type"] == "DM"
        assert first["name"] == f"DM-{'-'.join(sorted((ZOE, ANNA)))}"
        assert {first["metadata"][key] for key in ("user1", "user2")} == {ZOE, ANNA}
        assert first["messageServerId"] == ZERO


async def test_participants_come_and_go_and_nobody_else_is_dropped() -> None:
    async with open_web() as bed:
        channel = await bed.channel(ZOE, ANNA)
        path = f"{API}/channels/{channel}"
        await bed.ask("POST", f"{path}/agents", json={"agentId": BEN})
        shown = await bed.ask("GET", f"{path}/details")
        inside = shown["metadata"]["participantCentralUserIds"]
        assert inside == [ZOE, ANNA, BEN]
        changed = await bed.ask(
            "PATCH", path, json={"participantCentralUserIds": [*inside, SAM]}
        )
        assert changed["metadata"]["participantCentralUserIds"][-1] == SAM
        await bed.ask("DELETE", f"{path}/agents/{BEN}")
        left = await bed.ask("GET", f"{path}/participants")
        assert left == [ZOE, ANNA, SAM]
        again = await bed.refused("DELETE", f"{path}/agents/{BEN}")
        assert again == (404, "PARTICIPANT_NOT_FOUND")


async def test_a_server_is_made_filled_and_deleted() -> None:
    async with open_web() as bed:
        asked = {"name": "guild", "sourceType": "discord", "sourceId": "g1"}
        made = await bed.ask("POST", f"{API}/message-servers", json=asked)
        assert made["sourceId"] == "g1"
        path = f"{API}/message-servers/{made['id']}"
        await bed.ask("POST", f"{path}/agents", json={"agentId": ANNA})
        of_anna = await bed.ask("GET", f"{API}/agents/{ANNA}/message-servers")
        assert of_anna["messageServers"] == [ZERO, made["id"]]
        sync = {"channels": [{"name": "a", "type": "GROUP", "sourceId": "1"}]}
        synced = await bed.ask("POST", f"{path}/sync-channels", json=sync)
        assert await bed.ask("POST", f"{path}/sync-channels", json=sync) == synced
        (channel,) = synced["channels"]
        await bed.ask("DELETE", f"{path}/agents/{ANNA}")
        assert (await bed.ask("GET", f"{path}/agents"))["agents"] == []
        await bed.ask("DELETE", path)
        gone = f"{API}/channels/{channel['id']}/details"
        assert await bed.refused("GET", gone) == (404, "CHANNEL_NOT_FOUND")


async def test_old_names_of_routes_and_fields_are_still_understood() -> None:
    async with open_web() as bed:
        asked = {"name": "old", "server_id": ZERO, "participantIds": [ZOE]}
        made = await bed.ask("POST", f"{API}/central-channels", json=asked)
        found = await bed.ask("GET", f"{API}/central-servers/{ZERO}/channels")
        assert [each["id"] for each in found["channels"]] == [made["id"]]


async def test_all_is_there_after_a_restart() -> None:
    store = MemoryStore()
    async with open_web(store=store) as bed:
        channel = await bed.channel(ZOE, ANNA)
        await bed.say(channel, "hello")
    async with open_web(store=store.reopened()) as bed:
        assert [each["content"] for each in await bed.messages(channel)] == ["hello"]


@pytest.mark.parametrize(
    ("method", "path", "body", "expected"),
    [
        ("GET", f"{API}/channels/nonsense/details", None, (400, "VALIDATION_ERROR")),
        ("GET", f"{API}/channels/{NOBODY}/details", None, (404, "CHANNEL_NOT_FOUND")),
        ("POST", f"{API}/channels", {}, (400, "VALIDATION_ERROR")),
        (
            "POST",
            f"{API}/channels",
            {"name": "x", "type": "CAVE"},
            (400, "VALIDATION_ERROR"),
        ),
        (
            "POST",
            f"{API}/channels",
            {"name": "x", "message_server_id": NOBODY},
            (404, "SERVER_NOT_FOUND"),
        ),
        (
            "GET",
            f"{API}/dm-channel?currentUserId={ZOE}",
            None,
            (400, "VALIDATION_ERROR"),
        ),
        ("GET", "/api/nothing", None, (404, "NOT_FOUND")),
        ("PUT", f"{API}/channels", {}, (405, "METHOD_NOT_ALLOWED")),
        ("DELETE", f"{API}/message-servers/{ZERO}", None, (400, "VALIDATION_ERROR")),
    ],
)
async def test_a_bad_request_is_told_in_one_shape(
    method: str, path: str, body: object, expected: tuple[int, str]
) -> None:
    async with open_web() as bed:
        assert await bed.refused(method, path, json=body) == expected
