"""The store's twin in memory, for tests in virtual time.

The same promises as `sqlite_store.py` except that the process's end takes it all:
no thread, no file, so it may be used under a mock clock. It keeps everything it
is given, unbounded, and is therefore not for production. Faults are inputs:
`fails_at` names the commits that find the disk full, `reopened` is a restart.
"""

from __future__ import annotations

from collections import Counter
from itertools import islice
from typing import TYPE_CHECKING

import trio

from runtime.errors import KernelError, StoreUnavailableError
from runtime.facts import (
    refuse_fact_limit,
    refuse_listing,
    refuse_listings,
    refuse_search,
)
from runtime.memory_rows import Rows, is_open
from runtime.rows import MAX_ROWS, Answered, Committed, Counts
from runtime.store import (
    refuse_limit,
    refuse_misuse,
)
from runtime.texts import refuse_half_character

if TYPE_CHECKING:
    from collections.abc import Callable, Collection

    from runtime.entries import StoredEntry
    from runtime.fact_rows import FactListing, FactLists, FactSearch, Found, StoredFact
    from runtime.memory_facts import FactRows
    from runtime.rows import (
        Commit,
        Pruned,
        StoredDelivery,
        StoredEvent,
        StoredMessage,
        StoredRecord,
        StoredSnapshot,
    )
    from runtime.store import Done


class MemoryStore:
    """Rows in memory; see `runtime.store.Store` for what may be relied on.

    Args:
        epoch: written on every row.
        fails_at: numbers of the commits, from 1, that raise
            `StoreUnavailableError` and write nothing.

    Attributes:
        changed_outside: set by a test that plays another program; what the next
            `was_changed_outside` tells.
    """

    def __init__(self, *, epoch: int = 0, fails_at: Collection[int] = ()) -> None:
        self._epoch = epoch
        self._fails_at = fails_at
        self._commits = 0
        self._healthy = True
        self._closed = False
        self._rows = Rows()
        self.changed_outside = False

    @property
    def epoch(self) -> int:
        """What is written on every row."""
        return self._epoch

    @property
    def healthy(self) -> bool:
        """False from a failed write until one succeeds."""
        return self._healthy

    @property
    def facts(self) -> MemoryFacts:
        """What is remembered; see the port."""
        return MemoryFacts(self._rows.facts, self._refuse_closed)

    def reopened(self) -> MemoryStore:
        """Give a new store with these rows, as after a restart; this one is closed."""
        self._closed = True
        store = MemoryStore(epoch=self._epoch)
        store._rows = self._rows
        return store

    async def commit(self, commit: Commit) -> Committed:
        """Store one unit; see the port."""
        refuse_misuse(commit)
        await self._enter()
        self._write()
        return self._rows.apply(commit, self._epoch)

    def submit(self, commit: Commit, done: Done) -> None:
        """Store one unit without waiting; see the port."""
        outcome: Committed | Exception
        try:
            refuse_misuse(commit)
            self._refuse_closed()
            self._write()
            outcome = self._rows.apply(commit, self._epoch)
        except KernelError as error:
            outcome = error
        trio.lowlevel.current_trio_token().run_sync_soon(done, outcome)

    async def read(
        self, stream: str, after: int = 0, limit: int = 1000
    ) -> tuple[StoredEvent, ...]:
        """Give the events of a stream; see the port."""
        refuse_limit(limit)
        refuse_half_character(stream)
        await self._enter()
        first = max(after, 0)
        return tuple(self._rows.journal.get(stream, [])[first : first + limit])

    async def snapshot(self, stream: str) -> StoredSnapshot | None:
        """Give the newest snapshot of a stream; see the port."""
        refuse_half_character(stream)
        await self._enter()
        return self._rows.snapshots.get(stream)

    async def unsettled(
        self, after: int = 0, limit: int = 1000
    ) -> tuple[StoredMessage, ...]:
        """Give messages not yet settled; see the port."""
        refuse_limit(limit)
        await self._enter()
        found = (
            row
            for row in self._rows.inbox.values()
            if is_open(row) and row.number > after
        )
        return tuple(islice(found, limit))

    async def answered(self, connector: str, platform_id: str) -> Answered | None:
        """Give what became of a message; see the port."""
        refuse_half_character(connector + platform_id)
        await self._enter()
        name = self._rows.dedup.get((connector, platform_id))
        return None if name is None else self._answered(self._rows.inbox[name])

    def _answered(self, message: StoredMessage) -> Answered:
        found = (
            row
            for row in self._rows.outbox.values()
            if row.correlation_id == message.id
        )
        return Answered(message, tuple(islice(found, MAX_ROWS)))

    async def exchanges(
        self, stream: str, before: int = 0, limit: int = 100
    ) -> tuple[Answered, ...]:
        """Give messages of a stream with what became of each; see the port."""
        refuse_limit(limit)
        refuse_half_character(stream)
        await self._enter()
        found = (
            row
            for row in reversed(self._rows.inbox.values())
            if row.stream == stream and (not before or row.number < before)
        )
        return tuple(self._answered(row) for row in islice(found, limit))

    async def undelivered(
        self, connector: str | None = None, after: int = 0, limit: int = 1000
    ) -> tuple[StoredDelivery, ...]:
        """Give deliveries not yet settled; see the port."""
        refuse_limit(limit)
        refuse_half_character(connector or "")
        await self._enter()
        found = (
            row
            for row in self._rows.outbox.values()
            if is_open(row)
            and row.number > after
            and connector in (None, row.connector)
        )
        return tuple(islice(found, limit))

    async def records(
        self, kind: str, owner: str | None = None, before: int = 0, limit: int = 1000
    ) -> tuple[StoredRecord, ...]:
        """Give records of a kind; see the port."""
        refuse_limit(limit)
        refuse_half_character(kind + (owner or ""))
        await self._enter()
        found = [
            row
            for row in self._rows.records.values()
            if row.kind == kind
            and owner in (None, row.owner)
            and (before == 0 or row.number < before)
        ]
        found.sort(key=lambda row: row.number, reverse=True)
        return tuple(found[:limit])

    async def records_since(
        self, kind: str, at: float, number: int = 0, limit: int = 1000
    ) -> tuple[StoredRecord, ...]:
        """Give records of a kind in the order of their times; see the port."""
        refuse_limit(limit)
        refuse_half_character(kind)
        await self._enter()
        found = [
            row
            for row in self._rows.records.values()
            if row.kind == kind and (row.at, row.number) > (at, number)
        ]
        found.sort(key=lambda row: (row.at, row.number))
        return tuple(found[:limit])

    async def entry(self, kind: str, name: str) -> StoredEntry | None:
        """Give one entry; see the port."""
        refuse_half_character(kind + name)
        await self._enter()
        return self._rows.entries.get((kind, name))

    async def entries(
        self, kind: str, owner: str | None = None, after: str = "", limit: int = 1000
    ) -> tuple[StoredEntry, ...]:
        """Give entries of a kind in the order of their ids; see the port."""
        refuse_limit(limit)
        refuse_half_character(kind + (owner or "") + after)
        await self._enter()
        found = [
            row
            for row in self._rows.entries.values()
            if row.kind == kind and owner in (None, row.owner) and row.id > after
        ]
        found.sort(key=lambda row: row.id)
        return tuple(found[:limit])

    async def counts(self) -> Counts:
        """Count rows by state; see the port."""
        await self._enter()
        return Counts(
            dict(Counter(row.state for row in self._rows.inbox.values())),
            dict(Counter(row.state for row in self._rows.outbox.values())),
        )

    async def prune(self, before: float, limit: int = 1000) -> Pruned:
        """Forget what is long settled; see the port."""
        refuse_limit(limit)
        await self._enter()
        return self._rows.prune(before, limit)

    async def prune_records(self, kind: str, before: float, limit: int = 1000) -> int:
        """Forget old records of a kind; see the port."""
        refuse_limit(limit)
        refuse_half_character(kind)
        await self._enter()
        return self._rows.prune_records(kind, before, limit)

    async def was_changed_outside(self) -> bool:
        """Whether a test played another program since the last call."""
        await self._enter()
        was, self.changed_outside = self.changed_outside, False
        return was

    async def probe(self) -> None:
        """Write; counts as a commit for `fails_at`."""
        await self._enter()
        self._write()

    async def aclose(self) -> None:
        """End it; `reopened` still gives the rows to a successor."""
        self._closed = True
        await trio.lowlevel.checkpoint()

    def _refuse_closed(self) -> None:
        if self._closed:
            raise StoreUnavailableError("the store in memory is closed; open a new one")

    async def _enter(self) -> None:
        self._refuse_closed()
        await trio.lowlevel.checkpoint()

    def _write(self) -> None:
        self._commits += 1
        self._healthy = self._commits not in self._fails_at
        if not self._healthy:
            raise StoreUnavailableError(
                f"commit {self._commits} was told to find the disk full; try again"
            )


