"""Proves what clients of Socket.IO are told, and who is not let in."""

# The library says nothing of its types:
# pyright: reportMissingTypeStubs=false

from __future__ import annotations

import json
from typing import Any

import httpx
import msgspec
import pytest

from actors.messages.deliveries import Delivery
from actors.messages.inbound import Inbound
from actors.transport import Earlier
from connectors.web.eliza.platform import WebConfig, WebKeyConfig
from runtime.secret import Secret
from tests.fakes.web.eliza import ANNA, SAM, ZERO, ZOE, draft, open_web, reply
from tests.fakes.web.eliza_client import Client, client_of, on

CLIENT_ID = "33333333-3333-3333-3333-333333333333"


def sending(channel: str, text: str) -> dict[str, Any]:
    return {
        "channelId": channel,
        "senderId": ZOE,
        "senderName": "Zoe",
        "message": text,
        "messageServerId": ZERO,
        "messageId": CLIENT_ID,
    }


async def test_who_joins_is_told_what_is_said_and_who_speaks_gets_an_ack() -> None:
    async with open_web() as bed, client_of(bed) as zoe:
        channel = await bed.channel(ZOE, SAM, ANNA)
        async with client_of(bed, SAM) as sam:
            for each in (zoe, sam):
                await on(bed, each.next, "connection_established")
                join = {"type": 1, "payload": {"roomId": channel}}
                await on(bed, each.emit, "message", join)
                joined = await on(bed, each.next, "room_joined")
                assert joined["channelId"] == channel
            said = {"type": 2, "payload": sending(channel, "hello")}
            await on(bed, zoe.emit, "message", said)
            own = await on(bed, zoe.next, "messageBroadcast")
            ack = await on(bed, zoe.next, "messageAck")
            other = await on(bed, sam.next, "messageBroadcast")
            assert own["clientMessageId"] == ack["clientMessageId"] == CLIENT_ID
            assert "clientMessageId" not in other
            assert own["id"] == ack["messageId"] == other["id"]
            assert (other["text"], other["senderName"]) == ("hello", "Zoe")
            # Never null: clients go through the lists unguarded.
            kinds = (other["thought"], other["actions"], other["attachments"])
            assert kinds == ("", [], [])
            for name in ("channelId", "roomId"):
                assert other[name] == channel
            assert other["serverId"] == other["messageServerId"] == ZERO
            assert (await bed.ingress.next()).text == "hello"


async def test_an_answer_comes_in_pieces_and_then_whole_under_one_id() -> None:
    async with open_web() as bed, client_of(bed) as zoe:
        channel = await bed.channel(ZOE, ANNA)
        await on(bed, zoe.emit, "1", {"channelId": channel})
        await on(bed, zoe.next, "channel_joined")
        await on(bed, zoe.emit, "2", sending(channel, "hello"))
        await on(bed, zoe.next, "messageAck")
        inbound = await bed.ingress.next()
        for piece in ("good ", "day"):
            bed.transport.show_draft(draft(inbound, piece))
        receipt = await bed.answer(inbound, "good day")
        pieces = [await on(bed, zoe.next, "messageStreamChunk") for _ in range(2)]
        assert [each["index"] for each in pieces] == [0, 1]
        assert "".join(each["chunk"] for each in pieces) == "good day"
        whole = await on(bed, zoe.next, "messageBroadcast")
        assert whole["id"] == receipt == pieces[0]["messageId"]
        assert (whole["text"], whole["senderId"]) == ("good day", ANNA)
        bed.transport.show_draft(draft(inbound, "and", "ben"))
        await bed.transport.settle(inbound, "dead")
        broken = await on(bed, zoe.next, "messageStreamError")
        assert broken["partialText"] == "and"


def ending(inbound: Inbound, **rest: Any) -> Delivery:
    return msgspec.structs.replace(reply(inbound, "x"), **rest)


