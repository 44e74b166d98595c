"""Proves that a start counts before it can do harm, and not if nothing came of it."""

from __future__ import annotations

import msgspec
import trio
import trio.testing

from actors.journal.commits import as_accept
from actors.journal.records import UsageRecord
from actors.messages.inbound import Usage
from actors.messages.keys import session_key
from actors.messages.state import AttemptHistory
from actors.protocol import (
    AcquirePermit,
    CancelTurn,
    DrainOutbox,
    Failed,
    Finished,
    Hear,
    PermitGranted,
    ReleasePermit,
    StartTurn,
    TurnEnded,
)
from actors.session.attempt import RESTARTED, RETRY_CLAIM
from runtime.store.port import Done
from runtime.store.rows import Claim, Commit, Defer, Settle
from tests.fakes.actors.neighbours import of_kind, words
from tests.fakes.actors.room import HeldStore, Room, open_room
from tests.fakes.store.in_memory import MemoryStore

Clock = trio.testing.MockClock

STREAM = session_key(words(), "anna", "chat").text
NEW = AttemptHistory()
OLD = AttemptHistory(attempts=1, was_running=True, was_read=True)


class NotingStore(HeldStore):
    """Notes what is claimed and what is put off."""

    def __init__(self) -> None:
        super().__init__()
        self.claims: list[Claim] = []
        self.hurried: list[Claim] = []
        self.defers: list[Defer] = []

    def submit(self, commit: Commit, done: Done) -> None:
        self.claims += commit.claims
        self.hurried += () if commit.may_wait else commit.claims
        self.defers += commit.defers
        super().submit(commit, done)


async def hear(room: Room, past: AttemptHistory = NEW) -> None:
    """Hand in a message with its past, as the router does."""
    claims = (Claim("m1", past.attempts),) if past.attempts else ()
    accept = as_accept(words(), 1.0)
    await room.store.commit(Commit(at=1.0, accepts=(accept,), claims=claims))
    room.ref.tell(Hear(words(), past))
    await room.rest()


async def grant(room: Room) -> list[StartTurn]:
    """Grant the permit; give the turns that were started."""
    room.ref.tell(PermitGranted(of_kind(room.limiter, AcquirePermit)[-1].turn_id))
    await room.rest()
    started: list[StartTurn] = of_kind(room.agent, StartTurn)
    return started


async def test_a_new_message_is_not_kept_waiting_for_the_disk(
    autojump_clock: Clock,
) -> None:
    store = NotingStore()
    async with open_room(autojump_clock, store) as room:
        await hear(room)
        assert store.claims == []  # nothing begins without a permit
        store.is_held = True
        (start,) = await grant(room)
        assert store.claims == [Claim("m1", 1)]
        assert store.hurried == []
        assert start.steps == f"{STREAM}/m1"
        assert not start.may_have_steps


async def test_what_was_begun_before_is_begun_when_that_is_durable(
    autojump_clock: Clock,
) -> None:
    store = NotingStore()
    async with open_room(autojump_clock, store) as room:
        await hear(room, OLD)
        store.is_held = True
        assert await grant(room) == []
        assert store.hurried == [Claim("m1", 2)]
        store.let_go()
        await room.rest()
        (start,) = of_kind(room.agent, StartTurn)
        assert start.may_have_steps


async def test_while_the_disk_is_full_what_was_begun_before_waits(
    autojump_clock: Clock,
) -> None:
    store = MemoryStore(fails_at=(2, 3, 4))
    async with open_room(autojump_clock, store) as room:
        await hear(room, OLD)
        assert await grant(room) == []
        await trio.sleep(3 * RETRY_CLAIM + 0.1)
        assert len(of_kind(room.agent, StartTurn)) == 1
        (row,) = await store.unsettled()
        assert (row.state, row.attempts) == ("running", 2)


async def test_while_the_disk_is_full_a_new_message_is_begun_once(
    autojump_clock: Clock,
) -> None:
    store = MemoryStore(fails_at=(2,))
    async with open_room(autojump_clock, store) as room:
        await hear(room)
        assert len(await grant(room)) == 1
        await trio.sleep(10 * RETRY_CLAIM)
        assert len(of_kind(room.agent, StartTurn)) == 1


