"""Proves what is said, kept, answered, changed and forgotten in channels."""

from __future__ import annotations

import json

import msgspec
import pytest
import trio

from actors.errors import DeliveryBusyError, OverloadedError, SenderRefusedError
from connectors.web.eliza.platform import WebConfig
from tests.fakes.web.eliza import ANNA, API, BEN, SAM, ZERO, ZOE, open_web, reply

MESSAGE = "22222222-2222-2222-2222-222222222222"


async def test_a_message_is_handed_in_kept_and_shown_in_both_spellings() -> None:
    async with open_web() as bed:
        channel = await bed.channel(ZOE, ANNA, kind="DM")
        said = await bed.say(channel, "hello", metadata={"userName": "Zoe"})
        inbound = await bed.ingress.next()
        assert (inbound.text, inbound.sender_id) == ("hello", ZOE)
        assert (inbound.sender_name, inbound.agent) == ("Zoe", "anna")
        assert inbound.is_direct
        assert inbound.address.chat == channel
        assert inbound.platform_id == said["id"]
        assert said["author_id"] == said["authorId"] == ZOE
        assert said["channelId"] == said["channel_id"] == channel
        assert said["createdAt"].endswith("Z")
        assert (await bed.messages(channel))[0]["id"] == said["id"]


async def test_in_a_room_all_agents_there_hear_and_one_may_be_meant() -> None:
    async with open_web() as bed:
        channel = await bed.channel(ZOE, SAM, ANNA, BEN)
        await bed.say(channel, "hello", metadata={"targetAgentId": BEN})
        inbound = await bed.ingress.next()
        assert not inbound.is_direct
        assert inbound.present == ("anna", "ben")
        assert inbound.mentions == ("ben",)


@pytest.mark.parametrize(
    ("metadata", "kind"), [({"targetAgentId": BEN}, "DM"), ({}, "GROUP")]
)
async def test_a_message_makes_the_channel_that_it_is_for(
    metadata: dict[str, str], kind: str
) -> None:
    async with open_web() as bed:
        await bed.say(MESSAGE, "hello", metadata=metadata)
        made = await bed.ask("GET", f"{API}/channels/{MESSAGE}/details")
        found = await bed.ask("GET", f"{API}/channels/{MESSAGE}/participants")
        assert made["type"] == kind
        assert set(found) == {ZOE, *metadata.values()}
        assert len(await bed.messages(MESSAGE)) == 1


async def test_an_answer_stands_in_its_channel_once() -> None:
    async with open_web() as bed:
        channel = await bed.channel(ZOE, ANNA)
        said = await bed.say(channel, "hello")
        inbound = await bed.ingress.next()
        first = await bed.answer(inbound, "hi")
        assert await bed.answer(inbound, "hi") == first
        newest, oldest = await bed.messages(channel)
        assert newest["id"] == first
        assert newest["content"] == "hi"
        assert newest["authorId"] == ANNA
        assert newest["source_type"] == "agent_response"
        assert newest["in_reply_to_message_id"] == said["id"] == oldest["id"]


async def test_what_nobody_here_can_answer_is_kept_and_not_handed_in() -> None:
    async with open_web() as bed:
        channel = await bed.channel(ZOE, SAM)
        await bed.say(channel, "hello")
        assert len(await bed.messages(channel)) == 1
        assert bed.ingress.accepted == []
        asked = {"content": "x", "author_id": ZOE, "transport": "http"}
        path = f"{API}/channels/{channel}/messages"
        assert await bed.refused("POST", path, json=asked) == (400, "NO_AGENT")


async def test_a_message_sent_again_under_its_id_counts_once() -> None:
    async with open_web() as bed:
        channel = await bed.channel(ZOE, ANNA)
        for _ in range(2):
            said = await bed.say(channel, "hello", messageId=MESSAGE)
            assert said["id"] == MESSAGE
        assert len(bed.ingress.accepted) == 1
        assert len(await bed.messages(channel)) == 1


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (OverloadedError("too much"), (429, "SERVICE_OVERLOADED")),
        (SenderRefusedError("you may not write here"), (403, "FORBIDDEN")),
    ],
)
async def test_what_was_not_taken_is_not_kept(
    error: Exception, expected: tuple[int, str]
) -> None:
    async with open_web() as bed:
        channel = await bed.channel(ZOE, ANNA)
        bed.ingress.error = error
        asked = {"content": "hello", "author_id": ZOE, "messageId": MESSAGE}
        path = f"{API}/channels/{channel}/messages"
        assert await bed.refused("POST", path, json=asked) == expected
        assert await bed.messages(channel) == []
        bed.ingress.error = None
        await bed.ask("POST", path, json=asked)
        assert len(await bed.messages(channel)) == 1