ENDS: dict[str, tuple[dict[str, Any], str]] = {
    "answered": ({"text": "good day"}, "completed"),
    "silent": ({"text": "", "kind": "silence"}, "completed"),
    "failed": ({"text": "it failed", "trouble": "broken"}, "failed"),
    "unheard": (
        {"text": "", "kind": "silence", "ends": "dropped:not_addressed"},
        "failed",
    ),
}


@pytest.mark.parametrize("how", ENDS)
async def test_a_turn_that_ended_lets_clients_write_again(how: str) -> None:
    fields, status = ENDS[how]
    async with open_web() as bed, client_of(bed) as zoe:
        channel = await bed.channel(ZOE, ANNA)
        await on(bed, zoe.emit, "1", {"channelId": channel})
        await on(bed, zoe.next, "channel_joined")
        await on(bed, zoe.emit, "2", sending(channel, "hello"))
        ack = await on(bed, zoe.next, "messageAck")
        inbound = await bed.ingress.next()
        note = ending(inbound, id="n", text="looking", is_aside=True)
        later = ending(inbound, id="w", text="again soon", trouble="waiting")
        for each in (note, later, *[ending(inbound, **fields)] * 2):
            await bed.transport.deliver(each)
        await bed.transport.settle(inbound, "replied:ok")
        if fields["text"]:
            told = await on(bed, zoe.next, "messageBroadcast")
            assert (told["attachments"], told["actions"]) == ([], ["REPLY"])
        told = await on(bed, zoe.next, "messageComplete")
        assert told["messageId"] == ack["messageId"]
        assert (told["channelId"], told["serverId"]) == (channel, ZERO)
        assert told["status"] == status
        control = await on(bed, zoe.next, "controlMessage")
        assert (control["action"], control["channelId"]) == ("enable_input", channel)
        await on(bed, zoe.emit, "message", {"type": 3})
        await on(bed, zoe.emit, "message", {"type": 3})
        assert not await on(bed, zoe.before, "messageError", "messageComplete")


@pytest.mark.parametrize(
    ("reason", "status"), [("dropped:not_addressed", "failed"), ("dead", "failed")]
)
async def test_a_message_without_an_answer_lets_clients_write_again(
    reason: str, status: str
) -> None:
    async with open_web() as bed, client_of(bed) as zoe:
        channel = await bed.channel(ZOE, ANNA)
        await on(bed, zoe.emit, "1", {"channelId": channel})
        await on(bed, zoe.emit, "2", sending(channel, "hello"))
        inbound = await bed.ingress.next()
        await bed.transport.settle(inbound, reason)
        told = await on(bed, zoe.next, "messageComplete")
        assert (told["status"], told["error"]) == (status, reason)
        assert (await on(bed, zoe.next, "controlMessage"))["action"] == "enable_input"


async def test_what_nobody_heard_before_a_restart_lets_clients_write_again() -> None:
    async with open_web() as bed, client_of(bed) as zoe:
        channel = await bed.channel(ZOE, SAM, ANNA)
        await on(bed, zoe.emit, "1", {"channelId": channel})
        await on(bed, zoe.emit, "2", sending(channel, "hello"))
        ack = await on(bed, zoe.next, "messageAck")
        inbound = await bed.ingress.next()
        before = msgspec.structs.replace(inbound, id="b", correlation_id="b")
        await bed.transport.settle(before, "dropped:not_addressed")
        told = await on(bed, zoe.next, "messageComplete")
        assert told["messageId"] == ack["messageId"]
        assert told["error"] == "dropped:not_addressed"
        assert (await on(bed, zoe.next, "controlMessage"))["action"] == "enable_input"