class MemoryFacts:
    """Facts in memory; see `runtime.facts.Facts` for what may be relied on.

    Args:
        rows: all of them.
        enter: raises if the store is closed.
    """

    def __init__(self, rows: FactRows, enter: Callable[[], None]) -> None:
        self._rows = rows
        self._enter = enter

    async def search(self, search: FactSearch) -> Found:
        """Find facts; see the port."""
        refuse_search(search)
        await self._pause()
        return self._rows.search(search)

    async def listed(self, listing: FactListing) -> tuple[StoredFact, ...]:
        """Give facts by what they are called; see the port."""
        refuse_listing(listing)
        await self._pause()
        return self._rows.listed(listing)

    async def lists(self, listings: tuple[FactListing, ...]) -> FactLists:
        """Take several listings at once; see the port."""
        refuse_listings(listings)
        await self._pause()
        return self._rows.lists(listings)

    async def unembedded(
        self, agent: str, space: str, after: int = 0, limit: int = 100
    ) -> tuple[StoredFact, ...]:
        """Give facts that want a vector; see the port."""
        refuse_fact_limit(limit)
        refuse_half_character(agent + space)
        await self._pause()
        return self._rows.unembedded(agent, space, after, limit)

    async def counts(self, agent: str) -> dict[tuple[str, str], int]:
        """Count an agent's facts; see the port."""
        refuse_half_character(agent)
        await self._pause()
        return self._rows.counts(agent)

    async def prune(self, now: float, limit: int = 1000) -> int:
        """Forget what has expired; see the port."""
        refuse_fact_limit(limit)
        await self._pause()
        return self._rows.prune(now, limit)

    async def _pause(self) -> None:
        self._enter()
        await trio.lowlevel.checkpoint()
