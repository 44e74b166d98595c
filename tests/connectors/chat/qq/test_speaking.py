"""Answers go to what may still be answered, once, with their files."""

from __future__ import annotations

from typing import Any

import httpx
import pytest

from actors.errors import DeliveryBusyError, DeliveryRefusedError
from actors.messages.inbound import Address
from connectors.chat.qq.transport import number_of
from tests.fakes.media import PNG
from tests.fakes.qq.server import FILES, refusal
from tests.support.chat.qq_bed import ANNA, BEN, GROUP, ZOE, QQBed, delivery, open_qq

THERE = Address("qq", f"{ANNA}:channel:100010")


async def in_channel(bed: QQBed) -> str:
    """Have somebody call anna in a channel; gives the message's id."""
    author = {"id": "1234", "username": "Zoe"}
    said: dict[str, Any] = {"author": author, "channel_id": "100010", "content": "hi"}
    known = await bed.event("AT_MESSAGE_CREATE", **said)
    await bed.ingress.next()
    return known


async def asked(bed: QQBed, text: str = "hello") -> str:
    """Have Zoe write, and be heard; gives the message's id."""
    known = await bed.write(text)
    await bed.ingress.next()
    return known


async def test_an_answer_names_what_it_answers_and_its_number() -> None:
    async with open_qq() as bed, bed.listening() as server:
        known = await asked(bed)
        said = delivery("**Hi** @everyone <@1>", reply_to=known)
        receipt = await bed.transport.deliver(said)
        (sent,) = server.said
        assert receipt == sent["id"]
        assert sent["path"] == f"/v2/users/{ZOE}/messages"
        assert (sent["msg_id"], sent["msg_type"]) == (known, 0)
        assert sent["msg_seq"] == number_of(said.id)
        assert sent["content"] == "Hi @\u200beveryone <\u200b@1>"


async def test_five_answers_go_to_one_message_and_the_rest_to_another() -> None:
    async with open_qq() as bed, bed.listening() as server:
        first, second = await asked(bed), await asked(bed)
        for number in range(7):
            await bed.transport.deliver(delivery(f"{number}", reply_to=first))
        assert [each["msg_id"] for each in server.said] == [first] * 5 + [second] * 2


@pytest.mark.parametrize("policy", ["keep", "refuse"])
async def test_outside_the_window_words_wait_for_who_writes(policy: str) -> None:
    async with open_qq(outside_window=policy) as bed, bed.listening() as server:
        known = await asked(bed)
        bed.clock.ahead = 3_600.0
        kind = DeliveryBusyError if policy == "keep" else DeliveryRefusedError
        said = delivery("late", reply_to=known)
        for _ in range(3):
            with pytest.raises(kind, match="nobody has written"):
                await bed.transport.deliver(said)
        tried = [each for each in server.asked if each.endswith("/messages")]
        assert len(tried) == 1, "first words are tried once"
        assert bed.counted("events", outcome="window_closed") == 1
        newer = await asked(bed, "still there?")
        await bed.transport.deliver(said)
        assert [each["msg_id"] for each in server.said] == [newer]


async def test_first_words_go_where_qq_takes_them() -> None:
    async with open_qq() as bed, bed.listening() as server:
        server.takes_first_words = True
        await bed.transport.deliver(delivery("Good morning."))
        assert "msg_id" not in server.said[0]


async def test_what_was_said_before_a_crash_is_not_said_again() -> None:
    async with open_qq() as bed:
        async with bed.listening():
            known = await asked(bed)
            await bed.transport.deliver(delivery("once", reply_to=known))
        bed.transport = bed.make()
        async with bed.listening() as server:
            assert await bed.transport.deliver(delivery("once", reply_to=known))
            assert server.texts() == ["once"]


async def test_after_a_restart_an_old_message_is_answered_as_another() -> None:
    async with open_qq() as bed:
        async with bed.listening() as server:
            old = await asked(bed)
        del server.answerable[old]
        bed.transport = bed.make()
        async with bed.listening():
            new = await asked(bed)
            await bed.transport.deliver(delivery("at last", reply_to=old))
            assert server.said[0]["msg_id"] == new


