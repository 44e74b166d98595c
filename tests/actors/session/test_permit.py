"""The permit of a turn: asked for once, given back while people decide, taken again."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

import pytest
import trio
import trio.testing

from actors import names
from actors.protocol import (
    AcquirePermit,
    ApprovalResult,
    ReleasePermit,
    RequestApproval,
    ResumeTurn,
    TurnPaused,
)
from actors.session.attempt import PermitLease
from actors.turn.tools import LOST, PermitPauses
from runtime.actor.ref import ActorRef
from runtime.actor.reply import Reply
from runtime.testing import Probe
from tests.fakes.actors.neighbours import of_kind, probe, words
from tests.support.puppet import Puppet, do, virtual

Clock = trio.testing.MockClock


class Leased:
    """A session with the permit of its turn, and the limiter it comes from."""

    def __init__(self, session: ActorRef, lease: PermitLease, limiter: Probe) -> None:
        self.session = session
        self.lease = lease
        self.limiter = limiter

    def resume(self) -> Reply:
        """Have the turn ask to go on."""

        def run(me: Puppet) -> None:
            reply = me.defer_reply()
            assert reply is not None
            self.lease.resume(reply)

        asked: Reply = self.session.ask(do(run), timeout=60.0)
        return asked

    async def told(self, kind: type) -> int:
        """Count what the limiter was told."""
        await trio.testing.wait_all_tasks_blocked()
        return len(of_kind(self.limiter, kind))


@asynccontextmanager
async def leased(clock: Clock) -> AsyncGenerator[Leased]:
    async with virtual(clock) as system:
        limiter = probe(system, names.LIMITER)
        puppet = Puppet()
        session = system.spawn(puppet)
        lease = PermitLease(puppet, "t1", words(), "fake-1", is_suspect=False)
        yield Leased(session, lease, limiter)


async def test_a_permit_is_asked_for_and_begins_one_attempt(
    autojump_clock: Clock,
) -> None:
    async with leased(autojump_clock) as it:
        assert not it.lease.granted()  # that nobody asked for
        assert it.lease.acquire()
        assert it.lease.granted()
        assert not it.lease.granted()
        assert await it.told(AcquirePermit) == 1
        (wanted,) = of_kind(it.limiter, AcquirePermit)
        assert (wanted.turn_id, wanted.model, wanted.sender) == (
            "t1",
            "fake-1",
            ("fake", "zoe"),
        )
        assert not wanted.is_under_way


async def test_only_a_held_permit_rests_and_is_asked_for_again(
    autojump_clock: Clock,
) -> None:
    async with leased(autojump_clock) as it:
        it.lease.rest()
        it.lease.acquire()
        it.lease.rest()
        assert await it.told(ReleasePermit) == 0
        it.lease.granted()
        it.lease.rest()
        it.lease.rest()
        assert it.lease.is_resting
        assert await it.told(ReleasePermit) == 1
        replies = [it.resume(), it.resume()]
        assert await it.told(AcquirePermit) == 2
        assert of_kind(it.limiter, AcquirePermit)[-1].is_under_way
        assert not it.lease.is_resting
        assert not it.lease.granted()  # the attempt goes on; it does not begin
        assert [await each for each in replies] == [True, True]
        assert await it.resume() is True  # it is held


async def test_who_waits_to_go_on_is_told_when_the_permit_never_comes(
    autojump_clock: Clock,
) -> None:
    async with leased(autojump_clock) as it:
        it.lease.acquire()
        it.lease.granted()
        it.lease.rest()
        waiting = it.resume()
        await trio.testing.wait_all_tasks_blocked()
        it.lease.release()
        assert await waiting is False
        assert await it.resume() is False
        assert await it.told(ReleasePermit) == 2


async def test_without_a_limiter_a_turn_goes_on_nowhere(autojump_clock: Clock) -> None:
    async with leased(autojump_clock) as it:
        it.lease.acquire()
        it.lease.granted()
        it.lease.rest()
        await it.limiter.actor_ref.stop()
        assert await it.resume() is False
        assert it.lease.is_resting
        assert not it.lease.acquire()


async def test_a_session_that_ends_leaves_the_permit_to_its_turn(
    autojump_clock: Clock,
) -> None:
    async with leased(autojump_clock) as it:
        it.lease.acquire()
        it.lease.keep()  # that is not held cannot be left
        it.lease.granted()
        it.lease.keep()
        it.lease.release()
        assert await it.told(ReleasePermit) == 0
        assert await it.resume() is False


# --- what a turn makes of it ----------------------------------------------------------

WANTED = RequestApproval(
    turn_id="t1", call_id="c1", key="k", tool="shell", effect="run", summary="ls"
)
YES = ApprovalResult("approved")


class Session(Puppet):
    """Answers questions when it is let, and says whether a turn may go on.

    Args:
        may: whether it may.
    """

    def __init__(self, *, may: bool = True) -> None:
        super().__init__()
        self.may = may
        self.open: list[Reply] = []

    def on_receive(self, message: Any) -> Any:
        self.log.append(type(message).__name__)
        match message:
            case RequestApproval():
                reply = self.defer_reply()
                assert reply is not None
                self.open.append(reply)
                return None
            case ResumeTurn():
                return self.may
            case _:
                return None


@pytest.mark.parametrize(
    ("working", "is_paused"), [(1, True), (2, False)], ids=["alone", "beside another"]
)
async def test_a_turn_pauses_only_if_all_its_calls_wait_for_people(
    working: int, autojump_clock: Clock, *, is_paused: bool
) -> None:
    async with virtual(autojump_clock) as system, trio.open_nursery() as nursery:
        session = Session()
        pauses = PermitPauses(system.spawn(session), "t1", 60.0)
        pauses.begin(working)
        told: list[ApprovalResult] = []

        async def ask() -> None:
            told.append(await pauses.ask(WANTED, 60.0))

        nursery.start_soon(ask)
        await trio.testing.wait_all_tasks_blocked()
        assert (TurnPaused.__name__ in session.log) is is_paused
        for _ in range(working - 1):
            pauses.end()
        await trio.testing.wait_all_tasks_blocked()
        assert session.log.count(TurnPaused.__name__) == 1
        session.open[0].offer(YES)
        await trio.testing.wait_all_tasks_blocked()
        assert told == [YES]
        assert session.log.count(ResumeTurn.__name__) == 1


async def test_two_questions_side_by_side_pause_a_turn_once(
    autojump_clock: Clock,
) -> None:
    async with virtual(autojump_clock) as system, trio.open_nursery() as nursery:
        session = Session()
        pauses = PermitPauses(system.spawn(session), "t1", 60.0)
        pauses.begin(2)
        for _ in range(2):
            nursery.start_soon(pauses.ask, WANTED, 60.0)
        await trio.testing.wait_all_tasks_blocked()
        assert session.log.count(TurnPaused.__name__) == 1
        session.open[0].offer(YES)
        await trio.testing.wait_all_tasks_blocked()
        assert session.log.count(ResumeTurn.__name__) == 1
        pauses.end()
        await trio.testing.wait_all_tasks_blocked()
        assert session.log.count(TurnPaused.__name__) == 2
        session.open[1].offer(YES)


@pytest.mark.parametrize("may", [True, False])
async def test_leave_counts_only_if_the_turn_may_go_on(
    autojump_clock: Clock, *, may: bool
) -> None:
    async with virtual(autojump_clock) as system, trio.open_nursery() as nursery:
        session = Session(may=may)
        pauses = PermitPauses(system.spawn(session), "t1", 60.0)
        pauses.begin(1)
        told: list[ApprovalResult] = []

        async def ask() -> None:
            told.append(await pauses.ask(WANTED, 60.0))

        nursery.start_soon(ask)
        await trio.testing.wait_all_tasks_blocked()
        session.open[0].offer(YES)
        await trio.testing.wait_all_tasks_blocked()
        assert told == [YES if may else LOST]


async def test_a_question_that_nobody_answers_is_lost_in_time(
    autojump_clock: Clock,
) -> None:
    async with virtual(autojump_clock) as system:
        session = Session()
        pauses = PermitPauses(system.spawn(session), "t1", 60.0)
        pauses.begin(1)
        began = trio.current_time()
        assert await pauses.ask(WANTED, 30.0) == LOST
        assert trio.current_time() == began + 30.0
        assert session.log.count(ResumeTurn.__name__) == 1