async def test_a_message_that_comes_again_after_its_end_is_complete_again() -> None:
    async with open_web() as bed, client_of(bed) as zoe:
        channel = await bed.channel(ZOE, SAM, ANNA)
        await on(bed, zoe.emit, "1", {"channelId": channel})
        await on(bed, zoe.emit, "2", sending(channel, "hello"))
        inbound = await bed.ingress.next()
        before = msgspec.structs.replace(inbound, id="b", correlation_id="b")
        key = (inbound.address.connector, inbound.platform_id)
        bed.ingress.answered[key] = Earlier(before, "dropped:not_addressed", ())
        await on(bed, zoe.emit, "2", sending(channel, "hello"))
        told = await on(bed, zoe.next, "messageComplete")
        assert (told["messageId"], told["status"]) == (inbound.platform_id, "failed")


async def test_a_client_that_polls_holds_up_no_end(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async with open_web() as bed:
        zoe = Client(bed)
        await on(bed, zoe.connect, ZOE, "polling")
        await on(bed, zoe.next, "connection_established")
        bed.serving.cancel()
        await bed.ended.wait()
        await on(bed, zoe.close)
    assert [x.getMessage() for x in caplog.records if x.levelname == "ERROR"] == []


async def test_what_changes_in_a_channel_is_told_and_its_end() -> None:
    async with open_web() as bed, client_of(bed) as zoe:
        channel = await bed.channel(ZOE)
        said = await bed.say(channel, "hello")
        await on(bed, zoe.emit, "1", {"channelId": channel})
        await on(bed, zoe.next, "channel_joined")
        path = f"/api/messaging/channels/{channel}"
        await bed.ask("PATCH", path, json={"name": "new"})
        updated = await on(bed, zoe.next, "channelUpdated")
        assert updated["updates"]["name"] == "new"
        await bed.ask("DELETE", f"{path}/messages/{said['id']}")
        assert (await on(bed, zoe.next, "messageDeleted"))["messageId"] == said["id"]
        await bed.ask("DELETE", f"{path}/messages")
        assert (await on(bed, zoe.next, "channelCleared"))["channelId"] == channel
        await bed.ask("DELETE", path)
        assert (await on(bed, zoe.next, "channelDeleted"))["channelId"] == channel


async def test_a_channel_is_made_by_who_speaks_first_and_nonsense_is_refused() -> None:
    async with open_web() as bed, client_of(bed) as zoe:
        meant = {"isDm": True, "targetUserId": ANNA}
        said = sending(CLIENT_ID, "hello") | {"metadata": meant}
        await on(bed, zoe.emit, "2", said)
        await on(bed, zoe.next, "messageAck")
        inbound = await bed.ingress.next()
        assert (inbound.agent, inbound.address.chat) == ("anna", CLIENT_ID)
        for nonsense in ({"type": 5}, "text", {"type": 2, "payload": {"x": 1}}):
            await on(bed, zoe.emit, "message", nonsense)
            assert (await on(bed, zoe.next, "messageError"))["error"]
        await on(bed, zoe.emit, "subscribe_logs", {})
        told = await on(bed, zoe.next, "log_subscription_confirmed")
        assert told["subscribed"] is True


def nested(levels: int) -> list[Any]:
    return [nested(levels - 1)] if levels else []


@pytest.mark.parametrize(
    "nonsense",
    [
        {"type": [1]},
        {"type": 2, "payload": {"message": "\ud800"}},
        {"type": 2, "payload": {"senderName": "\ud800"}},
        {"type": 2, "payload": {"metadata": {"\ud800": 1}}},
        {"type": 2, "payload": {"metadata": {"a": nested(300)}}},
    ],
)
async def test_what_one_client_sends_stops_nothing_for_others(
    nonsense: dict[str, Any],
) -> None:
    async with open_web() as bed, client_of(bed) as zoe:
        channel = await bed.channel(ZOE, SAM)
        await on(bed, zoe.emit, "1", {"channelId": channel})
        await on(bed, zoe.next, "channel_joined")
        if "payload" in nonsense:
            nonsense["payload"] = sending(channel, "hello") | nonsense["payload"]
        await on(bed, zoe.emit, "message", nonsense)
        assert (await on(bed, zoe.next, "messageError"))["error"]
        await on(bed, zoe.emit, "2", sending(channel, "are you there?"))
        assert await on(bed, zoe.next, "messageBroadcast")


async def test_numbers_that_json_has_not_are_told_to_nobody() -> None:
    async with open_web() as bed, client_of(bed) as zoe:
        channel = await bed.channel(ZOE, SAM)
        await on(bed, zoe.emit, "1", {"channelId": channel})
        await on(bed, zoe.next, "channel_joined")
        odd = {"metadata": {"a": float("nan"), "b": [float("inf")]}}
        await on(bed, zoe.emit, "2", sending(channel, "hello") | odd)
        told = await on(bed, zoe.next, "messageBroadcast")
        assert told["metadata"] == {"a": None, "b": [None]}


@pytest.mark.parametrize(
    ("entity", "key", "why"),
    [
        ("", "the key of all", "entityId"),
        (ZOE, "another key", "API Key"),
        (SAM, "the key of zoe", "speaks for"),
    ],
)
async def test_who_may_not_connect_is_told_why(entity: str, key: str, why: str) -> None:
    own = WebKeyConfig(key=Secret("the key of zoe"), entity=ZOE)
    config = WebConfig(port=0, api_key=Secret("the key of all"), keys={"zoe": own})
    async with open_web(config) as bed:
        path = "/socket.io/?EIO=4&transport=polling"
        opened = (await bed.client.get(path)).text
        here = f"{path}&sid={json.loads(opened[1:])['sid']}"
        auth = json.dumps({"entityId": entity, "apiKey": key})
        await bed.client.post(here, content=f"40{auth}")
        answer = (await bed.client.get(here)).text
        assert answer.startswith("44")
        assert why in answer


@pytest.mark.parametrize(
    ("origin", "status"),
    [("", 200), ("own", 200), ("https://a.example", 200), ("https://b.example", 400)],
)
async def test_only_own_pages_and_listed_ones_connect(origin: str, status: int) -> None:
    async with open_web(WebConfig(port=0, origins=("https://a.example",))) as bed:
        named = bed.url if origin == "own" else origin
        headers = {"Origin": named} if named else {}
        path = "/socket.io/?EIO=4&transport=polling"
        assert (await bed.client.get(path, headers=headers)).status_code == status


async def test_one_key_leaves_connections_to_others() -> None:
    keys = {
        name: WebKeyConfig(key=Secret(f"the key of {name}")) for name in ("one", "two")
    }
    async with open_web(WebConfig(port=0, max_connections=4, keys=keys)) as bed:
        path, told = "/socket.io/?EIO=4&transport=polling", list[bool]()
        for name in ("one", "one", "one", "one", "two"):
            opened = await bed.client.get(path)
            sid = json.loads(opened.text[1:])["sid"]
            auth = json.dumps({"entityId": ZOE, "apiKey": f"the key of {name}"})
            await bed.client.post(f"{path}&sid={sid}", content=f"40{auth}")
            answer = await bed.client.get(f"{path}&sid={sid}")
            told.append("authenticated" in answer.text)
    assert told == [True, True, True, False, True]


async def test_strangers_who_open_sessions_keep_nobody_out() -> None:
    elsewhere = httpx.AsyncHTTPTransport(local_address="127.0.0.2")
    async with (
        open_web(WebConfig(port=0, max_connections=2)) as bed,
        httpx.AsyncClient(base_url=bed.client.base_url, transport=elsewhere) as other,
    ):
        path = "/socket.io/?EIO=4&transport=polling"
        for _ in range(10):  # more strangers than there may be clients
            assert (await bed.client.get(path)).status_code == 200
        for client in (bed.client, other):
            opened = await client.get(path)
            sid = json.loads(opened.text[1:])["sid"]
            auth = json.dumps({"entityId": ZOE})
            await client.post(f"{path}&sid={sid}", content=f"40{auth}")
            assert "authenticated" in (await client.get(f"{path}&sid={sid}")).text
        refused = await bed.client.get(path)
        assert (refused.status_code, refused.headers["retry-after"]) == (503, "30")