async def test_an_address_that_is_not_registered_is_left_out() -> None:
    async with open_qq() as bed, bed.listening() as server:
        server.knows_addresses = False
        await asked(bed)
        await bed.transport.deliver(delivery("See https://x.test/a?b=c for more."))
        assert server.texts() == ["See […] for more."]
        assert bed.counted("events", outcome="addresses_left_out") == 1


async def test_a_token_that_ended_is_replaced() -> None:
    async with open_qq() as bed, bed.listening() as server:
        await asked(bed)
        server.tokens.clear()
        await bed.transport.deliver(delivery("hi"))
        assert server.texts() == ["hi"]
        assert len(server.tokens) == 1


async def test_a_second_bot_has_chats_of_its_own() -> None:
    async with open_qq("anna", "ben") as bed, bed.listening() as server:
        author = {"member_openid": "AB12"}
        said: dict[str, Any] = {"author": author, "group_openid": GROUP, "content": "x"}
        await bed.event("GROUP_AT_MESSAGE_CREATE", bot=BEN, **said)
        inbound = await bed.ingress.next()
        assert (inbound.mentions, inbound.present) == (("ben",), ("ben",))
        assert not inbound.is_direct
        given = delivery("Ask me.", address=inbound.address)
        await bed.transport.deliver(given)
        assert server.said[0]["path"] == f"/v2/groups/{GROUP}/messages"
        assert server.texts() == ["anna: Ask me."]
        nobodys = Address("qq", f"1003:group:{GROUP}")
        with pytest.raises(DeliveryRefusedError, match="no agent has the bot"):
            await bed.transport.deliver(delivery("x", address=nobodys))


async def test_channels_take_pictures_and_refuse_other_files() -> None:
    async with open_qq() as bed, bed.listening() as server:
        known = await in_channel(bed)
        file = bed.blobs.sent(PNG, "a.png")
        given = delivery("look", address=THERE, reply_to=known, file=file)
        await bed.transport.deliver(given)
        (sent,) = server.said
        assert (sent["path"], sent["msg_id"]) == ("/channels/100010/messages", known)
        assert (sent["content"], [*server.brought.values()]) == ("look", [PNG])
        other = bed.blobs.sent(b"words", "a.txt")
        with pytest.raises(DeliveryRefusedError, match="pictures only"):
            await bed.transport.deliver(delivery("x", address=THERE, file=other))


async def test_a_file_that_did_not_arrive_is_brought_again() -> None:
    async with open_qq() as bed, bed.listening() as server:
        await asked(bed)
        file = bed.blobs.sent(b"words", "a.txt")
        server.faults.append(("/files", httpx.Response(504)))
        with pytest.raises(DeliveryBusyError, match="did not arrive"):
            await bed.transport.deliver(delivery("", file=file))
        await bed.transport.deliver(delivery("", file=file))
        (sent,) = server.said
        assert (sent["msg_type"], sent["content"]) == (7, " ")
        assert sent["media"]["file_info"].startswith("info4_")


async def test_what_cannot_be_said_is_refused() -> None:
    async with open_qq() as bed, bed.listening() as server:
        await asked(bed)
        server.faults.append(("/messages", refusal(400, 40054002, "muted")))
        with pytest.raises(DeliveryRefusedError, match="muted"):
            await bed.transport.deliver(delivery("hi"))


async def test_a_file_that_is_not_where_it_should_be_is_said_and_counted() -> None:
    async with open_qq() as bed, bed.listening():
        gone = {"content_type": "file", "url": f"{FILES}/gone", "filename": "a.txt"}
        await bed.write("look", attachments=[gone, {**gone, "filename": "b.txt"}])
        heard = await bed.ingress.next()
    assert heard.attachments == ()
    assert [each.split(" was not")[0] for each in heard.text.splitlines()] == [
        "look",
        "[document a.txt",
        "[document b.txt",
    ]
    assert bed.counted("events", outcome="media_left_out") == 2
