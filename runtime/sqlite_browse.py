"""Reading a database from outside, while another process may be using it.

For command-line tools: it blocks, it makes nothing, changes nothing and brings
nothing up to date.
"""

# apsw's stubs name `collections.abc.Buffer`, which Python 3.11 has not got yet:
# pyright: reportUnknownMemberType=false

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Any

import msgspec

from runtime import sqlite_reads
from runtime.errors import MisuseError
from runtime.rows import StoredDelivery, StoredEvent, StoredMessage
from runtime.sqlite_file import SqliteFile
from runtime.sqlite_reads import DELIVERY, EVENT, MESSAGE, NEVER
from runtime.store import refuse_limit
from runtime.texts import refuse_half_character

if TYPE_CHECKING:
    from collections.abc import Collection, Generator
    from pathlib import Path

    import apsw

    from runtime.rows import (
        Counts,
        DeliveryState,
        InboxState,
        StoredRecord,
        StoredSnapshot,
    )

Rows = list[tuple[Any, ...]]

LAST_CHARACTER = "\U0010ffff"
"""Sorts behind all others, as SQLite compares text: by its UTF-8 bytes."""

MOST_NAMED = 5
"""How many of the rows that an id may mean are named."""

EVENTS = f"""SELECT number, {EVENT} FROM journal
    WHERE (stream = ? OR (stream > ? AND stream < ?)) AND number > ?
    ORDER BY number LIMIT ?"""
EVENTS_BEFORE = f"""SELECT number, {EVENT} FROM journal
    WHERE (stream = ? OR (stream > ? AND stream < ?)) AND number < ?
    ORDER BY number DESC LIMIT ?"""
# Sequences have no gap, so the last one is the count.
STREAMS = """SELECT last.stream, last.events, journal.at
    FROM (SELECT stream, max(sequence) AS events FROM journal GROUP BY stream) AS last
    JOIN journal ON journal.stream = last.stream AND sequence = last.events
    ORDER BY journal.number DESC LIMIT ?"""


class JournalEntry(msgspec.Struct, frozen=True):
    """An event and its place among those of all streams."""

    number: int
    event: StoredEvent


class StreamSummary(msgspec.Struct, frozen=True):
    """How much is in a stream."""

    stream: str
    events: int
    at: float
    """Unix seconds of the last one."""


@contextlib.contextmanager
def browse(path: Path) -> Generator[Browser]:
    """Open a database for reading.

    Raises:
        StoreUnavailableError: there is none, or the disk fails.
        StoreRefusedError: another program's, or an older release's.
        StoreTooNewError: a newer release wrote it.
        CorruptError: it is damaged.
    """
    file = SqliteFile(path)
    db = file.open_existing()
    try:
        yield Browser(file, db)
    finally:
        db.close()


