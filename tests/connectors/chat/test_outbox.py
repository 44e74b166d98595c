"""Proves that what is kept of a client stays whole, whoever comes meanwhile."""

from __future__ import annotations

import trio
import trio.testing

from actors.messages.deliveries import Delivery
from actors.messages.inbound import Address
from connectors.chat.outbox import ClientOutbox
from runtime.clock import SystemClock
from runtime.store.rows import Commit, Committed
from tests.fakes.store.in_memory import MemoryStore

CHAT = "c/zoe"


class SlowStore(MemoryStore):
    """Takes what is to be kept only while its gate is open."""

    def __init__(self) -> None:
        super().__init__()
        self.gate = trio.Event()
        self.gate.set()

    async def commit(self, commit: Commit) -> Committed:
        """Keep rows, later."""
        await self.gate.wait()
        return await super().commit(commit)


def said(number: int) -> Delivery:
    return Delivery(
        id=f"d{number}",
        correlation_id="m",
        address=Address("desk", CHAT),
        agent="anna",
        text=f"words {number}",
    )


def kept_in(store: MemoryStore) -> ClientOutbox:
    return ClientOutbox(store, SystemClock(), "desk", 100)


async def test_a_new_client_that_comes_twice_at_once_loses_no_message() -> None:
    store = SlowStore()
    kept = kept_in(store)
    async with trio.open_nursery() as nursery:

        async def come() -> None:
            await kept.see(CHAT, is_passing=False)
            await kept.add(said(1))

        store.gate = first = trio.Event()
        nursery.start_soon(come)
        await trio.testing.wait_all_tasks_blocked()
        store.gate = trio.Event()
        nursery.start_soon(come)
        await trio.testing.wait_all_tasks_blocked()
        first.set()
        await trio.testing.wait_all_tasks_blocked()
        store.gate.set()
    await kept.add(said(2))
    found = await kept.after(CHAT, 0, 10)
    assert [each.text for each in found] == ["words 1", "words 2"]


async def test_who_comes_back_while_it_is_forgotten_is_remembered() -> None:
    store = SlowStore()
    kept = kept_in(store)
    await kept.see(CHAT, is_passing=False)
    await kept.add(said(1))
    store.gate = trio.Event()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(kept.forget, CHAT)
        await trio.testing.wait_all_tasks_blocked()

        async def come() -> None:
            await kept.see(CHAT, is_passing=False)

        nursery.start_soon(come)
        await trio.testing.wait_all_tasks_blocked()
        store.gate.set()
    assert kept.get(CHAT) is not None
    again = kept_in(store)
    await again.load()
    assert again.get(CHAT) is not None
