"""Proves that an agent starts and cancels turns, and answers for those that break."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

import trio.testing

from actors import names
from actors.agents.agent import Agent, SessionStarted
from actors.protocol import (
    CancelTurn,
    Failed,
    Finished,
    RouteUnanswered,
    RunTurn,
    StartTurn,
    TurnEnded,
)
from runtime.actor.messages import Keyed
from runtime.actor.ref import ActorRef
from runtime.supervision.keyed import InterruptKey, KeyGivenUp, StopKey
from runtime.system import ActorSystem
from runtime.testing import Probe
from tests.fakes.actors.neighbours import probe, words
from tests.support.puppet import virtual

Clock = trio.testing.MockClock


class Office:
    """An agent between its turns and a session."""

    def __init__(self, system: ActorSystem) -> None:
        self.router = probe(system, names.ROUTER)
        self.turns = probe(system, names.turns("anna"))
        self.session = probe(system, "session")
        self.agent: ActorRef = system.spawn(Agent("anna"), name=names.agent("anna"))

    def start(self, turn_id: str = "t1") -> StartTurn:
        return StartTurn(
            turn_id=turn_id,
            generation=1,
            session=self.session.actor_ref,
            inbound=words(),
            history=(),
        )


@asynccontextmanager
async def open_office(clock: Clock) -> AsyncGenerator[Office]:
    async with virtual(clock) as system:
        yield Office(system)


async def told(probe: Probe) -> list[object]:
    await trio.testing.wait_all_tasks_blocked()
    return list(probe.received)


async def test_a_question_gets_a_turn_of_its_own(autojump_clock: Clock) -> None:
    async with open_office(autojump_clock) as office:
        start = office.start()
        office.agent.tell(start)
        assert await told(office.turns) == [Keyed("t1", RunTurn(start))]


async def test_a_cancelled_turn_is_ended_whether_it_has_begun_or_not(
    autojump_clock: Clock,
) -> None:
    async with open_office(autojump_clock) as office:
        office.agent.tell(office.start())
        office.agent.tell(CancelTurn("t1"))
        assert (await told(office.turns))[1:] == [InterruptKey("t1"), StopKey("t1")]


async def test_what_ran_for_a_session_that_begins_anew_is_cancelled(
    autojump_clock: Clock,
) -> None:
    async with open_office(autojump_clock) as office:
        office.agent.tell(office.start())
        office.agent.tell(SessionStarted(office.router.actor_ref))  # somebody else
        office.agent.tell(SessionStarted(office.session.actor_ref))
        office.agent.tell(KeyGivenUp("t1", "BugError"))
        assert (await told(office.turns))[1:] == [InterruptKey("t1"), StopKey("t1")]
        assert await told(office.session) == []


async def test_a_turn_that_breaks_is_answered_for(autojump_clock: Clock) -> None:
    async with open_office(autojump_clock) as office:
        office.agent.tell(office.start())
        office.agent.tell(KeyGivenUp("t1", "BugError"))
        (ended,) = await told(office.session)
        assert isinstance(ended, TurnEnded)
        assert isinstance(ended.outcome, Failed)
        assert ended.outcome.reason == "bug"


async def test_what_ends_well_or_is_cancelled_is_not_answered_for(
    autojump_clock: Clock,
) -> None:
    async with open_office(autojump_clock) as office:
        for turn_id in ("t1", "t2"):
            office.agent.tell(office.start(turn_id))
        office.agent.tell(TurnEnded("t1", Finished("yes")))
        office.agent.tell(CancelTurn("t2"))
        for turn_id in ("t1", "t2", "t3"):
            office.agent.tell(KeyGivenUp(turn_id, "BugError"))
        assert await told(office.session) == []


async def test_an_agent_that_starts_has_the_router_look_for_what_was_left(
    autojump_clock: Clock,
) -> None:
    async with open_office(autojump_clock) as office:
        assert await told(office.router) == [RouteUnanswered()]


async def test_before_there_is_a_router_nobody_is_asked(autojump_clock: Clock) -> None:
    async with virtual(autojump_clock) as system:
        agent = system.spawn(Agent("anna"))
        assert not system.dead_letters.counts
        agent.tell("nonsense")
        await trio.testing.wait_all_tasks_blocked()
        assert not agent.is_alive()
