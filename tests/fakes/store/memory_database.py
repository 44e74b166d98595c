"""The port of operators on the store in memory: the twin that shares the contract.

It shows that the port asks for nothing that only SQLite has. Entries of the journal are
numbered by their times, so a test gives each commit one of its own.
"""

from __future__ import annotations

import contextlib
import copy
from collections.abc import Callable, Collection, Generator, Iterable, Iterator
from typing import TypeVar

import msgspec

from runtime.errors import MisuseError
from runtime.store.database import (
    DROPPED,
    FIRST,
    JournalEntry,
    Mark,
    OldestOpen,
    RepairResult,
    Totals,
    dropped_delivery,
    dropped_message,
    many_found,
    none_found,
    retried_delivery,
    retried_message,
)
from runtime.store.port import refuse_limit
from runtime.store.rows import (
    BY_HAND,
    Commit,
    Counts,
    StoredDelivery,
    StoredEntry,
    StoredEvent,
    StoredMessage,
    StoredRecord,
    StoredSnapshot,
)
from runtime.store.text import refuse_half_character
from tests.fakes.store.in_memory import MemoryStore, Rows

Found = TypeVar("Found", StoredMessage, StoredDelivery)


class MemoryInspection:
    """Reads rows in memory; see `runtime.store.database.Inspection`."""

    def __init__(self, rows: Rows) -> None:
        self._rows = rows

    def counts(self) -> Counts:
        counted = Counts({}, {})
        for message in self._rows.inbox.values():
            counted.inbox[message.state] = counted.inbox.get(message.state, 0) + 1
        for each in self._rows.outbox.values():
            counted.outbox[each.state] = counted.outbox.get(each.state, 0) + 1
        return counted

    def oldest_open(self) -> OldestOpen:
        inbox, outbox = self._rows.inbox.values(), self._rows.outbox.values()
        return OldestOpen(
            min((each.at for each in inbox if not each.settled_at), default=0.0),
            min((each.at for each in outbox if not each.settled_at), default=0.0),
        )

    def totals(self) -> Totals:
        rows = self._rows
        kinds = [kind for kind, _ in rows.records]
        events = sum(map(len, rows.journal.values()))
        by_kind = {kind: kinds.count(kind) for kind in kinds}
        return Totals(len(rows.inbox), len(rows.outbox), events, by_kind)

    def message(self, name: str) -> StoredMessage:
        return one_of(self._rows.inbox, "message", name)

    def messages(
        self,
        states: Collection[str] = (),
        *,
        newest_first: bool = True,
        past: int = 0,
        limit: int = 100,
    ) -> tuple[StoredMessage, ...]:
        rows = list(self._rows.inbox.values())
        found = ordered(rows, states, limit, newest_first=newest_first)
        behind = [
            row
            for row in found
            if not past or (row.number < past if newest_first else row.number > past)
        ]
        return tuple(behind[:limit])

    def delivery(self, name: str) -> StoredDelivery:
        return one_of(self._rows.outbox, "delivery", name)

    def deliveries(
        self,
        states: Collection[str] = (),
        *,
        newest_first: bool = True,
        besides: Collection[str] = (),
        limit: int = 100,
    ) -> tuple[StoredDelivery, ...]:
        rows = list(self._rows.outbox.values())
        found = ordered(rows, states, limit, newest_first=newest_first)
        wanted = [row for row in found if not row.receipt.startswith(tuple(besides))]
        return tuple((wanted if besides else found)[:limit])

    def count_deliveries(
        self, states: Collection[str] = (), besides: Collection[str] = ()
    ) -> int:
        return len(self.deliveries(states, besides=besides, limit=10_000))

    def deliveries_of(self, correlation_id: str) -> tuple[StoredDelivery, ...]:
        refuse_half_character(correlation_id)
        found = self._rows.outbox.values()
        return tuple(row for row in found if row.correlation_id == correlation_id)

    def events(
        self, stream: str, after: int = 0, limit: int = 1000
    ) -> tuple[JournalEntry, ...]:
        found = [each for each in self._below(stream, limit) if each.number > after]
        return tuple(found[:limit])

    def events_before(
        self, stream: str, before: int = 0, limit: int = 1000
    ) -> tuple[JournalEntry, ...]:
        found = [
            each
            for each in self._below(stream, limit)
            if not before or each.number < before
        ]
        return tuple(found[-limit:])

    def _below(self, stream: str, limit: int) -> list[JournalEntry]:
        refuse_limit(limit)
        refuse_half_character(stream)
        by_time = sorted(self.journal(), key=lambda event: event.at)
        return [
            JournalEntry(number, event)
            for number, event in enumerate(by_time, 1)
            if event.stream == stream or event.stream.startswith(f"{stream}/")
        ]

    def journal(self) -> Iterator[StoredEvent]:
        for stream in sorted(self._rows.journal):
            yield from self._rows.journal[stream]

    def streams_ending(self, end: str, limit: int = 10) -> tuple[str, ...]:
        refuse_limit(limit)
        refuse_half_character(end)
        found = [stream for stream in self._rows.journal if stream.endswith(end)]
        return tuple(found[:limit])

    def snapshot(self, stream: str) -> StoredSnapshot | None:
        refuse_half_character(stream)
        return self._rows.snapshots.get(stream)

    def record(self, kind: str, name: str) -> StoredRecord | None:
        return self._rows.records.get((kind, name))

    def records(
        self, kind: str, since: float = 0.0, past: Mark = FIRST
    ) -> Iterator[StoredRecord]:
        rows = [row for row in self._rows.records.values() if row.kind == kind]
        rows.sort(key=lambda row: (row.at, row.number), reverse=True)
        for row in rows:
            if row.at >= since and (row.at, row.number) < past:
                yield row

    def entries(self, kind: str, owner: str | None = None) -> Iterator[StoredEntry]:
        for row in sorted(self._rows.entries.values(), key=lambda row: row.id):
            if row.kind == kind and owner in {None, row.owner}:
                yield row


