"""Proves that every stored message is heard by the right sessions or settled."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Collection
from contextlib import asynccontextmanager
from dataclasses import replace

import msgspec
import pytest
import trio
import trio.testing

from actors import names
from actors.inbound.recovery import (
    RECOVER_AFTER,
    ROUTE_EVERY,
    ROUTED_AT_ONCE,
    SWEEP_EVERY,
)
from actors.inbound.router import Router, copy_id
from actors.journal.commits import as_accept
from actors.messages.inbound import Address, DelegationChain, Inbound
from actors.messages.keys import chat_partition
from actors.messages.tracing import Trace, TracedStep
from actors.protocol import (
    Deliver,
    DrainOutbox,
    Hear,
    MessageSettled,
    Route,
    RouteArrived,
    RouteUnanswered,
    StopDelegated,
)
from actors.rules.groups.assignments import StickyRoutes
from actors.rules.groups.routes import routing_table
from actors.services import Duties
from runtime.actor.messages import Keyed
from runtime.actor.ref import ActorRef
from runtime.errors import CorruptError
from runtime.store.port import Done
from runtime.store.rows import Answered, Commit, Settle, StoredMessage
from runtime.testing import Probe
from tests.fakes.actors.neighbours import make_services, of_kind, probe, words
from tests.fakes.company.company import EPOCH
from tests.fakes.store.in_memory import MemoryStore
from tests.support.puppet import virtual

Clock = trio.testing.MockClock


class Crossing:
    """A router, the sessions of two agents, and the connector."""

    def __init__(self, router: ActorRef, probes: dict[str, Probe]) -> None:
        self.router = router
        self.connector = probes["connector"]
        self.sessions = probes

    async def heard(self) -> dict[str, list[Inbound]]:
        await trio.testing.wait_all_tasks_blocked()
        return {
            name: [
                keyed.message.inbound
                for keyed in of_kind(sessions, Keyed)
                if isinstance(keyed.message, Hear)
            ]
            for name, sessions in self.sessions.items()
            if name != "connector"
        }


@asynccontextmanager
async def open_crossing(
    clock: Clock,
    store: MemoryStore,
    default_agent: str = "anna",
    duties: Duties | None = None,
    trace: Trace | None = None,
) -> AsyncGenerator[Crossing]:
    async with virtual(clock) as system:
        probes = {name: probe(system, names.sessions(name)) for name in ("anna", "ben")}
        probes["connector"] = probe(system, names.connector("fake"))
        table = routing_table(("anna", "ben"), default_agent=default_agent)
        services = replace(make_services(store), trace=trace)
        if duties is not None:
            services = replace(services, duties=duties)
        router = Router(StickyRoutes(table), frozenset({"fake"}), services)
        yield Crossing(system.spawn(router, name=names.ROUTER), probes)


async def stored(store: MemoryStore, *inbounds: Inbound) -> None:
    rows = tuple(as_accept(each, EPOCH) for each in inbounds)
    await store.commit(Commit(at=EPOCH, accepts=rows))


async def test_a_message_is_heard_by_the_session_of_its_sender(
    autojump_clock: Clock,
) -> None:
    async with open_crossing(autojump_clock, MemoryStore()) as crossing:
        crossing.router.tell(Route(words()))
        assert await crossing.heard() == {"anna": [words()], "ben": []}
        (keyed,) = of_kind(crossing.sessions["anna"], Keyed)
        assert keyed == Keyed("anna/fake/room//zoe", Hear(words()))


async def test_what_was_accepted_before_is_heard_at_the_start(
    autojump_clock: Clock,
) -> None:
    store = MemoryStore()
    elsewhere = words(number=2, address=Address("gone", "room"))
    await stored(store, words(), elsewhere, words(number=3))
    await store.commit(Commit(at=1.0, settles=(Settle("m3", "replied"),)))
    async with open_crossing(autojump_clock, store) as crossing:
        assert (await crossing.heard())["anna"] == [words()]


async def test_what_another_node_took_in_for_its_connector_is_heard_here(
    autojump_clock: Clock,
) -> None:
    store, duties = MemoryStore(), Duties()
    duties.is_shared = duties.is_leased = lambda connector: connector == "bot"
    duties.parts = frozenset({chat_partition("bot", "room")})
    own = words(address=Address("bot", "room"))
    other = words(number=2, address=Address("bot", "another room"))
    async with open_crossing(autojump_clock, store, duties=duties) as crossing:
        await stored(store, own, other)
        crossing.router.tell(RouteArrived())
        assert (await crossing.heard())["anna"] == [own]
        heard = of_kind(crossing.sessions["anna"], Keyed)[0].message
        assert heard.arrived_at == EPOCH  # by the clock of the other node
        duties.is_leaving = True
        late = words(number=3, address=Address("bot", "room"))
        await stored(store, late)
        crossing.router.tell(RouteArrived())
        assert (await crossing.heard())["anna"] == [own]  # for its successor


async def test_a_part_that_comes_is_worked_on_at_once_and_in_order(
    autojump_clock: Clock,
) -> None:
    store, duties = MemoryStore(), Duties()
    duties.is_shared = lambda connector: connector == "fake"
    duties.parts = frozenset()
    other = words(number=4, address=Address("fake", "another room"))
    await stored(store, words(), other)
    async with open_crossing(autojump_clock, store, duties=duties) as crossing:
        began = trio.current_time()
        duties.parts = frozenset({chat_partition("fake", "room")})
        crossing.router.tell(RouteArrived())
        assert (await crossing.heard())["anna"] == [words()]
        assert trio.current_time() - began < RECOVER_AFTER / 2
        # An agent has just started, which is given time, as another part comes.
        crossing.router.tell(RouteUnanswered())
        duties.parts |= {chat_partition("fake", "another room")}
        crossing.router.tell(RouteArrived())
        new = words(number=5, address=Address("fake", "another room"))
        await stored(store, new)
        crossing.router.tell(Route(new))
        await trio.sleep(2 * RECOVER_AFTER)
        heard = (await crossing.heard())["anna"]
        assert [x for x in heard if x != words()] == [other, new]


async def test_chats_of_other_nodes_are_left_to_them_until_they_are_ours(
    autojump_clock: Clock,
) -> None:
    store, duties = MemoryStore(), Duties()
    duties.is_shared = lambda connector: connector == "fake"
    duties.parts = frozenset()
    await stored(store, words())
    async with open_crossing(autojump_clock, store, duties=duties) as crossing:
        late = words(number=2)
        await stored(store, late)
        crossing.router.tell(Route(late))  # came in here, and is theirs
        assert (await crossing.heard())["anna"] == []
        await trio.sleep(SWEEP_EVERY + 1.0)
        assert (await crossing.heard())["anna"] == []
        duties.parts = frozenset({chat_partition("fake", "room")})
        crossing.router.tell(RouteUnanswered())
        await trio.sleep(2 * RECOVER_AFTER)
        assert (await crossing.heard())["anna"] == [words(), late]


async def test_a_part_that_is_closed_begins_nothing_and_forgets_nothing(
    autojump_clock: Clock,
) -> None:
    store, duties = MemoryStore(), Duties()
    duties.is_shared = lambda connector: connector == "fake"
    part = chat_partition("fake", "room")
    duties.parts = frozenset({part})
    await stored(store, words())
    async with open_crossing(autojump_clock, store, duties=duties) as crossing:
        assert (await crossing.heard())["anna"] == [words()]
        duties.closed = frozenset({part})
        late = words(number=2)
        await stored(store, late)
        crossing.router.tell(Route(late))
        crossing.router.tell(RouteArrived())
        assert (await crossing.heard())["anna"] == [words()]
        duties.closed = frozenset()
        crossing.router.tell(RouteArrived())
        assert (await crossing.heard())["anna"] == [words(), late]


async def test_a_copy_that_is_stored_while_its_part_is_closed_waits_as_all_else_does(
    autojump_clock: Clock,
) -> None:
    store, duties = MemoryStore(fails_at=(2, 3)), Duties()
    duties.is_shared = lambda connector: connector == "fake"
    part = chat_partition("fake", "room")
    duties.parts = frozenset({part})
    inbound = words("@anna @ben hello")
    await stored(store, inbound)
    async with open_crossing(autojump_clock, store, duties=duties) as crossing:
        await trio.testing.wait_all_tasks_blocked()
        duties.closed = frozenset({part})
        assert len(await store.unsettled()) == 1, "before the copy is stored"
        await trio.sleep(5.0)
        heard = await crossing.heard()
        assert len(await store.unsettled()) == 2
        assert ([x.id for x in heard["anna"]], heard["ben"]) == ([inbound.id], [])
        duties.closed = frozenset()
        crossing.router.tell(RouteArrived())
        heard = await crossing.heard()
        assert len(heard["anna"]) == 1
        assert [x.copy_of for x in heard["ben"]] == [1]


async def test_what_another_node_stored_is_heard_at_once_and_nothing_twice(
    autojump_clock: Clock,
) -> None:
    store = Unreadable()
    async with open_crossing(autojump_clock, store) as crossing:
        await crossing.heard()
        sent = [words(number=number) for number in range(1, 5)]
        await stored(store, sent[0])
        crossing.router.tell(Route(sent[0]))
        await stored(store, *sent[1:3])
        crossing.router.tell(RouteArrived())
        crossing.router.tell(RouteArrived())
        assert (await crossing.heard())["anna"] == sent[:3]
        assert trio.current_time() < RECOVER_AFTER
        await stored(store, sent[3])
        store.failures = 1
        crossing.router.tell(RouteArrived())
        await trio.sleep(2 * RECOVER_AFTER)
        assert (await crossing.heard())["anna"] == sent


def test_what_is_not_shared_is_the_work_of_one() -> None:
    duties = Duties()
    assert duties.has_chat("fake", "room")
    duties.parts, duties.has_rest = frozenset({7}), False
    duties.is_shared = lambda connector: connector == "http"
    assert duties.has("http", 7)
    assert not duties.has("http", 8)
    assert not duties.has("fake", 7)
    duties.has_rest = True
    assert duties.has("fake", 8)
    assert not duties.has("http", 8)


async def test_who_was_restarted_hears_again_what_is_not_settled(
    autojump_clock: Clock,
) -> None:
    store = MemoryStore()
    async with open_crossing(autojump_clock, store) as crossing:
        await crossing.heard()
        await stored(store, words())
        crossing.router.tell(RouteUnanswered())
        crossing.router.tell(RouteUnanswered())
        await trio.sleep(5)
        assert (await crossing.heard())["anna"] == [words()]


@pytest.mark.parametrize("body", [b"{", b"\xff", b'{"id": 1}', b'{"id": "\xff"}'])
async def test_a_message_that_cannot_be_read_is_left_alone_and_keeps_nobody_else(
    body: bytes, autojump_clock: Clock
) -> None:
    store = MemoryStore()
    damaged = msgspec.structs.replace(as_accept(words(), 1.0), body=body)
    await store.commit(Commit(at=1.0, accepts=(damaged,)))
    await stored(store, words(number=2))
    async with open_crossing(autojump_clock, store) as crossing:
        assert (await crossing.heard())["anna"] == [words(number=2)]
        crossing.router.tell(RouteUnanswered())
        await trio.sleep(5)
        assert (await crossing.heard())["anna"] == [words(number=2)] * 2
        assert crossing.router.is_alive()
        assert crossing.connector.received == [DrainOutbox()]
    assert [row.id for row in await store.unsettled()] == ["m1", "m2"]


class Unreadable(MemoryStore):
    """Cannot be read for a while."""

    failures = 0

    async def unsettled(self, after: int = 0, limit: int = 1000) -> tuple[object, ...]:  # type: ignore[override]
        if self.failures:
            self.failures -= 1
            self._closed = True
        try:
            return await super().unsettled(after, limit)
        finally:
            self._closed = False


async def test_a_disk_that_cannot_be_read_is_read_later(autojump_clock: Clock) -> None:
    store = Unreadable()
    async with open_crossing(autojump_clock, store) as crossing:
        await crossing.heard()
        await stored(store, words())
        store.failures = 3
        crossing.router.tell(RouteUnanswered())
        await trio.sleep(10)
        assert (await crossing.heard())["anna"] == [words()]


async def test_two_who_are_mentioned_hear_it_when_the_copy_is_stored(
    autojump_clock: Clock,
) -> None:
    store = MemoryStore(fails_at=(2, 3))
    inbound = words("@anna @ben hello")
    await stored(store, inbound)
    async with open_crossing(autojump_clock, store) as crossing:
        await crossing.heard()
        assert (await crossing.heard()) == {"anna": [], "ben": []}
        await trio.sleep(5)
        heard = await crossing.heard()
    (first,), (copy,) = heard["anna"], heard["ben"]
    assert (first.id, first.others) == ("m1", 1)
    assert (copy.correlation_id, copy.others, copy.agent) == ("m1", 0, "ben")
    assert len(await store.unsettled()) == 2


async def test_a_stop_goes_to_who_is_awake_behind_what_they_are_to_hear(
    autojump_clock: Clock,
) -> None:
    store = MemoryStore()
    stop = StopDelegated(words("/stop", 3), "anna")
    async with open_crossing(autojump_clock, store) as crossing:
        await crossing.heard()
        crossing.router.tell(Route(words("@anna @ben hello")))
        crossing.router.tell(Route(words("@ben look", 2)))
        crossing.router.tell(stop)
        await trio.sleep(1)
        told = of_kind(crossing.sessions["ben"], Keyed)
        crossing.router.tell(stop)
        await trio.testing.wait_all_tasks_blocked()
        again = of_kind(crossing.sessions["ben"], Keyed)
    last = Keyed("ben/fake/room//zoe", stop, may_wake=False)
    assert [type(each.message) for each in told] == [Hear, Hear, StopDelegated]
    assert again == [*told, last]
    assert told[-1] == last


async def test_split_again_after_a_restart_nobody_hears_it_twice(
    autojump_clock: Clock,
) -> None:
    store = MemoryStore()
    await stored(store, words("@anna @ben hello"))
    async with open_crossing(autojump_clock, store) as crossing:
        await crossing.heard()
    async with open_crossing(autojump_clock, store.reopened()) as crossing:
        await trio.sleep(1)
        heard = await crossing.heard()
    assert [each.id for each in heard["anna"]] == ["m1"]
    assert len(heard["ben"]) == 1


async def test_a_copy_given_before_a_restart_counts_though_it_would_not_be_given_now(
    autojump_clock: Clock,
) -> None:
    store = MemoryStore()
    inbound = words("@anna hello", is_direct=False)
    copy = words("@anna hello", number=2, agent="ben", copy_of=1, is_direct=False)
    name = copy_id(inbound, "ben")
    await stored(store, inbound, msgspec.structs.replace(copy, platform_id=name))
    async with open_crossing(autojump_clock, store) as crossing:
        await trio.sleep(1)
        heard = await crossing.heard()
    assert [(each.id, each.others) for each in heard["anna"]] == [("m1", 1)]
    assert [each.id for each in heard["ben"]] == ["m2"]


class Counting(MemoryStore):
    """Counts the reads by key."""

    reads = 0

    async def messages(
        self, keys: Collection[tuple[str, str]]
    ) -> tuple[StoredMessage, ...]:
        self.reads += 1
        return await super().messages(keys)

    async def answered(self, connector: str, platform_id: str) -> Answered | None:
        self.reads += 1
        return await super().answered(connector, platform_id)


async def test_copies_for_all_agents_are_looked_for_in_one_read(
    autojump_clock: Clock,
) -> None:
    store = Counting()
    await stored(store, words("@anna hello", is_direct=False))
    async with open_crossing(autojump_clock, store) as crossing:
        await trio.sleep(1)
        heard = await crossing.heard()
    assert [each.id for each in heard["anna"]] == ["m1"]
    assert store.reads == 1


class Damaged(MemoryStore):
    """Stores nothing any more."""

    def submit(self, commit: Commit, done: Done) -> None:
        del commit
        error = CorruptError("damaged, to order")
        trio.lowlevel.current_trio_token().run_sync_soon(done, error)


async def test_copies_that_cannot_be_stored_are_not_announced(
    autojump_clock: Clock,
) -> None:
    async with open_crossing(autojump_clock, Damaged()) as crossing:
        crossing.router.tell(Route(words("@anna @ben hello")))
        await trio.sleep(1)
        heard = await crossing.heard()
    assert [each.others for each in heard["anna"]] == [0]
    assert heard["ben"] == []


async def test_who_waits_in_a_direct_chat_is_told_that_nobody_hears(
    autojump_clock: Clock,
) -> None:
    store = MemoryStore(fails_at=(2,))
    await stored(store, words())
    async with open_crossing(autojump_clock, store, default_agent="") as crossing:
        told = await crossing.connector.wait_for(Deliver)
    assert "No agent answers here" in told.delivery.text
    assert (await store.counts()).inbox == {"dropped": 1}


async def test_a_group_is_not_bothered(autojump_clock: Clock) -> None:
    store = MemoryStore()
    inbound = words(is_direct=False)
    await stored(store, inbound)
    steps: list[TracedStep] = []
    async with open_crossing(autojump_clock, store, trace=steps.append) as crossing:
        settled = await crossing.connector.wait_for(MessageSettled)
    assert settled == MessageSettled(inbound, "dropped:not_addressed")
    (end,) = (each for each in steps if each.stage == "settle")
    assert (end.correlation_id, end.name) == (inbound.correlation_id, "fake")
    assert (end.outcome, end.seconds, end.parts_left) == ("dropped", 0.0, 0)


async def test_a_delegation_to_an_agent_that_is_gone_is_answered_in_a_group_too(
    autojump_clock: Clock,
) -> None:
    store = MemoryStore()
    chain = DelegationChain(("anna", "carl"))
    inbound = words(is_direct=False, agent="carl", chain=chain, correlation_id="m0")
    await stored(store, inbound)
    async with open_crossing(autojump_clock, store) as crossing:
        told = await crossing.connector.wait_for(Deliver)
    assert "There is no agent 'carl'" in told.delivery.text
    assert not told.delivery.is_root


async def test_what_somebody_else_settled_is_looked_for_in_the_outbox(
    autojump_clock: Clock,
) -> None:
    store = MemoryStore()
    await stored(store, words())
    await store.commit(Commit(at=1.0, settles=(Settle("m1", "dead"),)))
    async with open_crossing(autojump_clock, store, default_agent="") as crossing:
        crossing.router.tell(Route(words()))
        await crossing.connector.wait_for(DrainOutbox)


async def test_a_stranger_s_message_is_a_mistake(autojump_clock: Clock) -> None:
    async with open_crossing(autojump_clock, MemoryStore()) as crossing:
        await crossing.heard()
        crossing.router.tell("nonsense")
        await crossing.heard()
        assert not crossing.router.is_alive()


async def test_many_that_are_taken_up_are_handed_out_little_by_little(
    autojump_clock: Clock,
) -> None:
    many = 2 * ROUTED_AT_ONCE + 1
    store = MemoryStore()
    rooms = [Address("fake", f"room {number}") for number in range(many)]
    left = [words(number=n, address=room) for n, room in enumerate(rooms)]
    await stored(store, *left)
    async with open_crossing(autojump_clock, store) as crossing:
        heard = (await crossing.heard())["anna"]
        assert heard == left[:ROUTED_AT_ONCE]
        later = words("later", many, address=rooms[-1])
        first = words("first", many + 1, address=Address("fake", "elsewhere"))
        crossing.router.tell(Route(later))
        crossing.router.tell(Route(first))
        await trio.sleep(5 * ROUTE_EVERY)
        heard = (await crossing.heard())["anna"]
        assert heard[ROUTED_AT_ONCE:][:3] == [left[-1], later, first]
        assert heard[ROUTED_AT_ONCE + 3 :] == left[ROUTED_AT_ONCE:-1]


async def test_a_chat_in_which_much_was_left_goes_first_but_not_all_at_once(
    autojump_clock: Clock,
) -> None:
    long = 2 * ROUTED_AT_ONCE
    store = MemoryStore()
    others = [
        words(number=n, address=Address("fake", f"room {n}"))
        for n in range(2 * ROUTED_AT_ONCE)
    ]
    mine = [words(number=len(others) + n) for n in range(long)]
    await stored(store, *others, *mine)
    stop = words("/stop", len(others) + long)
    async with open_crossing(autojump_clock, store) as crossing:
        await crossing.heard()
        crossing.router.tell(Route(stop))
        crossing.router.tell(Route(words("and", 9999)))
        heard = (await crossing.heard())["anna"]
        assert heard == [*others[:ROUTED_AT_ONCE], *mine[:ROUTED_AT_ONCE]]
        await trio.sleep(5 * ROUTE_EVERY)
        heard = (await crossing.heard())["anna"]
    rest = heard[2 * ROUTED_AT_ONCE :]
    assert rest[: ROUTED_AT_ONCE + 1] == [*mine[ROUTED_AT_ONCE:], stop]
    assert rest[ROUTED_AT_ONCE + 2 :] == others[ROUTED_AT_ONCE:]
