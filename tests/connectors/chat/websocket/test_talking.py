"""Somebody talks by a plain WebSocket, and is told no more than they ask for."""

from __future__ import annotations

import pytest
import trio
import trio.testing
from msgspec import structs

from actors.errors import (
    DeliveryRefusedError,
    MessageRefusedError,
    OverloadedError,
    StoppingError,
    UnconfirmedError,
)
from actors.messages.deliveries import Typing
from actors.messages.inbound import Inbound
from actors.transport import Earlier
from connectors.chat.websocket.frames import chat_of
from connectors.chat.websocket.platform import WebSocketConfig
from runtime.errors import StoreUnavailableError
from tests.support.chat.websocket_bed import SAM, ZOE, open_sockets, piece, reply


def typing(inbound: Inbound, *, is_over: bool) -> Typing:
    return Typing(
        correlation_id=inbound.id,
        reply_id=f"{inbound.id}/anna",
        address=inbound.address,
        agent="anna",
        is_over=is_over,
    )


async def test_a_client_of_two_fields_is_told_messages_and_nothing_else() -> None:
    async with open_sockets() as bed:
        client = await bed.dial()
        await client.open()
        await client.send("message", content="hello")
        inbound = await bed.ingress.next()
        assert (inbound.text, inbound.platform) == ("hello", "websocket")
        assert inbound.is_direct
        assert not inbound.wants_drafts
        bed.transport.show_draft(piece(inbound, "g"))
        bed.transport.show_typing(typing(inbound, is_over=False))
        await bed.answer(inbound, "good morning")
        await bed.transport.settle(inbound, "replied")
        await bed.answer(inbound, "bye")
        await client.next_of("message", 2)
        assert [each["type"] for each in client.frames] == ["message"] * 2
        assert client.said() == ["good morning", "bye"]


async def test_who_asks_for_drafts_and_typing_is_told_them_in_order() -> None:
    async with open_sockets() as bed:
        client = await bed.join(drafts=True, typing=True, name="Zoe", agent="ben")
        await client.send("message", content="hello", id="m1")
        inbound = await bed.ingress.next()
        assert inbound.wants_drafts
        assert (inbound.sender_name, inbound.agent) == ("Zoe", "ben")
        bed.transport.show_typing(typing(inbound, is_over=False))
        bed.transport.show_draft(piece(inbound, "good "))
        bed.transport.show_draft(piece(inbound, "morning", 5))
        await client.next_of("draft")
        bed.transport.show_typing(typing(inbound, is_over=True))
        await bed.answer(inbound, "good morning")
        settled = await client.next_of("settled")
        kinds = [each["type"] for each in client.frames]
        assert kinds.index("message") < kinds.index("settled")
        assert (settled["id"], settled["reason"]) == ("m1", "replied")
        assert "".join(e["content"] for e in client.of("draft")) == "good morning"
        assert [each["on"] for each in client.of("typing")] == [True, False]
        assert client.of("message")[0]["reply_to"] == "m1"
        assert client.of("received")[0] == {
            "type": "received",
            "id": "m1",
            "again": False,
        }


async def test_who_is_never_answered_is_told_so() -> None:
    async with open_sockets() as bed:
        client = await bed.join(typing=True)
        for name in ("m1", "m2"):
            await client.send("message", content="hello", id=name)
        first, second = await bed.ingress.next(), await bed.ingress.next()
        await bed.transport.settle(first, "dropped:loop")
        await bed.transport.deliver(structs.replace(reply(second, ""), kind="silence"))
        await client.next_of("settled", 2)
        told = [(each["id"], each["reason"]) for each in client.of("settled")]
        assert told == [("m1", "dropped:loop"), ("m2", "replied")]
        assert client.said() == []


async def test_who_asked_before_a_restart_is_told_once_that_all_was_said() -> None:
    async with open_sockets() as bed:
        client = await bed.join(typing=True)
        await client.send("message", content="hello", id="m1")
        await client.send("message", content="hello", id="m2")
        first, second = await bed.ingress.next(), await bed.ingress.next()
        earlier = structs.replace(first, id="of-a-process-before")
        for each in (earlier, earlier, second):
            await bed.answer(each, "good morning")
        await client.next_of("settled", 2)
        assert [each["id"] for each in client.of("settled")] == ["m1", "m2"]


@pytest.mark.parametrize("outcome", ["replied:ok", "cancelled:stopped"])
async def test_who_repeats_a_message_that_was_over_before_a_restart_learns_that(
    outcome: str,
) -> None:
    async with open_sockets() as bed:
        client = await bed.join(typing=True)
        await client.send("message", content="hello", id="m1")
        first = await bed.ingress.next()
        answers = (reply(first, "hi"),) if outcome == "replied:ok" else ()
        before = structs.replace(first, id="before", correlation_id="before")
        key = (first.address.connector, first.platform_id)
        ended = frozenset(each.id for each in answers)
        bed.ingress.answered[key] = Earlier(before, outcome, answers, ended)
        await client.send("message", content="hello", id="m1")
        settled = await client.next_of("settled")
        assert (settled["id"], settled["reason"]) == (
            "m1",
            "replied" if answers else outcome,
        )
        kinds = [each["type"] for each in client.frames]
        assert kinds[-2:] == ["received", "settled"]


async def test_who_is_stopped_after_a_restart_is_told_so() -> None:
    async with open_sockets() as bed:
        client = await bed.join(typing=True)
        await client.send("message", content="hello", id="m1")
        first = await bed.ingress.next()
        before = structs.replace(first, id="before", correlation_id="before")
        await bed.transport.settle(before, "cancelled:stopped")
        assert (await client.next_of("settled"))["reason"] == "cancelled:stopped"


