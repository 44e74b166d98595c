"""Proves that rooms and worlds are the channels and servers that there are."""

from __future__ import annotations

from connectors.web.eliza.messages import own_id
from tests.fakes.web.eliza import ANNA, API, BEN, ZERO, ZOE, open_web


async def test_a_room_is_a_channel_of_the_agent_and_whoever_made_it() -> None:
    async with open_web() as bed:
        asked = {"name": "ours", "type": "DM", "metadata": {"a": 1}}
        headers = {"X-Entity-Id": ZOE}
        path = f"/api/memory/{ANNA}/rooms"
        made = await bed.ask("POST", path, json=asked, headers=headers)
        channel = await bed.ask("GET", f"{API}/channels/{made['channelId']}/details")
        assert channel["metadata"]["participantCentralUserIds"] == [ZOE, ANNA]
        assert made["id"] == own_id(ANNA, channel["id"])
        (listed,) = (await bed.ask("GET", path))["rooms"]
        assert listed == made
        shown = await bed.ask("GET", f"{path}/{made['id']}")
        assert shown["worldName"] == "Default Server"
        refused = await bed.refused("GET", f"{path}/{ZERO}")
        assert refused == (404, "ROOM_NOT_FOUND")


async def test_agents_enter_worlds_by_either_body() -> None:
    async with open_web() as bed:
        worlds = (await bed.ask("GET", "/api/agents/worlds"))["worlds"]
        assert {each["id"] for each in worlds} == {
            own_id(each, ZERO) for each in (ANNA, BEN)
        }
        path = f"/api/agents/{ANNA}/worlds"
        made = (await bed.ask("POST", path, json={"name": "guild"}))["world"]
        server = made["messageServerId"]
        # The client names a world: here by what Anna calls it, for Ben.
        asked = {"worldId": made["id"]}
        entered = await bed.ask("POST", f"/api/agents/{BEN}/worlds", json=asked)
        assert entered["world"]["messageServerId"] == server
        agents = await bed.ask("GET", f"{API}/message-servers/{server}/agents")
        assert agents["agents"] == [ANNA, BEN]
        changed = await bed.ask(
            "PATCH", f"{path}/{made['id']}", json={"settings": {"quiet": True}}
        )
        assert changed["settings"] == {"quiet": True}
        named = await bed.ask("PATCH", f"{path}/{server}", json={"name": "other"})
        assert named["world"]["name"] == "other"
        assert named["world"]["metadata"] == {"settings": {"quiet": True}}


async def test_a_group_is_a_channel_for_the_agents_of_a_server() -> None:
    async with open_web() as bed:
        path = f"/api/memory/groups/{ZERO}"
        by_client = await bed.ask(
            "POST", path, json={"name": "all", "description": "x"}
        )
        assert by_client["worldId"] == own_id(ANNA, ZERO)
        assert len(by_client["rooms"]) == 2
        asked = {"name": "some", "agentIds": [BEN]}
        by_server = await bed.ask("POST", path, json=asked)
        assert [each["agentId"] for each in by_server] == [BEN]
        assert by_server[0]["metadata"] == {}
        assert (await bed.client.delete(path)).status_code == 204
        assert (await bed.ask("GET", f"/api/memory/{BEN}/rooms"))["rooms"] == []


async def test_a_group_with_an_agent_that_is_not_known_seats_nobody() -> None:
    async with open_web() as bed:
        asked = {"name": "guild"}
        path = f"/api/agents/{ANNA}/worlds"
        server = (await bed.ask("POST", path, json=asked))["world"]["messageServerId"]
        group = f"/api/memory/groups/{server}"
        some = {"name": "some", "agentIds": [BEN, ZOE]}
        refused = await bed.refused("POST", group, json=some)
        assert refused[0] == 404
        agents = await bed.ask("GET", f"{API}/message-servers/{server}/agents")
        assert agents["agents"] == [ANNA]
        await bed.ask("POST", group, json=some | {"agentIds": [BEN]})
        agents = await bed.ask("GET", f"{API}/message-servers/{server}/agents")
        assert agents["agents"] == [ANNA, BEN]


async def test_the_words_of_a_group_are_deleted_for_everybody() -> None:
    async with open_web() as bed:
        channel = await bed.channel(ZOE, ANNA, BEN)
        await bed.say(channel, "hello")
        cleared = await bed.ask("DELETE", f"/api/memory/groups/{ZERO}/memories")
        assert cleared["deleted"] == 2  # what two agents remembered
        assert await bed.messages(channel) == []
