"""Proves that other models are taken over under load, and nothing is left open."""

from __future__ import annotations

import math
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

import trio
import trio.testing

from actors import names
from actors.messages.inbound import Usage
from actors.messages.usage import Spent
from actors.models.accounts import CLOSE_WITHIN, Accounts
from actors.models.budget import Budget, Limit, Spender
from actors.models.catalogue import Catalogue, Prices
from actors.models.messages import (
    CallEnded,
    CallLater,
    Outcome,
    OverBudget,
    ReplaceCatalogue,
    Reserve,
    Reserved,
    Ruling,
)
from actors.models.pool import Backend, ModelOffer
from runtime.actor.ref import ActorRef
from runtime.supervision.child import ChildSpec
from runtime.supervision.restarts import Backoff
from runtime.supervision.supervisor import Supervisor, SupervisorConfig
from runtime.system import ActorSystem
from runtime.testing import Probe, wait_settled
from tests.fakes.actors.neighbours import probe
from tests.fakes.company.company import Cast, FakeModel
from tests.support.puppet import virtual

Clock = trio.testing.MockClock

SAM = Spender("anna", "http/sam")
TEN_TOKENS = Budget(scope="all", period="day", hard=Limit(tokens=10))


class Client(FakeModel):
    """Counts how often it was closed."""

    def __init__(self, *, hangs: bool = False) -> None:
        super().__init__()
        self.closed = 0
        self._hangs = hangs

    async def aclose(self) -> None:
        self.closed += 1
        if self._hangs:
            await trio.sleep_forever()


def stock(
    *accounts: str, name: str = "smart", budgets: tuple[Budget, ...] = ()
) -> tuple[Catalogue, list[Client]]:
    """Make a catalogue of one model on some accounts, and its clients."""
    clients = {each: Client() for each in accounts}
    offer = ModelOffer(name=name, model=f"{name}-1", accounts=accounts)
    made = Catalogue(offers={name: offer}, clients=clients, budgets=budgets)
    return made, [*clients.values()]


class Bench:
    """The accounts, under a supervisor, and a turn that asks them."""

    def __init__(self, system: ActorSystem) -> None:
        self.system = system
        self.turn = probe(system, "turn")

    @property
    def models(self) -> ActorRef:
        found = self.system.find(names.MODELS)
        assert found is not None
        return found

    async def reserve(self, turn: Probe | None = None, model: str = "smart") -> Ruling:
        asked = Reserve(
            turn=(turn or self.turn).actor_ref,
            who=SAM,
            model=model,
            otherwise="smart",
        )
        ruling: Ruling = await self.models.ask(asked)
        return ruling

    async def granted(self, turn: Probe | None = None) -> Reserved:
        ruling = await self.reserve(turn)
        assert isinstance(ruling, Reserved)
        return ruling

    async def replace(self, made: Catalogue, *renewed: str) -> None:
        message = ReplaceCatalogue(made, frozenset(renewed))
        await self.models.ask(message)

    async def end(
        self, call: Reserved, outcome: Outcome = "ok", tokens: int = 0
    ) -> None:
        ended = CallEnded(
            call=call.call,
            backend=call.backend,
            who=SAM,
            outcome=outcome,
            spent=call.spent(Usage(tokens, 0)) if tokens else None,
        )
        self.models.tell(ended)
        await wait_settled(self.system)


@asynccontextmanager
async def open_bench(clock: Clock, made: Catalogue) -> AsyncGenerator[Bench]:
    services = Cast().services
    async with virtual(clock) as system:
        spec = ChildSpec(name="models", start=lambda: Accounts(services, made))
        config = SupervisorConfig(intensity=50, backoff=Backoff())
        await system.start_root(Supervisor((spec,), config), names.ROOT)
        yield Bench(system)


async def test_a_call_under_way_keeps_its_client_until_it_ends(
    autojump_clock: Clock,
) -> None:
    old, (work,) = stock("work")
    new, (other,) = stock("work")
    async with open_bench(autojump_clock, old) as bench:
        first, second = await bench.granted(), await bench.granted()
        await bench.replace(new)
        assert (first.client, (await bench.granted()).client) == (work, other)
        await bench.end(first)
        assert work.closed == 0
        await bench.end(second)
        assert work.closed == 1
        await bench.end(second)
        assert (work.closed, other.closed) == (1, 0)
    assert (work.closed, other.closed) == (1, 1)


