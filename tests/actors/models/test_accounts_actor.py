"""Proves that reservations end with their calls, and knowledge outlives a failure."""

from __future__ import annotations

import math
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

import trio
import trio.testing

from actors import names
from actors.messages.inbound import Usage
from actors.messages.usage import Spent
from actors.models.accounts import Accounts
from actors.models.budget import Budget, Limit, Spender
from actors.models.messages import (
    CallEnded,
    CallLater,
    CancelReserve,
    OverBudget,
    Reserve,
    Reserved,
    RunResumed,
)
from actors.models.pool import Backend
from runtime.supervision.child import ChildSpec
from runtime.supervision.restarts import Backoff
from runtime.supervision.supervisor import Supervisor, SupervisorConfig
from runtime.testing import Probe, wait_settled
from tests.fakes.actors.neighbours import probe
from tests.fakes.models.accounts import Pooled
from tests.support.puppet import virtual

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from actors.models.messages import Outcome, Ruling
    from runtime.system import ActorSystem

    Clock = trio.testing.MockClock

SAM = Spender("anna", "http/sam")
TEN_TOKENS = Budget(scope="all", period="day", hard=Limit(tokens=10))
WORK = Backend("work", "smart")


class Bench:
    """The accounts, under a supervisor, and a turn that asks them."""

    def __init__(self, system: ActorSystem) -> None:
        self.system = system
        self.turn = probe(system, "turn")

    async def reserve(
        self, tried: frozenset[Backend] = frozenset(), turn: Probe | None = None
    ) -> Ruling:
        accounts = self.system.find(names.MODELS)
        assert accounts is not None
        asked = Reserve(
            turn=(turn or self.turn).actor_ref,
            run="m1#1",
            who=SAM,
            model="smart",
            estimate=Usage(6, 6),
            tried=tried,
        )
        ruling: Ruling = await accounts.ask(asked)
        return ruling

    def end(
        self, number: int, outcome: Outcome = "ok", tokens: int = 0, run: str = "m1#1"
    ) -> None:
        spent = spent_of(tokens) if tokens else None
        ended = CallEnded(
            number=number,
            backend=WORK,
            who=SAM,
            run=run,
            outcome=outcome,
            spent=spent,
            retry_after=500.0 if outcome == "rate" else None,
        )
        self.tell(ended)

    def tell(self, message: object) -> None:
        accounts = self.system.find(names.MODELS)
        assert accounts is not None
        accounts.tell(message)

    async def fail(self) -> None:
        """Have the actor fail, until it gives the reason up."""
        self.tell("nonsense")
        await trio.sleep(20)
        await wait_settled(self.system)


def spent_of(tokens: int) -> Spent:
    return Spent(
        provider="smart", model="smart-1", account="work", usage=Usage(tokens, 0)
    )


def place(ruling: Ruling) -> tuple[int, Backend]:
    """Give a reservation's number, and where it is."""
    assert isinstance(ruling, Reserved)
    return ruling.number, ruling.backend


@asynccontextmanager
async def open_bench(clock: Clock, *budgets: Budget) -> AsyncGenerator[Bench]:
    cast = Pooled(budgets=budgets)
    async with virtual(clock) as system:
        spec = ChildSpec(
            name="models", start=lambda: Accounts(cast.services, cast.catalogue())
        )
        config = SupervisorConfig(intensity=50, backoff=Backoff())
        await system.start_root(Supervisor((spec,), config), names.ROOT)
        yield Bench(system)


async def test_a_ruling_that_nobody_waits_for_holds_nothing(
    autojump_clock: Clock,
) -> None:
    async with open_bench(autojump_clock, TEN_TOKENS) as bench:
        place(await bench.reserve())
        assert isinstance(await bench.reserve(), CallLater)
        bench.tell(CancelReserve(bench.turn.actor_ref))
        bench.tell(CancelReserve(bench.turn.actor_ref))
        place(await bench.reserve())


async def test_the_second_call_waits_while_the_first_may_use_up_the_budget(
    autojump_clock: Clock,
) -> None:
    async with open_bench(autojump_clock, TEN_TOKENS) as bench:
        assert place(await bench.reserve()) == (1, WORK)
        assert await bench.reserve() == CallLater(2.0, is_held=True)
        bench.end(1, tokens=4)
        assert place(await bench.reserve()) == (2, WORK)
        bench.end(2, tokens=6)
        assert isinstance(await bench.reserve(), OverBudget)


async def test_a_turn_that_dies_gives_back_what_it_held(autojump_clock: Clock) -> None:
    async with open_bench(autojump_clock, TEN_TOKENS) as bench:
        mortal = probe(bench.system, "mortal")
        assert place(await bench.reserve(turn=mortal)) == (1, WORK)
        mortal.actor_ref.kill()
        await wait_settled(bench.system)
        assert place(await bench.reserve()) == (2, WORK)
        bench.end(1, "cancelled")  # late, and for the second time
        assert await bench.reserve() == CallLater(2.0, is_held=True)


async def test_what_is_held_and_what_cools_down_outlives_a_failure(
    autojump_clock: Clock,
) -> None:
    async with open_bench(autojump_clock, TEN_TOKENS) as bench:
        bench.end(99, "rate")
        home = Backend("home", "smart")
        assert place(await bench.reserve()) == (1, home)
        await bench.fail()
        assert await bench.reserve() == CallLater(2.0, is_held=True)
        bench.end(1, tokens=1)
        assert place(await bench.reserve()) == (2, home)


async def test_who_died_during_a_failure_holds_nothing(autojump_clock: Clock) -> None:
    async with open_bench(autojump_clock, TEN_TOKENS) as bench:
        mortal = probe(bench.system, "mortal")
        await bench.reserve(turn=mortal)
        bench.tell("nonsense")
        mortal.actor_ref.kill()
        await trio.sleep(20)
        assert isinstance(await bench.reserve(), Reserved)


async def test_when_no_account_is_let_in_nobody_has_to_wait(
    autojump_clock: Clock,
) -> None:
    async with open_bench(autojump_clock) as bench:
        bench.end(1, "auth")
        ruling = await bench.reserve()
        assert isinstance(ruling, Reserved)
        assert ruling.backend.account == "home"
        assert await bench.reserve(frozenset({ruling.backend})) == CallLater(0.0)
        bench.tell(
            CallEnded(
                number=2,
                backend=ruling.backend,
                who=SAM,
                run="m1#1",
                outcome="auth",
            )
        )
        assert await bench.reserve() == CallLater(math.inf)


async def test_an_earlier_attempt_s_calls_are_counted_once(
    autojump_clock: Clock,
) -> None:
    async with open_bench(autojump_clock, TEN_TOKENS) as bench:
        await bench.reserve()
        bench.end(1, tokens=5)
        # This process saw the first attempt itself; of the other's it hears now.
        for _ in range(2):
            bench.tell(RunResumed("m1#1", "m1#2", SAM, (spent_of(5),)))
        assert isinstance(await bench.reserve(), Reserved)
        bench.end(2)
        bench.tell(RunResumed("m2#1", "m2#2", SAM, (spent_of(5),)))
        assert isinstance(await bench.reserve(), OverBudget)
        await bench.fail()
        assert isinstance(await bench.reserve(), OverBudget)
