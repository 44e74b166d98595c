"""Proves that a clock that is wrong for a while makes nobody forget anything."""

from __future__ import annotations

import logging

import pytest
import trio
from trio.testing import MockClock as Clock

from actors.journal.clock import DAY, KIND, NAME, SureClock
from actors.operations.keeper import KEEP_DEDUP, PRUNE_EVERY, Keeper
from runtime.store.rows import Commit, Entry, Settle
from runtime.system import ActorSystem
from tests.fakes.company.company import Cast, TrioClock, at_rest, open_company
from tests.fakes.store.in_memory import MemoryStore
from tests.support.puppet import virtual
from tests.support.store.rows import heard

FAR = 30 * DAY


class SetClock(TrioClock):
    """A clock on the wall that somebody sets."""

    def __init__(self, ahead: float = 0.0) -> None:
        self.ahead = ahead

    def wall(self) -> float:
        return super().wall() + self.ahead


async def settled(clock: SetClock, age: float = 0.0) -> MemoryStore:
    """Make a store with one message that was settled that long ago."""
    store, row = MemoryStore(), heard("m1")
    settles = (Settle(row.id, "replied"),)
    at = clock.wall() - age
    await store.commit(Commit(at=at, accepts=(row,), settles=settles))
    return store


async def count(store: MemoryStore) -> int:
    return sum((await store.counts()).inbox.values())


def keep(system: ActorSystem, store: MemoryStore, clock: SetClock) -> None:
    system.spawn(Keeper(store, SureClock(clock)))


async def test_a_clock_that_is_wrong_for_hours_forgets_nothing(
    autojump_clock: Clock, caplog: pytest.LogCaptureFixture
) -> None:
    clock = SetClock()
    store = await settled(clock, KEEP_DEDUP - 10 * PRUNE_EVERY)
    async with virtual(autojump_clock) as system:
        keep(system, store, clock)
        await trio.sleep(1.5 * PRUNE_EVERY)
        clock.ahead = FAR
        await trio.sleep(4 * PRUNE_EVERY)
        assert await count(store) == 1
        clock.ahead = 0.0
        await trio.sleep(4 * PRUNE_EVERY)
        assert await count(store) == 1
        await trio.sleep(2 * PRUNE_EVERY)
    assert await count(store) == 0
    said = [each for each in caplog.records if each.levelno == logging.WARNING]
    assert [each.getMessage()[:21] for each in said] == ["the clock went ahead,"]


async def run_on(clock: SureClock, store: MemoryStore, hours: int) -> None:
    """Let time pass, and look as a keeper does."""
    for _ in range(hours):
        await trio.sleep(PRUNE_EVERY)
        await clock.look(store)


async def test_a_company_that_was_off_for_weeks_forgets_after_a_day(
    autojump_clock: Clock,
) -> None:
    clock = SetClock()
    store = await settled(clock)
    await run_on(SureClock(clock), store, 2)
    clock.ahead = FAR
    async with virtual(autojump_clock) as system:
        keep(system, store, clock)
        await trio.sleep(2.5 * PRUNE_EVERY)
        assert await count(store) == 1
    # Restarts, too, do not put it off.
    await run_on(SureClock(clock), store, 15)
    await run_on(SureClock(clock), store, 10)
    async with virtual(autojump_clock) as system:
        keep(system, store, clock)
        await trio.sleep(1.5 * PRUNE_EVERY)
    assert await count(store) == 0


@pytest.mark.parametrize("body", [b"nonsense", b'{"at":"noon"}', b"\xff"])
async def test_what_cannot_be_read_makes_no_clock_believable(
    autojump_clock: Clock, body: bytes
) -> None:
    assert autojump_clock.autojump_threshold == 0
    store, clock = MemoryStore(), SetClock()
    entry = Entry(kind=KIND, id=NAME, part=0, body=body)
    await store.commit(Commit(at=1.0, entries=(entry,)))
    sure = SureClock(clock)
    await run_on(sure, store, 23)
    assert sure.wall() <= DAY
    await run_on(sure, store, 2)
    assert sure.wall() == clock.wall()


async def test_the_clock_is_known_again_when_the_store_can_be_read(
    autojump_clock: Clock,
) -> None:
    store = await settled(SetClock())
    await SureClock(SetClock()).look(store)
    closed, clock = store, SureClock(SetClock(FAR))
    store = store.reopened()
    async with virtual(autojump_clock) as system:
        system.spawn(Keeper(closed, clock))
        await trio.sleep(1.5 * PRUNE_EVERY)
        system.spawn(Keeper(store, clock))
        await trio.sleep(1.5 * PRUNE_EVERY)
        assert await count(store) == 1


async def test_a_company_knows_what_it_answered_before_its_clock_jumped(
    autojump_clock: Clock,
) -> None:
    cast, clock = Cast(), SetClock()
    cast.clock = clock
    async with open_company(autojump_clock, cast):
        cast.platform.write("hello")
        await at_rest(cast)
        clock.ahead = FAR
        await trio.sleep(1.5 * PRUNE_EVERY)
        clock.ahead = 0.0
        assert await count(cast.store) == 1
