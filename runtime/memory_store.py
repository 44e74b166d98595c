"""The store's twin in memory, for tests in virtual time.

The same promises as `sqlite_store.py` except that the process's end takes it all:
no thread, no file, so it may be used under a mock clock. It keeps everything it
is given, unbounded, and is therefore not for production. Faults are inputs:
`fails_at` names the commits that find the disk full, `reopened` is a restart.
"""

from __future__ import annotations

from collections import Counter
from itertools import islice
from typing import TYPE_CHECKING, TypeVar

import msgspec
import trio

from runtime.errors import (
    DuplicateError,
    KernelError,
    MisuseError,
    SequenceConflictError,
    StoreUnavailableError,
)
from runtime.store import (
    Committed,
    Counts,
    DeliveryState,
    InboxState,
    Pruned,
    StoredDelivery,
    StoredEvent,
    StoredMessage,
    refuse_half_character,
    refuse_limit,
    refuse_misuse,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Collection

    from runtime.store import Accept, Append, Commit, Done, Enqueue, Receipt, Settle

V = TypeVar("V")


class InboxRow(msgspec.Struct):
    """A message and how it stands."""

    message: StoredMessage
    state: InboxState = "accepted"
    settled_at: float = 0.0


class OutboxRow(msgspec.Struct):
    """A delivery and how it stands."""

    delivery: StoredDelivery
    state: DeliveryState = "pending"
    settled_at: float = 0.0


class Rows:
    """All rows, and the way back out of a commit that fails half way."""

    def __init__(self) -> None:
        self.inbox: dict[str, InboxRow] = {}
        self.dedup: dict[tuple[str, str], str] = {}
        self.journal: dict[str, list[StoredEvent]] = {}
        self.outbox: dict[str, OutboxRow] = {}
        self._numbers: Counter[str] = Counter()
        self._undo: list[Callable[[], object]] = []

    def apply(self, commit: Commit, epoch: int) -> Committed:
        """Take in all of a commit, or nothing and raise."""
        at = commit.at
        try:
            committed = Committed(
                tuple(self._accept(row, epoch) for row in commit.accepts),
                tuple(self._append(row, epoch, at) for row in commit.appends),
                tuple(self._enqueue(row, epoch, at) for row in commit.deliveries),
            )
            for settle in commit.settles:
                self._settle(settle, at)
            for receipt in commit.receipts:
                self._receive(receipt, at)
        except KernelError:
            while self._undo:
                self._undo.pop()()
            raise
        self._undo.clear()
        return committed

    def _put(self, rows: dict[str, V], key: str, row: V) -> None:
        rows[key] = row
        self._undo.append(lambda: rows.pop(key))

    def _accept(self, row: Accept, epoch: int) -> int:
        key = (row.connector, row.platform_id)
        if row.id in self.inbox or key in self.dedup:
            raise DuplicateError(
                f"message {row.id!r} ({row.connector}/{row.platform_id}) was accepted"
                " before; acknowledge it and do no more"
            )
        self._numbers["inbox"] += 1
        message = StoredMessage(
            self._numbers["inbox"],
            row.id,
            row.connector,
            row.platform_id,
            row.part,
            epoch,
            row.stream,
            row.body,
            row.at,
        )
        self._put(self.inbox, row.id, InboxRow(message))
        self.dedup[key] = row.id
        self._undo.append(lambda: self.dedup.pop(key))
        return message.number

    def _append(self, row: Append, epoch: int, at: float) -> int:
        events = self.journal.setdefault(row.stream, [])
        last = len(events)
        if last != row.expected:
            raise SequenceConflictError(
                f"stream {row.stream!r} ends at {last}, not at {row.expected}: another"
                " writer was first; read it again"
            )
        for sequence, event in enumerate(row.events, last + 1):
            events.append(
                StoredEvent(
                    row.stream, sequence, event.kind, event.body, row.part, epoch, at
                )
            )
            self._undo.append(events.pop)
        return len(events)

    def _enqueue(self, row: Enqueue, epoch: int, at: float) -> int:
        if row.delivery_id in self.outbox:
            raise DuplicateError(
                f"delivery {row.delivery_id!r} was enqueued before; it is on its way"
            )
        self._numbers["outbox"] += 1
        delivery = StoredDelivery(
            self._numbers["outbox"],
            row.delivery_id,
            row.connector,
            row.chat,
            row.correlation_id,
            row.part,
            epoch,
            row.body,
            at,
        )
        self._put(self.outbox, row.delivery_id, OutboxRow(delivery))
        return delivery.number

    def _settle(self, settle: Settle, at: float) -> None:
        row = self.inbox.get(settle.inbox_id)
        if row is None:
            raise MisuseError(f"no message {settle.inbox_id!r} was ever accepted")
        if row.state != "accepted":
            raise DuplicateError(
                f"message {settle.inbox_id!r} is {row.state} already and stays so"
            )
        settled = InboxRow(row.message, settle.state, at)
        self.inbox[settle.inbox_id] = settled
        self._undo.append(lambda: self.inbox.update({settle.inbox_id: row}))

    def _receive(self, receipt: Receipt, at: float) -> None:
        row = self.outbox.get(receipt.delivery_id)
        if row is None:
            raise MisuseError(f"no delivery {receipt.delivery_id!r} was ever enqueued")
        if row.state != "pending":
            raise DuplicateError(
                f"delivery {receipt.delivery_id!r} is {row.state} already and stays so"
            )
        received = OutboxRow(row.delivery, receipt.state, at)
        self.outbox[receipt.delivery_id] = received
        self._undo.append(lambda: self.outbox.update({receipt.delivery_id: row}))

    def prune(self, before: float, limit: int) -> Pruned:
        """Forget settled rows of each table, those settled longest ago first."""
        messages = sorted(
            (row.settled_at, row.message.number, row.message)
            for row in self.inbox.values()
            if row.state != "accepted" and row.settled_at < before
        )[:limit]
        deliveries = sorted(
            (row.settled_at, row.delivery.number, row.delivery.id)
            for row in self.outbox.values()
            if row.state != "pending" and row.settled_at < before
        )[:limit]
        for _, _, message in messages:
            del self.inbox[message.id]
            del self.dedup[message.connector, message.platform_id]
        for _, _, delivery_id in deliveries:
            del self.outbox[delivery_id]
        return Pruned(len(messages), len(deliveries))


class MemoryStore:
    """Rows in memory; see `runtime.store.Store` for what may be relied on.

    Args:
        epoch: written on every row.
        fails_at: numbers of the commits, from 1, that raise
            `StoreUnavailableError` and write nothing.
    """

    def __init__(self, *, epoch: int = 0, fails_at: Collection[int] = ()) -> None:
        self._epoch = epoch
        self._fails_at = fails_at
        self._commits = 0
        self._healthy = True
        self._closed = False
        self._rows = Rows()

    @property
    def epoch(self) -> int:
        """What is written on every row."""
        return self._epoch

    @property
    def healthy(self) -> bool:
        """False from a failed write until one succeeds."""
        return self._healthy

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

    async def unsettled(
        self, after: int = 0, limit: int = 1000
    ) -> tuple[StoredMessage, ...]:
        """Give messages not yet settled; see the port."""
        refuse_limit(limit)
        await self._enter()
        found = (
            row.message
            for row in self._rows.inbox.values()
            if row.state == "accepted" and row.message.number > after
        )
        return tuple(islice(found, limit))

    async def undelivered(
        self, connector: str | None = None, after: int = 0, limit: int = 1000
    ) -> tuple[StoredDelivery, ...]:
        """Give deliveries still pending; see the port."""
        refuse_limit(limit)
        refuse_half_character(connector or "")
        await self._enter()
        found = (
            row.delivery
            for row in self._rows.outbox.values()
            if row.state == "pending"
            and row.delivery.number > after
            and connector in (None, row.delivery.connector)
        )
        return tuple(islice(found, limit))

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