async def test_pages_go_back_in_time_in_ms_and_in_iso() -> None:
    async with open_web() as bed:
        channel = await bed.channel(ZOE)
        for number in range(5):
            await bed.say(channel, f"{number}")
        newest = await bed.messages(channel, limit=2)
        assert [each["content"] for each in newest] == ["4", "3"]
        for before in (newest[-1]["created_at"], newest[-1]["createdAt"]):
            older = await bed.messages(channel, limit=2, before=before)
            assert [each["content"] for each in older] == ["2", "1"]
        assert await bed.refused(
            "GET", f"{API}/channels/{channel}/messages?before=soon"
        ) == (400, "VALIDATION_ERROR")


async def test_messages_are_shown_changed_sought_and_deleted() -> None:
    async with open_web() as bed:
        channel = await bed.channel(ZOE)
        said = await bed.say(channel, "Hello World")
        await bed.say(channel, "goodbye")
        path = f"{API}/messages/{said['id']}"
        assert (await bed.ask("GET", path))["content"] == "Hello World"
        await bed.ask("PATCH", path, json={"content": "Hello Moon"})
        found = await bed.ask("POST", f"{API}/messages/search", json={"query": "MOON"})
        assert [each["id"] for each in found["messages"]] == [said["id"]]
        await bed.ask("DELETE", f"{API}/channels/{channel}/messages/{said['id']}")
        assert await bed.refused("GET", path) == (404, "MESSAGE_NOT_FOUND")
        assert bed.ingress.withdrawn == [("web", said["id"])], "nobody works on it"
        await bed.ask("DELETE", f"{API}/channels/{channel}/messages")
        assert await bed.messages(channel) == []


async def test_old_and_surplus_messages_are_forgotten() -> None:
    config = WebConfig(port=0, keep_messages=3)
    async with open_web(config) as bed:
        channel = await bed.channel(ZOE)
        for number in range(5):
            await bed.say(channel, f"{number}")
        assert await bed.transport.services.tidy() == 2
        left = [each["content"] for each in await bed.messages(channel)]
        assert left == ["4", "3", "2"]


async def test_http_waits_for_the_whole_answer() -> None:
    async with open_web() as bed, trio.open_nursery() as nursery:
        nursery.start_soon(bed.answer_all)
        channel = await bed.channel(ZOE, ANNA)
        asked = {"content": "hello", "author_id": ZOE, "mode": "sync"}
        path = f"{API}/channels/{channel}/messages"
        got = await bed.ask("POST", path, json=asked)
        assert got["userMessage"]["content"] == "hello"
        answered = got["agentResponse"]
        assert answered["text"] == "you said: hello"
        assert (answered["thought"], answered["actions"]) == ("", ["REPLY"])
        nursery.cancel_scope.cancel()


async def test_a_thought_and_actions_stand_beside_the_answer() -> None:
    async with open_web() as bed, trio.open_nursery() as nursery:
        channel = await bed.channel(ZOE, ANNA)

        async def think() -> None:
            inbound = await bed.ingress.next_or_wait()
            said = reply(inbound, "Spoken")
            thought = {"thought": "I wondered", "actions": ("LOOK",)}
            await bed.transport.deliver(msgspec.structs.replace(said, **thought))

        nursery.start_soon(think)
        asked = {"content": "hello", "author_id": ZOE, "mode": "sync"}
        path = f"{API}/channels/{channel}/messages"
        answered = (await bed.ask("POST", path, json=asked))["agentResponse"]
        assert answered["thought"] == "I wondered"
        assert answered["actions"] == ["LOOK"]
        kept = (await bed.messages(channel))[0]
        raw = {"text": "Spoken", "thought": "I wondered", "actions": ["LOOK"]}
        assert kept["raw_message"] == raw
        assert kept["metadata"]["agent_name"] == kept["metadata"]["agentName"] == "anna"


