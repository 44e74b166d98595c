"""Proves that what is kept of a client stays whole when a writer is cut off."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import pytest
import trio
import trio.testing

from actors.messages.deliveries import Delivery
from actors.messages.inbound import Address
from connectors.chat.outbox import ClientOutbox
from runtime.clock import SystemClock
from tests.fakes.store.queued_store import QueuedStore

CHAT = "c/zoe"


def said(number: int) -> Delivery:
    return Delivery(
        id=f"d{number}",
        correlation_id="m",
        address=Address("desk", CHAT),
        agent="anna",
        text=f"words {number}",
    )


async def kept_in(store: QueuedStore) -> ClientOutbox:
    """Keep one client, that was told one thing."""
    kept = ClientOutbox(store, SystemClock(), "desk", 100)
    await kept.load()
    await kept.see(CHAT, is_passing=False)
    await kept.add(said(1))
    return kept


async def cut_off(store: QueuedStore, act: Callable[[], Awaitable[object]]) -> None:
    """Begin something, and give it up while the disk has not written it yet."""
    store.is_open = False
    async with trio.open_nursery() as nursery:

        async def begin() -> None:
            await act()

        nursery.start_soon(begin)
        await trio.testing.wait_all_tasks_blocked()
        nursery.cancel_scope.cancel()


async def told(kept: ClientOutbox) -> list[tuple[int, str]]:
    return [(each.number, each.text) for each in await kept.after(CHAT, 0, 10)]


ALL = [(1, "words 1"), (2, "words 2"), (3, "words 3")]


async def test_what_was_written_though_nobody_waited_is_not_replaced() -> None:
    store = QueuedStore()
    kept = await kept_in(store)
    await cut_off(store, lambda: kept.add(said(2)))
    store.open()
    await kept.add(said(3))
    again = await kept.add(said(2))
    assert again is not None
    assert again.number == 2
    assert await told(kept) == ALL


async def test_what_is_said_again_before_it_is_written_stands_there_once() -> None:
    store = QueuedStore()
    kept = await kept_in(store)
    await cut_off(store, lambda: kept.add(said(2)))
    async with trio.open_nursery() as nursery:
        nursery.start_soon(kept.add, said(2))
        await trio.testing.wait_all_tasks_blocked()
        nursery.start_soon(kept.add, said(3))
        await trio.testing.wait_all_tasks_blocked()
        store.open()
    assert await told(kept) == ALL


async def test_a_listener_that_begins_again_meanwhile_loses_nothing() -> None:
    store = QueuedStore()
    kept = await kept_in(store)
    store.is_open = False
    async with trio.open_nursery() as nursery:
        nursery.start_soon(kept.add, said(2))
        await trio.testing.wait_all_tasks_blocked()
        await kept.load()
        store.open()
    await cut_off(store, lambda: kept.add(said(3)))
    await kept.load()
    store.open()
    await kept.add(said(4))
    assert await told(kept) == [*ALL, (4, "words 4")]


Act = Callable[[ClientOutbox], Awaitable[object]]

ACTS: dict[str, Act] = {
    "see": lambda kept: kept.see(CHAT, is_passing=False),
    "add": lambda kept: kept.add(said(2)),
    "has": lambda kept: kept.has(CHAT, 1),
    "forget": lambda kept: kept.forget(CHAT),
}


@pytest.mark.parametrize("act", ACTS.values(), ids=ACTS)
async def test_whatever_was_cut_off_the_memory_says_what_the_disk_says(
    act: Act,
) -> None:
    store = QueuedStore()
    kept = await kept_in(store)
    await cut_off(store, lambda: act(kept))
    store.open()
    await kept.see(CHAT, is_passing=False)
    again = ClientOutbox(store, SystemClock(), "desk", 100)
    await again.load()
    assert kept.get(CHAT) == again.get(CHAT)
    assert await kept.forget(CHAT)
    await again.load()
    assert (len(again), await told(again)) == (0, [])


async def test_a_client_that_was_told_something_unseen_is_not_forgotten() -> None:
    store = QueuedStore()
    kept = await kept_in(store)
    await cut_off(store, lambda: kept.add(said(2)))
    store.open()
    assert not await kept.forget(CHAT, kept.get(CHAT))
    assert await told(kept) == ALL[:2]
