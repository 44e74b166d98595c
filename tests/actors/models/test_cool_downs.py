"""Proves that nodes learn of each other's cool-downs, and write no more than needed."""

from __future__ import annotations

import math
from contextlib import AsyncExitStack

import trio
import trio.testing
from hypothesis import given, strategies as st

from actors import names
from actors.errors import ModelFault
from actors.models.accounts import Accounts
from actors.models.budget import Spender
from actors.models.cool_downs import COOL_DOWN, CoolDowns
from actors.models.messages import (
    CallEnded,
    CallLater,
    Outcome,
    ReadCoolDowns,
    Reserve,
    Reserved,
    Ruling,
)
from actors.models.pool import (
    Backend,
    BackendQuery,
    Circuit,
    LearntFailure,
    NoBackend,
    Pool,
)
from runtime.supervision.child import ChildSpec
from runtime.supervision.restarts import Backoff
from runtime.supervision.supervisor import Supervisor, SupervisorConfig
from runtime.system import ActorSystem
from runtime.testing import wait_settled
from tests.fakes.actors.neighbours import probe
from tests.fakes.models.accounts import Pooled
from tests.fakes.store.in_memory import MemoryStore
from tests.support.puppet import virtual

Clock = trio.testing.MockClock

SAM = Spender("anna", "http/sam")
WORK, HOME = Backend("work", "smart"), Backend("home", "smart")


class Node:
    """The accounts of one node, under a supervisor, and a turn that asks them.

    Args:
        system: the node's actors.
        cast: its store and services.
    """

    def __init__(self, system: ActorSystem, cast: Pooled) -> None:
        self.system = system
        self.cast = cast
        self.turn = probe(system, "turn")

    def tell(self, message: object) -> None:
        accounts = self.system.find(names.MODELS)
        assert accounts is not None
        accounts.tell(message)

    async def end(
        self,
        outcome: Outcome,
        retry_after: float | None = None,
        backend: Backend = WORK,
    ) -> None:
        """Have a call end."""
        ended = CallEnded(
            call="x",
            backend=backend,
            who=SAM,
            outcome=outcome,
            retry_after=retry_after,
        )
        self.tell(ended)
        await wait_settled(self.system)

    async def look(self) -> None:
        """Do what the keeper does when another node has changed something."""
        if COOL_DOWN in await self.cast.store.changes_outside():
            self.tell(ReadCoolDowns())
        await wait_settled(self.system)

    async def reserve(self, *tried: Backend) -> Ruling:
        accounts = self.system.find(names.MODELS)
        assert accounts is not None
        asked = Reserve(
            turn=self.turn.actor_ref, who=SAM, model="smart", tried=frozenset(tried)
        )
        ruling: Ruling = await accounts.ask(asked)
        return ruling

    async def asks(self) -> str:
        """Say which account is asked; empty: none may be."""
        ruling = await self.reserve()
        return ruling.backend.account if isinstance(ruling, Reserved) else ""

    async def written(self) -> int:
        """Count how often a cool-down was written."""
        rows = await self.cast.store.entries(COOL_DOWN)
        return sum(row.version for row in rows)


async def open_node(
    stack: AsyncExitStack, clock: Clock, store: MemoryStore, *, is_node: bool = True
) -> Node:
    """Start the accounts of a node."""
    cast = Pooled(store=store)
    services = cast.services
    if is_node:
        services.duties.parts = frozenset()
    system = await stack.enter_async_context(virtual(clock))
    spec = ChildSpec(name="models", start=lambda: Accounts(services, cast.catalogue()))
    config = SupervisorConfig(intensity=50, backoff=Backoff())
    await system.start_root(Supervisor((spec,), config), names.ROOT)
    node = Node(system, cast)
    await node.look()
    return node


async def open_two(stack: AsyncExitStack, clock: Clock) -> tuple[Node, Node]:
    """Start two nodes of one company."""
    store = MemoryStore()
    here = await open_node(stack, clock, store)
    return here, await open_node(stack, clock, MemoryStore(beside=store))


async def test_an_account_that_is_limited_is_left_alone_by_all_nodes(
    autojump_clock: Clock,
) -> None:
    async with AsyncExitStack() as stack:
        here, there = await open_two(stack, autojump_clock)
        assert await there.asks() == "work"
        await here.end("rate", retry_after=500.0)
        await here.end("rate", retry_after=500.0)
        assert await here.written() == 1
        await there.look()
        await there.end("rate", retry_after=500.0, backend=HOME)
        await here.look()
        for node in (here, there):
            ruling = await node.reserve()
            assert isinstance(ruling, CallLater)
            assert 490.0 <= ruling.seconds <= 501.0
            assert ruling.kind == "rate"
        await trio.sleep(501.0)
        assert await there.asks() == "work"


async def test_a_key_that_one_node_is_refused_is_not_tried_by_the_others_until_it_works(
    autojump_clock: Clock,
) -> None:
    async with AsyncExitStack() as stack:
        here, there = await open_two(stack, autojump_clock)
        await here.end("auth")
        await there.look()
        assert await there.asks() == "home"
        await here.end("ok")  # had begun before, and proves nothing
        await trio.sleep(1.0)
        await here.end("ok")
        await there.look()
        assert await there.asks() == "work"
        assert await here.written() == 2