async def test_the_last_answer_after_a_restart_ends_what_was_answered_before() -> None:
    async with open_sockets() as bed:
        client = await bed.join(typing=True)
        await client.send("message", content="hello", id="m1")
        first = await bed.ingress.next()
        before = structs.replace(first, id="before", correlation_id="before")
        told = structs.replace(reply(before, "ask Ben"), answers_left=1)
        key = (first.address.connector, first.platform_id)
        known = Earlier(before, "replied:ok", (told,), frozenset([told.id]))
        bed.ingress.answered[key] = known
        await bed.transport.deliver(
            structs.replace(reply(before, "hi"), id="ben", is_root=False)
        )
        assert (await client.next_of("settled"))["reason"] == "replied"


async def test_pieces_of_a_draft_that_wait_are_told_together_or_not_at_all() -> None:
    async with open_sockets() as bed:
        client = await bed.join(drafts=True)
        await client.send("message", content="hello")
        inbound = await bed.ingress.next()
        for at, letter in enumerate("abcdef"):
            bed.transport.show_draft(piece(inbound, letter, at))
        bed.transport.show_draft(piece(inbound, "x" * 20_000, 6))
        bed.transport.show_draft(piece(inbound, "z", 20_006))
        draft = await client.next_of("draft")
        assert draft["content"] == "abcdef"
        assert bed.figure("told_total", type="draft_left_out") == 2


async def test_a_message_sent_again_under_its_id_counts_once() -> None:
    async with open_sockets() as bed:
        client = await bed.join()
        for _ in range(2):
            await client.send("message", content="hello", id="m1")
        await client.next_of("received", 2)
        assert [each["again"] for each in client.of("received")] == [False, True]
        other = await bed.join(SAM)
        await other.send("message", content="hello", id="m1")
        assert not (await other.next_of("received"))["again"]
        assert [each.text for each in bed.ingress.accepted] == ["hello"] * 2
        callers = {each.caller for each in bed.ingress.accepted}
        assert len(callers) == 1, "they share turns by address"
        assert callers != {""}


@pytest.mark.parametrize(
    ("error", "code", "can_retry"),
    [
        (OverloadedError("too much waits"), "busy", True),
        (UnconfirmedError("not confirmed"), "unavailable", True),
        (StoppingError("it ends"), "stopping", True),
        (StoreUnavailableError("disk full"), "unavailable", True),
        (MessageRefusedError("too long"), "refused", False),
    ],
)
async def test_who_is_not_heard_learns_why_and_what_to_do(
    error: Exception, code: str, *, can_retry: bool
) -> None:
    async with open_sockets() as bed:
        client = await bed.join()
        bed.ingress.error = error
        await client.send("message", content="hello", id="m1")
        told = await client.next_of("error")
        is_of_the_store = isinstance(error, StoreUnavailableError)
        why = "the message cannot be stored now" if is_of_the_store else str(error)
        assert (told["code"], told["message"], told["id"]) == (code, why, "m1")
        assert told["do"]
        assert ("retry_after" in told) == can_retry
        assert bed.figure("frames_total", outcome=code) == 1


async def test_nonsense_ends_nobodys_connection() -> None:
    async with open_sockets() as bed:
        client = await bed.join()
        for text in ("{", "7", '{"type":"shout"}', '{"type":"hello"}', '"\\ud800"'):
            await client.write(text)
        await client.send("message", content="hi", agent="nobody")
        await client.next_of("error", 6)
        assert [each["code"] for each in client.of("error")] == [
            *("bad_json", "bad_frame", "unknown_type", "late_hello"),
            *("bad_json", "unknown_agent"),
        ]
        await client.send("ping")
        await client.next_of("pong")


async def test_two_windows_of_one_client_are_told_the_same() -> None:
    async with open_sockets() as bed:
        first, second = await bed.join(), await bed.join()
        await first.send("message", content="hello")
        await bed.answer(await bed.ingress.next(), "hi")
        for each in (first, second):
            await each.next_of("message")
            assert each.said() == ["hi"]


async def test_one_window_too_many_ends_the_oldest() -> None:
    async with open_sockets(WebSocketConfig(port=0, max_per_client=2)) as bed:
        first, _, third = [await bed.join() for _ in range(3)]
        await first.wait_ended()
        assert first.closed == (1000, "replaced")
        await third.send("ping")
        await third.next_of("pong")


async def test_clients_hear_nothing_of_each_other() -> None:
    async with open_sockets() as bed:
        zoe, sam = await bed.join(ZOE), await bed.join(SAM)
        await zoe.send("message", content="hello")
        inbound = await bed.ingress.next()
        assert inbound.address.chat == chat_of(ZOE) == zoe.of("welcome")[0]["you"]
        await bed.answer(inbound, "for zoe alone")
        await zoe.next_of("message")
        await sam.send("ping")
        await sam.next_of("pong")
        assert sam.said() == []


async def test_silence_is_no_message_and_nobodys_answer_is_refused() -> None:
    async with open_sockets() as bed:
        client = await bed.dial()
        await client.open()
        await client.send("message", content="hello")
        inbound = await bed.ingress.next()
        silent = structs.replace(reply(inbound, ""), kind="silence")
        assert await bed.transport.deliver(silent) == "nothing to say"
        await client.drop()
        with trio.fail_after(5):
            while bed.transport.kept.get(inbound.address.chat) is not None:
                await trio.testing.wait_all_tasks_blocked()
        with pytest.raises(DeliveryRefusedError, match="no id"):
            await bed.answer(inbound, "too late")
