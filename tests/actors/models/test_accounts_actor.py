"""Proves that reservations end with their calls, and knowledge outlives a failure."""

from __future__ import annotations

import math
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

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
    Outcome,
    OverBudget,
    Reserve,
    Reserved,
    Ruling,
)
from actors.models.pool import PROBE, SHORT, Backend
from runtime.supervision.child import ChildSpec
from runtime.supervision.restarts import Backoff
from runtime.supervision.supervisor import Supervisor, SupervisorConfig
from runtime.system import ActorSystem
from runtime.testing import Probe, wait_settled
from tests.fakes.actors.neighbours import probe
from tests.fakes.models.accounts import Pooled
from tests.support.puppet import virtual

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
            who=SAM,
            model="smart",
            estimate=Usage(6, 6),
            tried=tried,
        )
        ruling: Ruling = await accounts.ask(asked)
        return ruling

    def end(
        self, call: str = "other", outcome: Outcome = "ok", tokens: int = 0
    ) -> None:
        spent = spent_of(tokens) if tokens else None
        ended = CallEnded(
            call=call,
            backend=WORK,
            who=SAM,
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


def granted(ruling: Ruling, backend: Backend = WORK) -> str:
    """Give a reservation's call."""
    assert isinstance(ruling, Reserved)
    assert ruling.backend == backend
    return ruling.call


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
        granted(await bench.reserve())
        assert isinstance(await bench.reserve(), CallLater)
        bench.tell(CancelReserve(bench.turn.actor_ref))
        bench.tell(CancelReserve(bench.turn.actor_ref))
        granted(await bench.reserve())


async def test_the_second_call_waits_while_the_first_may_use_up_the_budget(
    autojump_clock: Clock,
) -> None:
    async with open_bench(autojump_clock, TEN_TOKENS) as bench:
        first = granted(await bench.reserve())
        assert await bench.reserve() == CallLater(2.0, is_held=True)
        bench.end(first, tokens=4)
        bench.end(granted(await bench.reserve()), tokens=6)
        assert isinstance(await bench.reserve(), OverBudget)


async def test_a_turn_that_dies_gives_back_what_it_held(autojump_clock: Clock) -> None:
    async with open_bench(autojump_clock, TEN_TOKENS) as bench:
        mortal = probe(bench.system, "mortal")
        first = granted(await bench.reserve(turn=mortal))
        mortal.actor_ref.kill()
        await wait_settled(bench.system)
        granted(await bench.reserve())
        bench.end(first, "cancelled")  # late, and for the second time
        assert await bench.reserve() == CallLater(2.0, is_held=True)


async def test_what_is_held_and_what_cools_down_outlives_a_failure(
    autojump_clock: Clock,
) -> None:
    async with open_bench(autojump_clock, TEN_TOKENS) as bench:
        bench.end(outcome="rate")
        home = Backend("home", "smart")
        first = granted(await bench.reserve(), home)
        await bench.fail()
        assert await bench.reserve() == CallLater(2.0, is_held=True)
        bench.end(first, tokens=1)
        granted(await bench.reserve(), home)


async def test_after_a_failure_one_call_goes_first_and_one_that_dies_lets_another(
    autojump_clock: Clock,
) -> None:
    async with open_bench(autojump_clock) as bench:
        mortal = probe(bench.system, "mortal")
        tried = frozenset({Backend("home", "smart")})
        granted(await bench.reserve(tried))  # the circuit is closed: all may
        granted(await bench.reserve(tried))
        bench.end(outcome="network")
        await trio.sleep(SHORT)
        granted(await bench.reserve(tried, mortal))
        assert isinstance(await bench.reserve(tried), CallLater)
        mortal.actor_ref.kill()
        await wait_settled(bench.system)
        granted(await bench.reserve(tried))
        await trio.sleep(PROBE)
        granted(await bench.reserve(tried))  # the probe goes on
        bench.end(outcome="ok")
        granted(await bench.reserve(tried))


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
        bench.end(outcome="auth")
        ruling = await bench.reserve()
        assert isinstance(ruling, Reserved)
        assert ruling.backend.account == "home"
        assert await bench.reserve(frozenset({ruling.backend})) == CallLater(
            0.0, kind="auth"
        )
        bench.tell(
            CallEnded(
                call="x",
                backend=ruling.backend,
                who=SAM,
                outcome="auth",
            )
        )
        assert await bench.reserve() == CallLater(math.inf, kind="auth")
