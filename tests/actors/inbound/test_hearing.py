"""Proves that in a group those hear a message who have a reason, also over restarts."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

import msgspec
import trio
import trio.testing

from actors import names
from actors.config.routes import GroupConfig
from actors.inbound.recovery import SWEEP_EVERY
from actors.inbound.relevance import LOST_AFTER, RelevanceChecked
from actors.inbound.router import Router
from actors.journal.commits import as_accept
from actors.messages.inbound import Inbound
from actors.protocol import Replied, Route, RouteUnanswered
from actors.rules.groups.assignments import StickyRoutes
from actors.rules.groups.reply_windows import KIND
from actors.rules.groups.routes import group_of, routing_table, with_groups
from runtime.actor.messages import Keyed
from runtime.actor.ref import ActorRef
from runtime.store.rows import Commit, Entry, Settle
from runtime.supervision.keyed import KeyGivenUp
from runtime.system import ActorSystem
from runtime.testing import Probe
from tests.actors.inbound.test_router import Crossing, stored
from tests.fakes.actors.neighbours import make_services, of_kind, probe, words
from tests.fakes.company.company import EPOCH
from tests.fakes.store.in_memory import MemoryStore
from tests.support.puppet import virtual

Clock = trio.testing.MockClock
WINDOW = "anna/fake/room//zoe"


def group(text: str = "hello", number: int = 1, **fields: Any) -> Inbound:
    return words(text, number, is_direct=False, **fields)


class Room(Crossing):
    """The same, with a system in which others can be put up."""

    def __init__(
        self, system: ActorSystem, router: ActorRef, probes: dict[str, Probe]
    ) -> None:
        super().__init__(router, probes)
        self.system = system


@asynccontextmanager
async def open_room(
    clock: Clock,
    store: MemoryStore,
    before: StickyRoutes | None = None,
    **settings: dict[str, Any],
) -> AsyncGenerator[Room]:
    async with virtual(clock) as system:
        here = ("anna", "ben")
        probes = {name: probe(system, names.sessions(name)) for name in here}
        probes["connector"] = probe(system, names.connector("fake"))
        usual = {name: {"reply_window": 5.0, **settings.get(name, {})} for name in here}
        groups = {
            name: group_of(msgspec.convert(each, GroupConfig))
            for name, each in usual.items()
        }
        table = with_groups(routing_table(here), groups)
        allotted = (before or StickyRoutes(table)).renewed(table)
        router = Router(allotted, frozenset({"fake"}), make_services(store))
        yield Room(system, system.spawn(router, name=names.ROUTER), probes)


def ids(heard: dict[str, list[Inbound]]) -> dict[str, list[str]]:
    return {
        name: [each.correlation_id for each in found] for name, found in heard.items()
    }


async def test_who_was_answered_need_not_call_again_for_a_while(
    autojump_clock: Clock,
) -> None:
    async with open_room(autojump_clock, MemoryStore()) as crossing:
        crossing.router.tell(Replied(group(), "anna", EPOCH))
        crossing.router.tell(Route(group("and now?", 2)))
        crossing.router.tell(Route(group("and I?", 3, sender_id="max")))
        await trio.sleep(299)
        crossing.router.tell(Route(group("still?", 4)))
        await trio.sleep(2)
        crossing.router.tell(Route(group("too late", 5)))
        assert ids(await crossing.heard()) == {"anna": ["m2", "m4"], "ben": []}


async def open_window(store: MemoryStore, at: float, agent: str = "anna") -> None:
    name = WINDOW.replace("anna", agent)
    entry = Entry(kind=KIND, id=name, owner=agent, part=0, body=b"{}")
    await store.commit(Commit(at=at, entries=(entry,)))


async def test_windows_are_read_at_the_start_and_taken_away_when_over(
    autojump_clock: Clock,
) -> None:
    store = MemoryStore()
    await open_window(store, EPOCH - 60)
    damaged = Entry(kind=KIND, id="nonsense", owner="", part=0, body=b"{}")
    await store.commit(Commit(at=1.0, entries=(damaged,)))
    async with open_room(autojump_clock, store) as crossing:
        crossing.router.tell(Route(group("and now?", 2)))
        assert ids(await crossing.heard())["anna"] == ["m2"]
        await trio.sleep(240 + SWEEP_EVERY + 5)
        assert [row.id for row in await store.entries(KIND)] == ["nonsense"]


async def test_what_was_decided_goes_the_same_way_though_the_window_is_over(
    autojump_clock: Clock,
) -> None:
    store = MemoryStore()
    await stored(store, group("and now?", 2))
    async with open_room(autojump_clock, store) as crossing:
        await crossing.heard()
    store = store.reopened()
    await stored(store, group("and now?", 3))
    await open_window(store, EPOCH)
    async with open_room(autojump_clock, store) as crossing:
        await crossing.heard()
        crossing.router.tell(Route(group("and now?", 3), 1))
        await trio.sleep(600)
        crossing.router.tell(RouteUnanswered())
        await trio.sleep(5)
        heard = ids(await crossing.heard())["anna"]
    assert set(heard) == {"m3"}
    assert (await store.counts()).inbox == {"accepted": 1, "dropped": 1}


async def test_after_a_death_it_is_decided_by_what_was_so_when_it_came(
    autojump_clock: Clock,
) -> None:
    store = MemoryStore()
    await open_window(store, EPOCH - 60)
    inbound = group("and now?", 2)
    row = as_accept(inbound, EPOCH)
    await store.commit(Commit(at=EPOCH, accepts=(row,)))
    async with open_room(autojump_clock, store) as crossing:
        await crossing.heard()
        await trio.sleep(900)  # its window is over by now, and nobody has answered
        assert len(await store.entries(KIND)) == 1
    store = store.reopened()
    async with open_room(autojump_clock, store) as crossing:
        assert ids(await crossing.heard())["anna"] == ["m2"]
        await store.commit(Commit(at=EPOCH, settles=(Settle("m2", "replied", "ok"),)))
        await trio.sleep(2 * SWEEP_EVERY)
        assert await store.entries(KIND) == ()


async def test_who_has_a_copy_from_before_hears_the_original_no_more(
    autojump_clock: Clock,
) -> None:
    store = MemoryStore()
    await stored(store, group("@anna @ben hi"))
    async with open_room(autojump_clock, store) as crossing:
        await trio.sleep(1)
        (copy,) = (await crossing.heard())["ben"]
    await store.commit(Commit(at=2.0, settles=(Settle(copy.id, "replied"),)))
    async with open_room(autojump_clock, store.reopened()) as crossing:
        await trio.sleep(1)
        heard = await crossing.heard()
    assert heard["ben"] == []
    assert [(each.id, each.others) for each in heard["anna"]] == [("m1", 1)]


async def test_if_only_they_are_left_nobody_hears_the_original(
    autojump_clock: Clock,
) -> None:
    store = MemoryStore()
    await stored(store, group("@anna @ben hi"))
    async with open_room(autojump_clock, store) as crossing:
        await trio.sleep(1)
        (copy,) = (await crossing.heard())["ben"]
    store, never = store.reopened(), {"activation": "never"}
    async with open_room(autojump_clock, store, anna=never) as again:
        await trio.sleep(1)
        heard = await again.heard()
    assert heard == {"anna": [], "ben": [copy]}
    assert (await store.counts()).inbox == {"dropped": 1, "accepted": 1}


async def test_a_hundred_agents_who_are_silent_cost_one_row(
    autojump_clock: Clock,
) -> None:
    store = MemoryStore()
    many = tuple(f"agent-{number}" for number in range(100))
    inbound = group("small talk", present=many)
    await stored(store, inbound)
    async with virtual(autojump_clock) as system:
        services = make_services(store)
        router = Router(
            StickyRoutes(routing_table(many)), frozenset({"fake"}), services
        )
        system.spawn(router, name=names.ROUTER)
        await trio.sleep(1)
    assert (await store.counts()).inbox == {"dropped": 1}


async def test_what_comes_next_in_a_chat_waits_for_what_is_looked_up(
    autojump_clock: Clock,
) -> None:
    store = MemoryStore()
    await stored(store, *(group("@anna hi", number) for number in (1, 2)))
    async with open_room(autojump_clock, store) as crossing:
        crossing.router.tell(Route(group("@anna hi", 3)))
        assert ids(await crossing.heard())["anna"] == ["m1", "m2", "m3"]
    assert not of_kind(crossing.connector, Route)


WANTS = {"relevance_check": True, "check_timeout": 2.0}


async def test_a_check_that_nobody_tells_of_is_given_up(
    autojump_clock: Clock,
) -> None:
    async with open_room(autojump_clock, MemoryStore(), anna=WANTS) as crossing:
        checks = probe(crossing.system, names.CHECKS)
        crossing.router.tell(Replied(group(), "anna", EPOCH))
        crossing.router.tell(Route(group("and now?", 2)))
        crossing.router.tell(Route(group("@ben hi", 3)))
        assert ids(await crossing.heard()) == {"anna": [], "ben": []}
        await trio.sleep(2.0 + LOST_AFTER + 0.1)
        assert ids(await crossing.heard()) == {"anna": ["m2"], "ben": ["m3"]}
        crossing.router.tell(Route(group("and then?", 4)))
        await trio.sleep(0.1)
        crossing.router.tell(KeyGivenUp("m4/anna", "broke"))
        crossing.router.tell(RelevanceChecked("m4/anna", "no"))  # too late
        assert ids(await crossing.heard())["anna"] == ["m2", "m4"]
    assert [each.key for each in of_kind(checks, Keyed)] == ["m2/anna", "m4/anna"]


async def test_what_is_found_again_while_it_is_checked_is_not_asked_twice(
    autojump_clock: Clock,
) -> None:
    store = MemoryStore()
    await open_window(store, EPOCH)
    async with open_room(autojump_clock, store, anna=WANTS) as crossing:
        checks = probe(crossing.system, names.CHECKS)
        await crossing.heard()
        await stored(store, group("and now?", 2))
        crossing.router.tell(Route(group("and now?", 2), 1))
        crossing.router.tell(RouteUnanswered())
        await trio.sleep(1.5)
        crossing.router.tell(RelevanceChecked("m2/anna", "yes"))
        assert ids(await crossing.heard())["anna"] == ["m2"]
    assert len(of_kind(checks, Keyed)) == 1


async def test_what_somebody_has_in_hand_stays_theirs_though_the_router_dies(
    autojump_clock: Clock,
) -> None:
    store, allotted = MemoryStore(), StickyRoutes(routing_table(()))
    await stored(store, group("and now?", 2))
    await open_window(store, EPOCH - 60, "ben")
    for _ in range(2):
        async with open_room(autojump_clock, store, allotted) as crossing:
            assert ids(await crossing.heard()) == {"anna": [], "ben": ["m2"]}
        # Meanwhile anna answers the same person, too.
        await open_window(store, EPOCH)