class MemoryDatabase:
    """A store in memory from outside; see `runtime.store.database`.

    Args:
        store: the one that a server works with.
    """

    def __init__(self, store: MemoryStore) -> None:
        self._store = store

    @contextlib.contextmanager
    def inspect(self, *, live: bool = False) -> Generator[MemoryInspection]:
        rows = self._store._rows
        yield MemoryInspection(rows if live else copy.deepcopy(rows))

    def retry_message(self, name: str, now: float) -> RepairResult:
        rows = self._store._rows.inbox
        row = one_of(rows, "message", name)
        result = retried_message(row, now)
        if result.has_changed and row.state == "dead":
            rows[row.id] = msgspec.structs.replace(
                row, state="accepted", reason=BY_HAND, due_at=0.0, settled_at=0.0
            )
        elif result.has_changed:
            rows[row.id] = msgspec.structs.replace(row, due_at=0.0)
        return self._noticed(result)

    def drop_message(
        self, name: str, now: float, settling: Callable[[StoredMessage], Commit]
    ) -> RepairResult:
        rows = self._store._rows.inbox
        row = one_of(rows, "message", name)
        result = dropped_message(row, is_served=not self._store._closed)
        if result.has_changed and row.state == "dead":
            rows[row.id] = msgspec.structs.replace(
                row, state="dropped", reason=DROPPED, settled_at=now
            )
        elif result.has_changed:
            self._store._rows.apply(settling(row), row.epoch)
        return self._noticed(result)

    def retry_delivery(self, name: str) -> RepairResult:
        rows = self._store._rows.outbox
        row = one_of(rows, "delivery", name)
        result = retried_delivery(row)
        if result.has_changed:
            rows[row.id] = msgspec.structs.replace(
                row, state="pending", receipt=BY_HAND, settled_at=0.0
            )
        return self._noticed(result)

    def drop_delivery(self, name: str, now: float) -> RepairResult:
        rows = self._store._rows.outbox
        row = one_of(rows, "delivery", name)
        result = dropped_delivery(row)
        if result.has_changed:
            rows[row.id] = msgspec.structs.replace(
                row, state="dead", receipt=DROPPED, settled_at=now
            )
        return self._noticed(result)

    def write(self, commits: Iterable[Commit]) -> int:
        before, count = copy.deepcopy(self._store._rows), 0
        try:
            for commit in commits:
                self._store._rows.apply(commit, self._store.epoch)
                count += 1
        except Exception:
            self._store._rows = before
            raise
        self._store.changed_outside = True
        return count

    def _noticed(self, result: RepairResult) -> RepairResult:
        self._store.changed_outside |= result.has_changed
        return result


def one_of(rows: dict[str, Found], what: str, name: str) -> Found:
    """Find the one row whose id is `name`, or else begins with it."""
    refuse_half_character(name)
    if name in rows:
        return rows[name]
    found = sorted(each for each in rows if name and each.startswith(name))
    if not found:
        raise MisuseError(none_found(what, name))
    if len(found) > 1:
        raise MisuseError(many_found(what, name, found))
    return rows[found[0]]


def ordered(
    rows: list[Found], states: Collection[str], limit: int, *, newest_first: bool
) -> list[Found]:
    """Give the rows in these states in the order of their numbers."""
    refuse_limit(limit)
    found = [row for row in rows if not states or row.state in states]
    found.sort(key=lambda row: row.number, reverse=newest_first)
    return found
