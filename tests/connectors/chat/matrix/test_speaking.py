"""What agents say goes out once, by the right account; edits, signs and typing too."""

from __future__ import annotations

from typing import TYPE_CHECKING

import httpx
import msgspec
import pytest
import trio

from actors.errors import DeliveryBusyError, DeliveryRefusedError, DeliveryUnknownError
from actors.messages.deliveries import Edit, Reaction, Typing
from actors.messages.inbound import Address
from tests.fakes.matrix.homeserver import refusal
from tests.support.chat.matrix_bed import ANNA, BEN, ROOM, SAM, ZOE, MatrixBed, delivery

if TYPE_CHECKING:
    from trio.testing import MockClock


HERE = Address("matrix", ROOM)


def senders(bed: MatrixBed) -> list[tuple[str, str]]:
    return [
        (each["sender"], each["content"]["body"])
        for each in bed.server.said(ROOM, ANNA, BEN)
    ]


async def test_the_runtime_names_commands_behind_a_name_which_clients_let_through() -> (
    None
):
    bed = MatrixBed()
    bed.server.room(ROOM, ZOE, BEN, ANNA)
    async with bed.listening():
        await bed.transport.deliver(delivery("see /help", "ben", kind="notice"))
        await bed.transport.deliver(delivery("I say /help", "ben"))
    assert senders(bed) == [(BEN, "see @ben /help"), (BEN, "I say /help")]


async def test_each_agent_speaks_by_its_own_account() -> None:
    bed = MatrixBed()
    bed.server.room(ROOM, ZOE, BEN, ANNA)
    async with bed.listening():
        await bed.transport.deliver(delivery("mine", "ben"))
        await bed.transport.deliver(delivery("somebody's", "cleo"))
        await bed.transport.deliver(delivery("ours", "", kind="notice"))
    assert senders(bed) == [
        (BEN, "mine"),
        (ANNA, "cleo: somebody's"),
        (ANNA, "ours"),
    ]


async def test_an_agent_that_is_not_there_speaks_by_one_that_is() -> None:
    bed = MatrixBed()
    bed.server.room(ROOM, ZOE, BEN)
    async with bed.listening() as server:
        await bed.transport.deliver(delivery("hi", "anna"))
        server.member(ROOM, BEN, "leave")
        await bed.wait(lambda: bed.bookmarks.tokens[BEN] == f"s{len(server.events)}")
        with pytest.raises(DeliveryRefusedError):
            await bed.transport.deliver(delivery("ho", "anna"))
    assert senders(bed) == [(BEN, "anna: hi")]


async def test_what_is_said_again_is_seen_once_also_after_a_restart() -> None:
    bed = MatrixBed("anna")
    bed.server.room(ROOM, ZOE, ANNA)
    async with bed.listening():
        first = await bed.transport.deliver(delivery("hi"))
    bed.transport = bed.make()
    async with bed.listening():
        assert await bed.transport.deliver(delivery("hi")) == first
    assert senders(bed) == [(ANNA, "hi")]


async def test_an_answer_in_a_group_replies_to_who_asked() -> None:
    bed = MatrixBed()
    bed.server.room(ROOM, ZOE, SAM, ANNA)
    async with bed.listening() as server:
        asked = server.say(ROOM, SAM, "@anna hello")
        inbound = await bed.ingress.next()
        answer = delivery("hi", reply_to=inbound.platform_id)
        await bed.transport.deliver(answer)
        second = msgspec.structs.replace(answer, id="2", part=1)
        await bed.transport.deliver(second)
        said, more = (each["content"] for each in server.said(ROOM, ANNA))
    assert said["m.relates_to"] == {"m.in_reply_to": {"event_id": asked}}
    assert said["m.mentions"] == {"user_ids": [SAM]}
    assert "m.relates_to" not in more
    assert more["m.mentions"] == {}