async def test_who_has_no_call_is_closed_at_once(autojump_clock: Clock) -> None:
    old, clients = stock("work", "home")
    async with open_bench(autojump_clock, old) as bench:
        await bench.replace(stock("work")[0])
        assert [each.closed for each in clients] == [1, 1]


async def test_a_turn_that_dies_lets_go_of_its_client(autojump_clock: Clock) -> None:
    old, (work,) = stock("work")
    async with open_bench(autojump_clock, old) as bench:
        mortal = probe(bench.system, "mortal")
        await bench.granted(mortal)
        await bench.replace(stock("work")[0])
        mortal.actor_ref.kill()
        await wait_settled(bench.system)
        assert work.closed == 1


async def test_a_client_that_does_not_close_keeps_nobody_waiting(
    autojump_clock: Clock,
) -> None:
    stuck = Client(hangs=True)
    offer = ModelOffer(name="smart", model="smart-1", accounts=("work",))
    old = Catalogue(offers={"smart": offer}, clients={"work": stuck})
    new, (other,) = stock("work")
    async with open_bench(autojump_clock, old) as bench:
        began = trio.current_time()
        await bench.replace(new)
        assert trio.current_time() - began == CLOSE_WITHIN
        assert (await bench.granted()).client is other


async def test_cool_downs_of_who_stays_are_kept(autojump_clock: Clock) -> None:
    async with open_bench(autojump_clock, stock("work", "home")[0]) as bench:
        await bench.end(await bench.granted(), "quota")
        await bench.replace(stock("work", "home")[0])
        assert (await bench.granted()).backend.account == "home"


async def test_an_account_with_another_key_is_asked_again(
    autojump_clock: Clock,
) -> None:
    async with open_bench(autojump_clock, stock("work")[0]) as bench:
        late = await bench.granted()
        await bench.end(await bench.granted(), "auth")
        assert await bench.reserve() == CallLater(math.inf, kind="auth")
        await bench.replace(stock("work")[0], "work")
        await bench.granted()
        await bench.end(late, "auth")  # says nothing of the new key
        await bench.granted()


async def test_a_turn_whose_model_is_gone_gets_its_agent_s(
    autojump_clock: Clock,
) -> None:
    async with open_bench(autojump_clock, stock("work")[0]) as bench:
        other = await bench.reserve(model="gone")
        assert isinstance(other, Reserved)
        assert other.backend == Backend("work", "smart")
        await bench.replace(stock("work", name="clever")[0])
        assert await bench.reserve(model="gone") == CallLater(math.inf)
        await bench.end(other, "rate")
        assert await bench.reserve() == CallLater(math.inf)


async def test_new_budgets_count_what_was_spent_before(autojump_clock: Clock) -> None:
    async with open_bench(autojump_clock, stock("work")[0]) as bench:
        await bench.end(await bench.granted(), tokens=10)
        await bench.replace(stock("work", budgets=(TEN_TOKENS,))[0])
        assert isinstance(await bench.reserve(), OverBudget)
        await bench.replace(stock("work")[0])
        await bench.granted()


async def test_new_budgets_do_not_count_what_was_spent_yesterday(
    autojump_clock: Clock,
) -> None:
    async with open_bench(autojump_clock, stock("work")[0]) as bench:
        await bench.end(await bench.granted(), tokens=10)
        await trio.sleep(86_400)
        await bench.replace(stock("work", budgets=(TEN_TOKENS,))[0])
        await bench.granted()


async def test_what_was_replaced_outlives_a_failure(autojump_clock: Clock) -> None:
    old, (work,) = stock("work")
    new, (other,) = stock("work")
    async with open_bench(autojump_clock, old) as bench:
        first = await bench.granted()
        await bench.replace(new)
        bench.models.tell("nonsense")
        await trio.sleep(20)
        assert (await bench.granted()).client is other
        await bench.end(first)
        assert (work.closed, other.closed) == (1, 0)


def test_what_a_call_took_is_priced_as_when_it_began() -> None:
    made, (client,) = stock("work")
    prices = Prices(1e6, 2e6, version="v1")
    offer = made.offers["smart"]
    call = Reserved("c1", Backend("work", "smart"), client, offer, prices)
    assert call.spent(Usage(2, 1)) == Spent(
        provider="smart",
        model="smart-1",
        account="work",
        usage=Usage(2, 1),
        cost=4.0,
        prices="v1",
    )