async def test_a_circuit_that_closes_at_one_node_closes_at_all(
    autojump_clock: Clock,
) -> None:
    async with AsyncExitStack() as stack:
        here, there = await open_two(stack, autojump_clock)
        await here.end("overload")
        await there.look()
        assert await there.asks() == "home"
        await there.end("ok")
        await here.look()
        assert await here.asks() == "work"
        assert await here.written() == 2


async def test_what_was_said_before_a_node_came_is_of_no_known_age_and_passed_over(
    autojump_clock: Clock,
) -> None:
    async with AsyncExitStack() as stack:
        store = MemoryStore()
        here = await open_node(stack, autojump_clock, store)
        await here.end("rate", retry_after=500.0)
        there = await open_node(stack, autojump_clock, MemoryStore(beside=store))
        await here.end("rate", retry_after=500.0, backend=HOME)
        await there.look()
        assert await there.asks() == "work"
        assert isinstance(await there.reserve(WORK), CallLater)


async def test_what_others_said_outlives_a_failure_of_the_actor(
    autojump_clock: Clock,
) -> None:
    async with AsyncExitStack() as stack:
        here, there = await open_two(stack, autojump_clock)
        await here.end("rate", retry_after=500.0)
        await there.look()
        there.tell("nonsense")
        await trio.sleep(20.0)
        assert await there.asks() == "home"
        await here.end("rate", retry_after=500.0, backend=HOME)
        await there.look()
        assert await there.asks() == ""


async def test_a_node_s_own_cool_down_grows_no_longer_by_being_read(
    autojump_clock: Clock,
) -> None:
    async with AsyncExitStack() as stack:
        here, there = await open_two(stack, autojump_clock)
        await here.end("rate", retry_after=500.0)
        await trio.sleep(400.0)
        await there.end("rate", retry_after=1.0, backend=HOME)
        await here.look()
        await trio.sleep(101.0)
        assert await here.asks() == "work"


async def test_a_process_that_is_alone_writes_nothing(autojump_clock: Clock) -> None:
    async with AsyncExitStack() as stack:
        node = await open_node(stack, autojump_clock, MemoryStore(), is_node=False)
        await node.end("rate", retry_after=500.0)
        await node.end("auth", backend=HOME)
        assert await node.written() == 0


async def test_a_network_that_fails_is_nobody_else_s(autojump_clock: Clock) -> None:
    async with AsyncExitStack() as stack:
        here, _ = await open_two(stack, autojump_clock)
        await here.end("network")
        assert await here.written() == 0
        await here.end("network", retry_after=60.0)
        assert await here.written() == 1


async def test_a_disk_that_is_away_does_not_make_a_cool_down_longer(
    autojump_clock: Clock,
) -> None:
    async with AsyncExitStack() as stack:
        here, there = await open_two(stack, autojump_clock)
        here.cast.store._fails_at = range(1_000)
        await here.end("rate", retry_after=500.0)
        await trio.sleep(400.0)
        here.cast.store._fails_at = ()
        await trio.sleep(2.0)
        await there.look()
        assert await there.asks() == "home"
        await trio.sleep(100.0)
        assert await there.asks() == "work"


KINDS = st.sampled_from(("rate", "overload", "quota", "auth", "network", "timeout"))
SECONDS = st.floats(0, 4000)


@given(KINDS, SECONDS | st.none(), SECONDS, SECONDS)
def test_what_is_learnt_makes_no_cool_down_shorter(
    kind: ModelFault, asked: float | None, required: float, guessed: float
) -> None:
    pool = Pool(Pooled().catalogue().offers, {})
    query = BackendQuery(model="smart", tried=frozenset({HOME}))
    pool.failed(WORK, kind, asked, now=0.0)
    before = pool.free_at(WORK)
    failure = LearntFailure(required=required, guessed=guessed, kind="rate", why="")
    pool.learn(WORK, failure, 1.0)
    free_at = pool.free_at(WORK)
    assert free_at >= max(before, 1.0 + required, 1.0 + guessed)
    assert pool.choose(query, math.nextafter(free_at, -1)) != WORK or (
        pool.last_resort_at(WORK) < free_at
    )
    assert pool.choose(query, free_at) == WORK
    if required > 0:
        found = pool.choose(query, math.nextafter(1.0 + required, 0))
        assert isinstance(found, NoBackend)


@given(st.lists(st.tuples(KINDS, SECONDS | st.none(), SECONDS), max_size=20))
def test_others_know_of_a_cool_down_but_for_a_second_and_are_told_once(
    failures: list[tuple[ModelFault, float | None, float]],
) -> None:
    circuit, told_until, now = Circuit(), -math.inf, 0.0
    mine = CoolDowns("me", MemoryStore())
    for kind, asked, later in failures:
        now += later
        circuit.failed(kind, asked, now)
        circuit.kind = kind
        told = mine.changed(WORK, circuit, now)
        assert mine.changed(WORK, circuit, now) is None
        if told is not None:
            assert told.failure is not None
            assert told.failure.guessed > 0
            told_until = now + told.failure.guessed
        if circuit.required_until > now:
            assert max(told_until, now) >= circuit.required_until - 1.0 - 1e-6
    closed = mine.changed(WORK, None, now)
    assert (closed is None) == (told_until == -math.inf)
    assert closed is None or closed.failure is None