class Browser:
    """What stands in a database at this moment; made by `browse`.

    Its calls raise `MisuseError` for a limit outside 1 to `MAX_ROWS`, and
    `StoreUnavailableError` or `CorruptError` when the disk fails.

    Args:
        file: whose errors are told.
        db: an open connection to it.
    """

    def __init__(self, file: SqliteFile, db: apsw.Connection) -> None:
        self._file = file
        self._db = db

    def messages(
        self,
        states: Collection[InboxState] = (),
        *,
        newest_first: bool = True,
        past: int = 0,
        limit: int = 100,
    ) -> tuple[StoredMessage, ...]:
        """Give messages in any of these states; none named: in any state.

        Args:
            states: those that are wanted.
            newest_first: else the oldest.
            past: number of the last one seen in that order; 0: from the first.
            limit: most messages to give.
        """
        order = ("inbox", newest_first, past)
        rows = self._listed(order, MESSAGE, states, limit)
        return tuple([StoredMessage(*row) for row in rows])

    def deliveries(
        self,
        states: Collection[DeliveryState] = (),
        *,
        newest_first: bool = True,
        besides: Collection[str] = (),
        limit: int = 100,
    ) -> tuple[StoredDelivery, ...]:
        """Give deliveries in any of these states; none named: in any state.

        Args:
            states: those that are wanted.
            newest_first: else the oldest.
            besides: receipts, as SQLite's GLOB has them; such deliveries are left out.
            limit: most deliveries to give.
        """
        order = ("outbox", newest_first, 0)
        rows = self._listed(order, DELIVERY, states, limit, besides)
        return tuple([StoredDelivery(*row) for row in rows])

    def count_deliveries(
        self, states: Collection[DeliveryState], besides: Collection[str] = ()
    ) -> int:
        """Count the deliveries that `deliveries` would give if it had no limit."""
        chosen = where(states, besides)
        sql = f"SELECT count(*) FROM outbox WHERE {chosen} TRUE"
        with self._file.told():
            return int(self._db.execute(sql, (*states, *besides)).get)

    def message(self, name: str) -> StoredMessage:
        """Give the one message whose id is `name`, or else begins with it.

        Raises:
            MisuseError: there is none, or more than one.
        """
        with self._file.told():
            return StoredMessage(*find(self._db, "inbox", MESSAGE, name))

    def delivery(self, name: str) -> StoredDelivery:
        """Give the one delivery whose id is `name`, or else begins with it.

        Raises:
            MisuseError: there is none, or more than one.
        """
        with self._file.told():
            return StoredDelivery(*find(self._db, "outbox", DELIVERY, name))

    def deliveries_of(self, correlation_id: str) -> tuple[StoredDelivery, ...]:
        """Give all deliveries that belong to one message, in their order."""
        refuse_half_character(correlation_id)
        with self._file.told():
            return sqlite_reads.correlated(self._db, correlation_id)

    def events(
        self, name: str, after: int = 0, limit: int = 1000
    ) -> tuple[JournalEntry, ...]:
        """Give the events of a stream and of those below it, as they happened.

        Args:
            name: of the stream; those that begin with it and a `/` are below it.
            after: number of the last entry seen; 0 from the first.
            limit: most entries to give.
        """
        return self._entries(EVENTS, name, after, limit)

    def events_before(
        self, name: str, before: int = 0, limit: int = 1000
    ) -> tuple[JournalEntry, ...]:
        """Give the last events of a stream and of those below it, as they happened.

        Args:
            name: of the stream, as for `events`.
            before: number of the entry up to which they are wanted; 0: to the last.
            limit: most entries to give.
        """
        found = self._entries(EVENTS_BEFORE, name, before or NEVER, limit)
        return found[::-1]

    def _entries(
        self, sql: str, name: str, number: int, limit: int
    ) -> tuple[JournalEntry, ...]:
        refuse_limit(limit)
        refuse_half_character(name)
        # `0` is the character behind `/`.
        given = (name, f"{name}/", f"{name}0", number, limit)
        with self._file.told():
            return tuple(
                JournalEntry(number, StoredEvent(*row))
                for number, *row in self._db.execute(sql, given)
            )

    def streams(self, limit: int = 1000) -> tuple[StreamSummary, ...]:
        """Give all streams, that with the newest event first."""
        refuse_limit(limit)
        with self._file.told():
            rows = self._db.execute(STREAMS, (limit,))
            return tuple(StreamSummary(*row) for row in rows)

    def snapshot(self, stream: str) -> StoredSnapshot | None:
        """Give the newest snapshot of a stream, if it has one."""
        refuse_half_character(stream)
        with self._file.told():
            return sqlite_reads.snapshot(self._db, stream)

    def records(
        self, kind: str, owner: str | None = None, before: int = 0, limit: int = 1000
    ) -> tuple[StoredRecord, ...]:
        """Give records of a kind; see `runtime.store.Store.records`."""
        refuse_limit(limit)
        refuse_half_character(kind + (owner or ""))
        with self._file.told():
            return sqlite_reads.records(self._db, kind, owner, before, limit)

    def counts(self) -> Counts:
        """Count inbox and outbox rows by state, as of one moment."""
        with self._file.told():
            return sqlite_reads.counts(self._db)

    def _listed(
        self,
        order: tuple[str, bool, int],
        columns: str,
        states: Collection[str],
        limit: int,
        besides: Collection[str] = (),
    ) -> Rows:
        refuse_limit(limit)
        table, newest_first, past = order
        chosen = where(states, besides)
        if newest_first:
            past = past or NEVER
        side, way = ("<", "DESC") if newest_first else (">", "ASC")
        sql = f"""SELECT {columns} FROM {table} WHERE {chosen} number {side} ?
            ORDER BY number {way} LIMIT ?"""
        with self._file.told():
            return list(self._db.execute(sql, (*states, *besides, past, limit)))


def where(states: Collection[str], besides: Collection[str]) -> str:
    """Write the condition for rows in these states, without some receipts, and `AND`.

    What it takes are the states, then the receipts.
    """
    marks = ", ".join("?" * len(states))
    chosen = f"state IN ({marks}) AND" if states else ""
    return chosen + " receipt NOT GLOB ? AND" * len(besides)


def find(db: apsw.Connection, table: str, columns: str, name: str) -> tuple[Any, ...]:
    """Find the one row whose id is `name`, or else begins with it.

    Args:
        db: an open connection.
        table: `inbox` or `outbox`.
        columns: which to give.
        name: the id or its beginning.

    Raises:
        MisuseError: there is none, or more than one.
    """
    what = "message" if table == "inbox" else "delivery"
    refuse_half_character(name)
    if not name:
        raise MisuseError(f"give the id of a {what}, or the beginning of one")
    select = f"SELECT id, {columns} FROM {table}"
    rows = list(db.execute(f"{select} WHERE id = ?", (name,)))
    if not rows:
        rows = list(
            db.execute(
                f"{select} WHERE id > ? AND id < ? ORDER BY id LIMIT ?",
                (name, name + LAST_CHARACTER, MOST_NAMED + 1),
            )
        )
    if not rows:
        raise MisuseError(f"no {what} has an id that is or begins with {name!r}")
    if len(rows) > 1:
        ids = [str(row[0]) for row in rows]
        more = ", …" if len(ids) > MOST_NAMED else ""
        raise MisuseError(
            f"more than one {what} has an id that begins with {name!r}:"
            f" {', '.join(ids[:MOST_NAMED])}{more}; give more of it"
        )
    return tuple(rows[0][1:])