@pytest.mark.parametrize(
    ("fault", "error"),
    [
        (refusal(429, "M_LIMIT_EXCEEDED", retry_after_ms=4000), DeliveryBusyError),
        (refusal(502, "M_UNKNOWN"), DeliveryBusyError),
        (refusal(401, "M_UNKNOWN_TOKEN"), DeliveryBusyError),
        (refusal(403, "M_FORBIDDEN"), DeliveryRefusedError),
        (refusal(413, "M_TOO_LARGE"), DeliveryRefusedError),
        (trio.BrokenResourceError(), None),
    ],
)
async def test_what_a_courier_is_told(
    fault: object, error: type[Exception] | None
) -> None:
    bed = MatrixBed("anna")
    bed.server.room(ROOM, ZOE, ANNA)
    async with bed.listening() as server:
        if error is None:
            server.faults.append(("/send/", lost()))
            with pytest.raises(DeliveryUnknownError):
                await bed.transport.deliver(delivery("hi"))
            return
        server.faults.append(("/send/", fault))  # type: ignore[arg-type]
        with pytest.raises(error) as told:
            await bed.transport.deliver(delivery("hi"))
        wait = getattr(told.value, "retry_after", None)
        assert wait == (4.0 if "LIMIT" in str(told.value) else None)


def lost() -> Exception:
    return httpx.ReadError("connection reset")


async def test_nothing_is_said_into_an_encrypted_room() -> None:
    bed = MatrixBed("anna")
    bed.server.room(ROOM, ZOE, ANNA, encrypted=True)
    async with bed.listening() as server:
        with pytest.raises(DeliveryRefusedError, match="encrypted"):
            await bed.transport.deliver(delivery("hi"))
        for _ in range(3):
            server.add(ROOM, ZOE, "m.room.encrypted", {"ciphertext": "x"})
        server.say(ROOM, ZOE, "in the open")
        await bed.wait(lambda: len(server.said(ROOM, ANNA)) == 1)
        server.say(ROOM, ZOE, "again")
        place = len(server.events)
        await bed.wait(lambda: bed.bookmarks.tokens[ANNA] == f"s{place}")
    assert len(bed.server.said(ROOM, ANNA)) == 1
    assert bed.ingress.accepted == []


def edit_of(receipt: str, text: str) -> Edit:
    return Edit(
        id="e1",
        correlation_id="c",
        address=HERE,
        agent="anna",
        receipt=receipt,
        text=text,
    )


def sign(message: str, sign: str, instead_of: str = "") -> Reaction:
    return Reaction(
        correlation_id="c",
        address=HERE,
        agent="anna",
        message=message,
        sign=sign,
        instead_of=instead_of,
    )


async def test_a_draft_is_edited_and_signs_are_exchanged() -> None:
    bed = MatrixBed("anna")
    bed.server.room(ROOM, ZOE, ANNA)
    async with bed.listening() as server:
        asked = server.say(ROOM, ZOE, "hello")
        await bed.ingress.next()
        receipt = await bed.transport.deliver(delivery("he"))
        presence = bed.transport.presence
        edit = edit_of(receipt, "hello you")
        await presence.edit(edit)
        await presence.edit(edit)
        eyes = sign(asked, "👀")
        await presence.react(eyes)
        done = sign(asked, "✅", "👀")
        await presence.react(done)
        edits = [each["content"] for each in server.said(ROOM, ANNA)][1:]
        signs = [e["content"] for e in server.events if e["type"] == "m.reaction"]
    assert [each["m.new_content"]["body"] for each in edits] == ["hello you"]
    assert [each.get("m.relates_to", {}).get("key") for each in signs] == [None, "✅"]


async def test_a_sign_of_an_earlier_process_is_found_and_one_there_is_no_error() -> (
    None
):
    bed = MatrixBed("anna")
    bed.server.room(ROOM, ZOE, ANNA)
    async with bed.listening() as server:
        asked = server.say(ROOM, ZOE, "hello")
        await bed.ingress.next()
        await bed.transport.presence.react(sign(asked, "👀"))
    bed.transport = bed.make()
    async with bed.listening() as server:
        server.faults.append(("/m.reaction/", refusal(400, "M_DUPLICATE_ANNOTATION")))
        done = sign(asked, "✅", "👀")
        await bed.transport.presence.react(done)
        signs = [e["content"] for e in server.events if e["type"] == "m.reaction"]
    assert signs == [{}]


async def test_typing_is_shown_until_it_is_over(
    autojump_clock: MockClock,
) -> None:
    del autojump_clock
    bed = MatrixBed("anna")
    bed.server.room(ROOM, ZOE, ANNA)
    async with bed.listening() as server:
        for is_over in (False, True):
            typing = Typing(
                correlation_id="c",
                reply_id="r",
                address=HERE,
                agent="anna",
                is_over=is_over,
            )
            bed.transport.show_typing(typing)
            shown = (ROOM, ANNA, not is_over)
            await bed.wait(lambda: server.typing[-1:] == [shown])  # noqa: B023
