"""Proves that old rows are forgotten, and a sick disk is tried until it is well."""

from __future__ import annotations

from typing import TYPE_CHECKING

import trio.testing

from actors.answers import as_accept
from actors.keeper import KEEP_DEDUP, PRUNE_EVERY, Keeper
from runtime.errors import StoreUnavailableError
from runtime.memory_store import MemoryStore
from runtime.store import Commit, Settle
from tests.fakes.company import EPOCH, TrioClock
from tests.fakes.neighbours import words
from tests.puppet import virtual

if TYPE_CHECKING:
    Clock = trio.testing.MockClock


async def settle_many(store: MemoryStore, count: int, at: float) -> None:
    for number in range(count):
        row = as_accept(words(number=number), at)
        await store.commit(
            Commit(at=at, accepts=(row,), settles=(Settle(row.id, "replied"),))
        )


async def test_what_was_settled_long_ago_is_forgotten(autojump_clock: Clock) -> None:
    store = MemoryStore()
    await settle_many(store, 2500, EPOCH + 1.5 * PRUNE_EVERY - KEEP_DEDUP)
    async with virtual(autojump_clock) as system:
        system.spawn(Keeper(store, TrioClock()))
        await trio.sleep(1.1 * PRUNE_EVERY)
        assert (await store.counts()).inbox == {"replied": 2500}
        await trio.sleep(PRUNE_EVERY)
        assert (await store.counts()).inbox == {}


async def test_a_disk_is_tried_until_it_is_well(autojump_clock: Clock) -> None:
    store = MemoryStore(fails_at=range(1, 4))
    try:
        await store.probe()
    except StoreUnavailableError:
        assert not store.healthy
    async with virtual(autojump_clock) as system:
        system.spawn(Keeper(store, TrioClock()))
        await trio.sleep(5)
        assert not store.healthy
        await trio.sleep(2)
        assert store.healthy


async def test_a_store_that_cannot_forget_is_no_end(autojump_clock: Clock) -> None:
    store = MemoryStore()
    async with virtual(autojump_clock) as system:
        keeper = system.spawn(Keeper(store, TrioClock()))
        await store.aclose()
        await trio.sleep(1.1 * PRUNE_EVERY)
        assert keeper.is_alive()


async def test_a_stranger_s_message_is_its_sender_s_mistake(
    autojump_clock: Clock,
) -> None:
    async with virtual(autojump_clock) as system:
        keeper = system.spawn(Keeper(MemoryStore(), TrioClock()))
        keeper.tell("nonsense")
        await trio.testing.wait_all_tasks_blocked()
        assert not keeper.is_alive()
