"""Processes that end in the middle of anything, as by `kill -9`: a store decides when.

Once dead, a store takes nothing and answers nobody. Whatever its process still says
or asks is what a real one might have said in its last moment.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Literal

import trio
import trio.testing

from runtime.store.port import Done
from runtime.store.rows import (
    Answered,
    Commit,
    Committed,
    Counts,
    MessageKey,
    StoredDelivery,
    StoredEvent,
    StoredMessage,
    StoredSnapshot,
)
from tests.fakes.company.company import Cast, at_rest, open_company
from tests.fakes.store.in_memory import MemoryStore

Moment = Literal["before", "after"]
"""Whether the commit at which a process dies is still stored; nobody is told of it."""

Death = tuple[int, Moment]
"""At which of its commits a process dies, counted from 1, and when."""


class MortalStore(MemoryStore):
    """The store of a process that dies at one of its commits.

    Args:
        deaths: of this process, and of each one after it; the last one lives.

    Attributes:
        commits: all that were stored, in order, also by its predecessors.
        on_death: called when it dies; ends the process.
    """

    def __init__(self, *deaths: Death) -> None:
        super().__init__()
        self.deaths = deaths
        self.is_dead = False
        self.count = 0
        self.commits: list[Commit] = []
        self.on_death: Callable[[], object] = list

    def reopened(self) -> MortalStore:
        store = MortalStore(*self.deaths[1:])
        store._rows = super().reopened()._rows
        store.commits = self.commits
        return store

    def die(self) -> None:
        """End the process now."""
        if not self.is_dead:
            self.is_dead = True
            self.on_death()

    def dies_of(self, commit: Commit) -> bool:
        """Count a commit; tell whether its writer lives to hear of it."""
        if self.is_dead:
            return True
        self.count += 1
        number, moment = self.deaths[0] if self.deaths else (0, "before")
        if self.count != number:
            self.commits.append(commit)
            return False
        if moment == "after":
            self._rows.apply(commit, self.epoch)
            self.commits.append(commit)
        self.die()
        return True

    async def commit(self, commit: Commit) -> Committed:
        if self.dies_of(commit):
            await trio.sleep_forever()
        return await super().commit(commit)

    def submit(self, commit: Commit, done: Done) -> None:
        if not self.dies_of(commit):
            super().submit(commit, done)

    async def read(
        self, stream: str, after: int = 0, limit: int = 1000
    ) -> tuple[StoredEvent, ...]:
        await self.live()
        return await super().read(stream, after, limit)

    async def snapshot(self, stream: str) -> StoredSnapshot | None:
        await self.live()
        return await super().snapshot(stream)

    async def unsettled(
        self, after: int = 0, limit: int = 1000
    ) -> tuple[StoredMessage, ...]:
        await self.live()
        return await super().unsettled(after, limit)

    async def unsettled_keys(
        self, after: int = 0, limit: int = 1000
    ) -> tuple[MessageKey, ...]:
        await self.live()
        return await super().unsettled_keys(after, limit)

    async def messages(
        self, keys: Collection[tuple[str, str]]
    ) -> tuple[StoredMessage, ...]:
        await self.live()
        return await super().messages(keys)

    async def exchanges(
        self, stream: str, before: int = 0, limit: int = 100
    ) -> tuple[Answered, ...]:
        await self.live()
        return await super().exchanges(stream, before, limit)

    async def undelivered(
        self, connector: str | None = None, after: int = 0, limit: int = 1000
    ) -> tuple[StoredDelivery, ...]:
        await self.live()
        return await super().undelivered(connector, after, limit)

    async def counts(self) -> Counts:
        await self.live()
        return await super().counts()

    async def live(self) -> None:
        """Hang in a dead process."""
        if self.is_dead:
            await trio.sleep_forever()


async def run_until_death(
    clock: trio.testing.MockClock, cast: Cast, *, within: float = 2000.0
) -> bool:
    """Run a company until all is at rest; tell whether its process lived that long.

    The rows are then open for the next one.
    """
    store = cast.store
    assert isinstance(store, MortalStore)
    with trio.CancelScope() as life:
        store.on_death = life.cancel
        async with open_company(clock, cast):
            await at_rest(cast, within=within)
    cast.restart()
    return not life.cancelled_caught


async def run_through(
    clock: trio.testing.MockClock, cast: Cast, *, most: int = 10
) -> int:
    """Start a company again after each death, until all is at rest.

    Returns:
        How many processes that took.
    """
    for number in range(1, most + 1):
        if await run_until_death(clock, cast):
            return number
    raise AssertionError(f"not at rest after {most} processes")