async def test_blanks_are_no_message_and_types_have_names() -> None:
    async with open_web() as bed:
        channel = await bed.channel(ZOE, ANNA, kind="group")
        details = await bed.ask("GET", f"{API}/channels/{channel}/details")
        assert details["type"] == "GROUP"
        path = f"{API}/channels/{channel}/messages"
        blank = {"content": "   ", "author_id": ZOE}
        refused = await bed.client.post(path, json=blank)
        assert (refused.status_code, "blank" in refused.text) == (400, True)
        made = {"name": "x", "type": "club"}
        refused = await bed.client.post(f"{API}/channels", json=made)
        assert (refused.status_code, "GROUP" in refused.text) == (400, True)
        sync = f"{API}/message-servers/{ZERO}/sync-channels"
        listed = {"channels": [{"name": "y", "type": "group"}]}
        (synced,) = (await bed.ask("POST", sync, json=listed))["channels"]
        assert synced["type"] == "GROUP"
        refused = await bed.client.post(sync, json={"channels": [made]})
        assert (refused.status_code, "known: " in refused.text) == (400, True)


async def test_sse_streams_pieces_for_both_kinds_of_readers() -> None:
    async with open_web() as bed, trio.open_nursery() as nursery:
        nursery.start_soon(bed.answer_all)
        channel = await bed.channel(ZOE, ANNA)
        asked = {"content": "hello", "author_id": ZOE, "transport": "sse"}
        path = f"{API}/channels/{channel}/messages"
        response = await bed.client.post(path, json=asked)
        assert response.headers["content-type"].startswith("text/event-stream")
        lines = [line for line in response.text.splitlines() if line]
        names = [line[7:] for line in lines if line.startswith("event: ")]
        shown = [json.loads(line[6:]) for line in lines if line.startswith("data: ")]
        assert names[0] == "user_message"
        assert set(names[1:-1]) == {"chunk"}
        assert names[-1] == "done"
        chunks = shown[1:-1]
        assert [each["index"] for each in chunks] == list(range(len(chunks)))
        assert "".join(each["chunk"] for each in chunks) == "you said: hello"
        assert {each["type"] for each in chunks} == {"chunk"}
        assert (shown[-1]["type"], shown[-1]["text"]) == ("complete", "you said: hello")
        nursery.cancel_scope.cancel()


async def test_an_agent_elsewhere_submits_and_agents_here_hear_it() -> None:
    async with open_web() as bed:
        channel = await bed.channel(ZOE, ANNA, BEN)
        asked = {"agentId": ANNA, "channelId": channel, "content": "@ben hello"}
        made = await bed.ask("POST", f"{API}/submit", json=asked)
        assert (made["authorId"], made["sourceType"]) == (ANNA, "agent_response")
        inbound = await bed.ingress.next()
        assert (inbound.present, inbound.is_bot) == (("ben",), True)
        assert not inbound.is_direct


async def test_messages_of_another_platform_are_taken_once_each() -> None:
    async with open_web() as bed:
        channel = await bed.channel(ZOE, ANNA)
        one = {"id": "m1", "authorId": "u1", "content": "hello", "timestamp": 1}
        many = {"platform": "irc", "channelId": channel, "messages": [one, one]}
        first = await bed.ask("POST", f"{API}/ingest-external", json=many)
        assert await bed.ask("POST", f"{API}/ingest-external", json=many) == first
        assert first["messageIds"] == [first["messageId"]] * 2
        assert len(bed.ingress.accepted) == 1
        single = {"channel_id": channel, "author_id": SAM, "content": "again"}
        single["message_server_id"] = ZERO
        assert await bed.ask("POST", f"{API}/ingest-external", json=single)


async def test_who_is_not_listening_is_asked_again_later() -> None:
    async with open_web() as bed:
        channel = await bed.channel(ZOE, ANNA)
        await bed.say(channel, "hello")
        inbound = await bed.ingress.next()
        bed.serving.cancel()
        with trio.fail_after(5):
            await bed.ended.wait()
        with pytest.raises(DeliveryBusyError):
            await bed.answer(inbound, "hi")


@pytest.mark.parametrize("levels", [100, 100_000])
async def test_what_is_nested_without_end_is_refused(levels: int) -> None:
    async with open_web() as bed:
        channel = await bed.channel(ZOE, SAM)
        path = f"/api/messaging/channels/{channel}/messages"
        deep = "[" * levels + "]" * levels
        said = f'"content": "hello", "authorId": "{ZOE}"'
        body = f'{{{said}, "rawMessage": {{"a": {deep}}}}}'
        headers = {"content-type": "application/json"}
        status, _ = await bed.refused("POST", path, content=body, headers=headers)
        assert status == 400
        assert bed.ingress.accepted == []