async def test_what_somebody_else_settled_is_not_begun(autojump_clock: Clock) -> None:
    async with open_room(autojump_clock) as room:
        await hear(room, OLD)
        settle = Settle("m1", "replied")
        await room.store.commit(Commit(at=1.0, settles=(settle,)))
        assert await grant(room) == []
        assert of_kind(room.connector, DrainOutbox)
        assert of_kind(room.limiter, ReleasePermit)
        assert room.said() == []
        await room.hear(words("two", 2))
        await room.answer()
        assert room.said() == ["yes"]


async def test_what_somebody_else_settled_is_called_back_if_it_was_begun(
    autojump_clock: Clock,
) -> None:
    async with open_room(autojump_clock) as room:
        await hear(room)
        settle = Settle("m1", "cancelled")
        await room.store.commit(Commit(at=1.0, settles=(settle,)))
        (start,) = await grant(room)
        assert of_kind(room.agent, CancelTurn) == [CancelTurn(start.turn_id)]
        room.ref.tell(TurnEnded(start.turn_id, Finished("late")))
        await room.rest()
        assert room.said() == []


async def test_ended_in_order_its_start_is_taken_back(autojump_clock: Clock) -> None:
    store = NotingStore()
    async with open_room(autojump_clock, store) as room:
        await hear(room, OLD)
        await grant(room)
        await room.ref.stop()
        assert store.defers == [Defer("m1", 1, 0.0, "stopped")]


async def test_ended_in_order_before_it_was_begun_there_is_nothing_to_take_back(
    autojump_clock: Clock,
) -> None:
    store = NotingStore()
    async with open_room(autojump_clock, store) as room:
        await hear(room, OLD)
        await room.ref.stop()
        assert (store.claims, store.defers) == ([], [])


async def test_ended_in_order_with_an_answer_on_its_way_it_stays_answered(
    autojump_clock: Clock,
) -> None:
    store = NotingStore()
    async with open_room(autojump_clock, store) as room:
        await hear(room)
        store.is_held = True
        await room.answer()
        await room.ref.stop()
        assert store.defers == []
        assert (await store.counts()).inbox == {"replied": 1}


async def test_a_session_that_fails_counts_only_what_was_begun(
    autojump_clock: Clock,
) -> None:
    store = NotingStore()
    async with open_room(autojump_clock, store) as room:
        await hear(room)
        room.ref.tell("nonsense")  # kills it three times
        await trio.sleep(5)
        await grant(room)
        room.ref.tell("nonsense")
        await trio.sleep(5)
        await grant(room)
    assert [claim.attempt for claim in store.claims] == [1, 2]


async def test_a_retry_asks_for_a_permit_of_its_own(autojump_clock: Clock) -> None:
    store = NotingStore()
    busy = Failed("busy", "model", "unavailable", may_retry=True)
    async with open_room(autojump_clock, store) as room:
        await hear(room)
        (first,) = await grant(room)
        room.ref.tell(TurnEnded(first.turn_id, busy))
        await room.rest()
        assert of_kind(room.limiter, ReleasePermit)  # others run meanwhile
        assert len(of_kind(room.limiter, AcquirePermit)) == 1
        await trio.sleep(121)
        assert len(of_kind(room.limiter, AcquirePermit)) == 2
        second = (await grant(room))[-1]
        assert second.turn_id != first.turn_id
        assert second.steps == first.steps
        assert second.may_have_steps


async def test_what_a_turn_took_is_measured_from_its_permit(
    autojump_clock: Clock,
) -> None:
    async with open_room(autojump_clock) as room:
        await hear(room)
        await trio.sleep(50)
        (start,) = await grant(room)
        await trio.sleep(7)
        ended = Finished("yes", usage=Usage(30, 20), rounds=2)
        room.ref.tell(TurnEnded(start.turn_id, ended))
        await room.rest()
        (row,) = await room.store.records("usage")
        used = msgspec.json.decode(row.body, type=UsageRecord)
        assert (used.seconds, used.rounds, used.attempt) == (7.0, 2, 1)
        assert (used.input_tokens, used.output_tokens) == (30, 20)
        assert (used.provider, used.model) == ("scripted", "scripted")


async def test_without_a_limiter_nothing_is_claimed(autojump_clock: Clock) -> None:
    store = NotingStore()
    async with open_room(autojump_clock, store) as room:
        await room.limiter.actor_ref.stop()
        await hear(room)
        assert room.said() == [RESTARTED]
        assert store.claims == []
