"""The rows of the store in memory: what a commit changes, and the way back.

Knows nothing of tasks, faults or closing; see `memory_store.py`.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, TypeVar

import msgspec

from runtime.entries import StoredEntry
from runtime.errors import (
    DeliveryKnownError,
    DuplicateError,
    KernelError,
    MisuseError,
    SequenceConflictError,
)
from runtime.memory_facts import FactRows
from runtime.rows import (
    Committed,
    Pruned,
    StoredDelivery,
    StoredEvent,
    StoredMessage,
    StoredRecord,
    StoredSnapshot,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from runtime.entries import Entry
    from runtime.rows import (
        Accept,
        Append,
        Commit,
        Enqueue,
        Record,
        Snapshot,
    )

K = TypeVar("K")
V = TypeVar("V")


class Rows:
    """All rows, and the way back out of a commit that fails half way."""

    def __init__(self) -> None:
        self.inbox: dict[str, StoredMessage] = {}
        self.dedup: dict[tuple[str, str], str] = {}
        self.journal: dict[str, list[StoredEvent]] = {}
        self.snapshots: dict[str, StoredSnapshot] = {}
        self.outbox: dict[str, StoredDelivery] = {}
        self.records: dict[tuple[str, str], StoredRecord] = {}
        self.entries: dict[tuple[str, str], StoredEntry] = {}
        self.streams_of: dict[str, set[str]] = {}
        """By message: the streams that are forgotten with it."""

        self._numbers: Counter[str] = Counter()
        self._undo: list[Callable[[], object]] = []
        self.facts = FactRows(self._undo)

    def apply(self, commit: Commit, epoch: int) -> Committed:
        """Take in all of a commit, or nothing and raise."""
        try:
            committed = self._apply(commit, epoch, commit.at)
        except KernelError:
            while self._undo:
                self._undo.pop()()
            raise
        self._undo.clear()
        return committed

    def _apply(self, commit: Commit, epoch: int, at: float) -> Committed:
        accepted = tuple([self._accept(row, epoch) for row in commit.accepts])
        for amend in commit.amends:
            self._change_message(amend.inbox_id, body=amend.body)
        for claim in commit.claims:
            self._change_message(
                claim.inbox_id, state="running", attempts=claim.attempt, started_at=at
            )
        for defer in commit.defers:
            self._change_message(
                defer.inbox_id,
                state="accepted",
                attempts=defer.attempts,
                due_at=defer.due_at,
                reason=defer.reason,
                started_at=at,
            )
        sequences = tuple([self._append(row, epoch, at) for row in commit.appends])
        for snapshot in commit.snapshots:
            self._keep_snapshot(snapshot, epoch, at)
        for settle in commit.settles:
            self._change_message(
                settle.inbox_id, state=settle.state, reason=settle.reason, settled_at=at
            )
        enqueued = tuple([self._enqueue(row, epoch, at) for row in commit.deliveries])
        self._change_deliveries(commit, at)
        for record in commit.records:
            self._write_record(record, epoch, at)
        for entry in commit.entries:
            self._write_entry(entry, epoch, at)
        self.facts.apply(commit.facts, epoch, at)
        return Committed(accepted, sequences, enqueued)

    def _change_deliveries(self, commit: Commit, at: float) -> None:
        for attempt in commit.send_attempts:
            self._change_delivery(
                attempt.delivery_id,
                state="sending",
                attempts=attempt.attempt,
                receipt="",
            )
        for unsaid in commit.not_said:
            self._change_delivery(
                unsaid.delivery_id, state="pending", receipt=unsaid.why
            )
        for receipt in commit.receipts:
            self._change_delivery(
                receipt.delivery_id,
                state=receipt.state,
                attempts=receipt.attempts,
                receipt=receipt.receipt,
                settled_at=at,
            )

    def _put(self, rows: dict[K, V], key: K, row: V) -> None:
        before = rows.get(key)
        rows[key] = row
        if before is None:
            self._undo.append(lambda: rows.pop(key))
        else:
            self._undo.append(lambda: rows.update({key: before}))

    def _next(self, table: str) -> int:
        self._numbers[table] += 1
        return self._numbers[table]

    def _accept(self, row: Accept, epoch: int) -> int:
        key = (row.connector, row.platform_id)
        if row.id in self.inbox or key in self.dedup:
            raise DuplicateError(
                f"message {row.id!r} ({row.connector}/{row.platform_id}) was accepted"
                " before; acknowledge it and do no more"
            )
        message = StoredMessage(
            number=self._next("inbox"),
            id=row.id,
            connector=row.connector,
            platform_id=row.platform_id,
            part=row.part,
            epoch=epoch,
            stream=row.stream,
            body=row.body,
            at=row.at,
            priority=row.priority,
            state="accepted",
            attempts=0,
            started_at=0.0,
            due_at=0.0,
            reason="",
            settled_at=0.0,
        )
        self._put(self.inbox, row.id, message)
        self._put(self.dedup, key, row.id)
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
        self._own(row)
        return len(events)

    def _own(self, row: Append) -> None:
        """Note whose a stream is, if it is a message's."""
        if row.inbox_id and row.stream not in self.streams_of.get(row.inbox_id, ()):
            owned = self.streams_of.setdefault(row.inbox_id, set())
            owned.add(row.stream)
            self._undo.append(lambda: owned.discard(row.stream))

    def _keep_snapshot(self, row: Snapshot, epoch: int, at: float) -> None:
        newest = self.snapshots.get(row.stream)
        if newest is None or newest.sequence <= row.sequence:
            stored = StoredSnapshot(
                row.stream, row.sequence, row.schema, row.body, row.part, epoch, at
            )
            self._put(self.snapshots, row.stream, stored)

    def _enqueue(self, row: Enqueue, epoch: int, at: float) -> int:
        if row.delivery_id in self.outbox:
            raise DeliveryKnownError(
                f"delivery {row.delivery_id!r} was enqueued before; it is on its way"
            )
        delivery = StoredDelivery(
            number=self._next("outbox"),
            id=row.delivery_id,
            connector=row.connector,
            chat=row.chat,
            correlation_id=row.correlation_id,
            part=row.part,
            epoch=epoch,
            body=row.body,
            at=at,
            state="pending",
            attempts=0,
            receipt="",
            settled_at=0.0,
        )
        self._put(self.outbox, row.delivery_id, delivery)
        return delivery.number

    def _change_message(self, name: str, **changes: object) -> None:
        row = self.inbox.get(name)
        if row is None:
            raise MisuseError(f"no message {name!r} was ever accepted")
        if not is_open(row):
            raise DuplicateError(
                f"message {name!r} is {row.state} already and stays so"
            )
        self._put(self.inbox, name, msgspec.structs.replace(row, **changes))

    def _change_delivery(self, name: str, **changes: object) -> None:
        row = self.outbox.get(name)
        if row is None:
            raise MisuseError(f"no delivery {name!r} was ever enqueued")
        if not is_open(row):
            raise DuplicateError(
                f"delivery {name!r} is {row.state} already and stays so"
            )
        self._put(self.outbox, name, msgspec.structs.replace(row, **changes))

    def _write_record(self, row: Record, epoch: int, at: float) -> None:
        key = (row.kind, row.id)
        stored = StoredRecord(
            number=self._next("record"),
            kind=row.kind,
            id=row.id,
            owner=row.owner,
            part=row.part,
            epoch=epoch,
            body=row.body,
            at=at,
        )
        self._put(self.records, key, stored)

    def _write_entry(self, row: Entry, epoch: int, at: float) -> None:
        key = (row.kind, row.id)
        before = self.entries.get(key)
        version = 0 if before is None else before.version
        if row.expected is not None and row.expected != version:
            raise SequenceConflictError(
                f"{row.kind} {row.id!r} is at version {version}, not at"
                f" {row.expected}: another writer was first; read it again"
            )
        if row.body is not None:
            stored = StoredEntry(
                *key, row.owner, row.part, epoch, version + 1, row.body, at
            )
            self._put(self.entries, key, stored)
        elif before is not None:
            del self.entries[key]
            self._undo.append(lambda: self.entries.update({key: before}))

    def prune(self, before: float, limit: int) -> Pruned:
        """Forget settled rows of each table, those settled longest ago first."""
        messages = sorted(
            (row.settled_at, row.number, row)
            for row in self.inbox.values()
            if not is_open(row) and row.settled_at < before
        )[:limit]
        deliveries = sorted(
            (row.settled_at, row.number, row.id)
            for row in self.outbox.values()
            if not is_open(row) and row.settled_at < before
        )[:limit]
        removed = events = 0
        for _, _, message in messages:
            count = self._count_events(message.id)
            if events and events + count > limit:
                break
            events += count
            removed += 1
            self._forget(message)
        for _, _, delivery_id in deliveries:
            del self.outbox[delivery_id]
        return Pruned(removed, len(deliveries), events)

    def _count_events(self, inbox_id: str) -> int:
        streams = self.streams_of.get(inbox_id, ())
        return sum(len(self.journal.get(stream, ())) for stream in streams)

    def _forget(self, message: StoredMessage) -> None:
        del self.inbox[message.id]
        del self.dedup[message.connector, message.platform_id]
        for stream in self.streams_of.pop(message.id, ()):
            self.journal.pop(stream, None)

    def prune_records(self, kind: str, before: float, limit: int) -> int:
        """Forget records of a kind, those written longest ago first."""
        old = sorted(
            (row.at, row.number, row.id)
            for row in self.records.values()
            if row.kind == kind and row.at < before
        )[:limit]
        for _, _, record_id in old:
            del self.records[kind, record_id]
        return len(old)


def is_open(row: StoredMessage | StoredDelivery) -> bool:
    """Whether a row has no terminal state yet."""
    return row.state in ("accepted", "running", "pending", "sending")
