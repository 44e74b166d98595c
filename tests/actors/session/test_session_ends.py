"""Proves what becomes of a conversation whose session fails, ends, or is killed."""

from __future__ import annotations

import trio
import trio.testing

from actors.protocol import (
    CancelCondense,
    CancelTurn,
    Condense,
    Condensed,
    DropConversation,
    Finished,
    ReleasePermit,
    ShortenPrompt,
    TurnEnded,
)
from actors.session.lifecycle import GRACE
from tests.fakes.actors.neighbours import of_kind, words
from tests.fakes.actors.room import HeldStore, open_room

Clock = trio.testing.MockClock


async def test_what_an_earlier_incarnation_stored_is_sent_and_not_asked_again(
    autojump_clock: Clock,
) -> None:
    store = HeldStore()
    async with open_room(autojump_clock, store) as room:
        await room.hear(words("one"), words("two", 2))
        store.is_held = True
        await room.answer("first")
        room.ref.tell("nonsense")  # until it is a dead letter
        await trio.sleep(5)
        store.let_go()
        await room.rest()
        start = await room.answer("second")
        assert [line.text for line in start.history] == ["one", "first"]
        assert room.said() == ["first", "second"]


async def test_an_answer_that_is_stored_goes_out_also_when_its_session_is_gone(
    autojump_clock: Clock,
) -> None:
    store = HeldStore()
    async with open_room(autojump_clock, store) as room:
        await room.hear(words())
        store.is_held = True
        await room.answer("yes")
        root = room.system.find("root")
        assert root is not None
        root.kill()
        store.let_go()
        await room.rest()
        assert room.said() == ["yes"]


async def test_a_session_that_fails_cancels_its_turn_and_asks_again(
    autojump_clock: Clock,
) -> None:
    async with open_room(autojump_clock) as room:
        await room.hear(words("one"), words("two", 2))
        old = await room.grant()
        room.ref.tell("nonsense")
        await trio.sleep(5)
        assert CancelTurn(old.turn_id) in room.agent.received
        room.ref.tell(TurnEnded(old.turn_id, Finished("late")))
        start = await room.answer("first")
        assert start.turn_id != old.turn_id
        await room.answer("second")
        assert room.said() == ["first", "second"]


async def test_who_ends_in_mid_turn_leaves_the_permit_to_the_limiter(
    autojump_clock: Clock,
) -> None:
    async with open_room(autojump_clock) as room:
        await room.hear(words())
        start = await room.grant()
        await room.ref.stop()
        await trio.testing.wait_all_tasks_blocked()
        # Its turn may run a moment longer, and nobody is to run in its place.
        assert len(of_kind(room.limiter, ReleasePermit)) == 1  # as it began
        assert room.agent.received[-1] == CancelTurn(start.turn_id)
        assert len(await room.store.unsettled()) == 1


async def test_a_conversation_that_is_to_be_forgotten_is_when_nothing_runs(
    autojump_clock: Clock,
) -> None:
    async with open_room(autojump_clock) as room:
        await room.hear(words("one"))
        await room.answer("first")
        await room.hear(words("two", 2))
        room.ref.tell(DropConversation())
        start = await room.answer("second")
        assert [line.text for line in start.history] == ["one", "first"]
        await trio.sleep(5)
        await room.hear(words("three", 3))
        start = await room.answer("third")
        assert start.history == ()
        assert room.said() == ["first", "second", "third"]


async def test_a_conversation_that_never_was_is_not_ended(
    autojump_clock: Clock,
) -> None:
    async with open_room(autojump_clock) as room:
        room.ref.tell(DropConversation())
        await trio.sleep(5)
        assert await room.store.read("anna/fake/room//zoe") == ()


async def test_a_condenser_that_never_reports_is_cancelled_and_the_turn_goes_on(
    autojump_clock: Clock,
) -> None:
    async with open_room(autojump_clock) as room:
        await room.hear(words("one"))
        await room.answer("first")
        await room.hear(words("two", 2))
        start = await room.grant()
        wish = ShortenPrompt(start.turn_id, "tokens", must=False)
        began = trio.current_time()
        shortened = await room.ref.ask(wish, timeout=1000.0)
        took = trio.current_time() - began
        (order,) = of_kind(room.agent, Condense)
        assert 0 <= took - (order.within + GRACE) < 1
        assert [each.id for each in of_kind(room.agent, CancelCondense)] == [order.id]
        assert shortened.outcome == "failed"
        assert [line.text for line in shortened.history] == ["one", "first"]
        room.ref.tell(Condensed(id=order.id, summary="too late"))
        assert (await room.answer("second")).turn_id == start.turn_id
        assert room.said() == ["first", "second"]
