"""Reading a database from outside, while another process may be using it.

It makes, changes and upgrades nothing. Each call is done at once, in the thread that
makes it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

import trio

from runtime.errors import MisuseError
from runtime.sqlite import read as reads
from runtime.sqlite.facts import SqliteFacts
from runtime.sqlite.read import DELIVERY, EVENT, MESSAGE, NEVER, RECORD
from runtime.store.database import (
    FIRST,
    MOST_NAMED,
    JournalEntry,
    Mark,
    OldestOpen,
    Totals,
    many_found,
    none_found,
)
from runtime.store.port import refuse_limit
from runtime.store.rows import StoredDelivery, StoredEvent, StoredMessage, StoredRecord
from runtime.store.text import refuse_half_character

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator

    import apsw

    from runtime.sqlite.file import SqliteFile
    from runtime.store.rows import (
        Counts,
        DeliveryState,
        InboxState,
        StoredEntry,
        StoredSnapshot,
    )

T = TypeVar("T")
Rows = list[tuple[Any, ...]]

PAGE = 1000
"""Rows read at once."""

LAST_CHARACTER = "\U0010ffff"
"""Sorts behind all others, as SQLite compares text: by its UTF-8 bytes."""

EVENTS = f"""SELECT number, {EVENT} FROM journal
    WHERE (stream = ? OR (stream > ? AND stream < ?)) AND number > ?
    ORDER BY number LIMIT ?"""
EVENTS_BEFORE = f"""SELECT number, {EVENT} FROM journal
    WHERE (stream = ? OR (stream > ? AND stream < ?)) AND number < ?
    ORDER BY number DESC LIMIT ?"""
JOURNAL = f"""SELECT {EVENT} FROM journal WHERE (stream, sequence) > (?, ?)
    ORDER BY stream, sequence LIMIT ?"""
RECORD_OF = f"SELECT {RECORD} FROM record WHERE kind = ? AND id = ?"
RECENT = f"""SELECT {RECORD} FROM record INDEXED BY record_at
    WHERE kind = ? AND at >= ? AND (at, number) < (?, ?)
    ORDER BY at DESC, number DESC LIMIT ?"""
ENDING = """SELECT DISTINCT stream FROM journal
    WHERE substr(stream, -length(?1)) = ?1 LIMIT ?2"""
TOTALS = """SELECT (SELECT count(*) FROM inbox), (SELECT count(*) FROM outbox),
    (SELECT count(*) FROM journal)"""
# The rows that are not settled have an index of their own.
OLDEST = """SELECT
    (SELECT min(accepted_at) FROM inbox WHERE settled_at IS NULL),
    (SELECT min(enqueued_at) FROM outbox WHERE settled_at IS NULL)"""
KINDS = "SELECT kind, count(*) FROM record GROUP BY kind"


class SqliteInspection:
    """Reads the rows of a database; made by `SqliteDatabase.inspect`; see the port.

    Args:
        file: whose errors are told.
        db: an open connection to it; inside a transaction all calls see one moment.
    """

    def __init__(self, file: SqliteFile, db: apsw.Connection) -> None:
        self._file = file
        self._db = db

    def counts(self) -> Counts:
        """Count messages and deliveries by state; see the port."""
        with self._file.told():
            return reads.counts(self._db)

    def oldest_open(self) -> OldestOpen:
        """Give since when the oldest rows wait; see the port."""
        with self._file.told():
            message, delivery = next(self._db.execute(OLDEST))
        return OldestOpen(message or 0.0, delivery or 0.0)

    def totals(self) -> Totals:
        """Count all rows; see the port."""
        with self._file.told():
            messages, deliveries, events = next(self._db.execute(TOTALS))
            kinds = {str(kind): int(rows) for kind, rows in self._db.execute(KINDS)}
        return Totals(int(messages), int(deliveries), int(events), kinds)

    def message(self, name: str) -> StoredMessage:
        """Give the one message whose id is or begins with `name`; see the port."""
        with self._file.told():
            return find_message(self._db, name)

    def messages(
        self,
        states: Collection[InboxState] = (),
        *,
        newest_first: bool = True,
        past: int = 0,
        limit: int = 100,
    ) -> tuple[StoredMessage, ...]:
        """Give messages in any of these states; see the port."""
        order = ("inbox", newest_first, past)
        rows = self._listed(order, MESSAGE, states, limit)
        return tuple([StoredMessage(*row) for row in rows])

    def delivery(self, name: str) -> StoredDelivery:
        """Give the one delivery whose id is or begins with `name`; see the port."""
        with self._file.told():
            return find_delivery(self._db, name)

    def deliveries(
        self,
        states: Collection[DeliveryState] = (),
        *,
        newest_first: bool = True,
        besides: Collection[str] = (),
        limit: int = 100,
    ) -> tuple[StoredDelivery, ...]:
        """Give deliveries in any of these states; see the port."""
        order = ("outbox", newest_first, 0)
        rows = self._listed(order, DELIVERY, states, limit, besides)
        return tuple([StoredDelivery(*row) for row in rows])

    def count_deliveries(
        self, states: Collection[DeliveryState] = (), besides: Collection[str] = ()
    ) -> int:
        """Count deliveries in any of these states; see the port."""
        chosen, given = where(states, besides)
        sql = f"SELECT count(*) FROM outbox WHERE {chosen} TRUE"
        with self._file.told():
            return int(self._db.execute(sql, given).get)

    def deliveries_of(self, correlation_id: str) -> tuple[StoredDelivery, ...]:
        """Give all deliveries that belong to one message; see the port."""
        refuse_half_character(correlation_id)
        with self._file.told():
            return reads.correlated(self._db, correlation_id)

    def events(
        self, stream: str, after: int = 0, limit: int = 1000
    ) -> tuple[JournalEntry, ...]:
        """Give the first events of a stream and those below it; see the port."""
        return self._entries(EVENTS, stream, after, limit)

    def events_before(
        self, stream: str, before: int = 0, limit: int = 1000
    ) -> tuple[JournalEntry, ...]:
        """Give the last events of a stream and those below it; see the port."""
        found = self._entries(EVENTS_BEFORE, stream, before or NEVER, limit)
        return found[::-1]

    def journal(self) -> Iterator[StoredEvent]:
        """Give all events, stream by stream; see the port."""
        last = ("", 0)
        while True:
            with self._file.told():
                rows = list(self._db.execute(JOURNAL, (*last, PAGE)))
            for row in rows:
                event = StoredEvent(*row)
                last = (event.stream, event.sequence)
                yield event
            if len(rows) < PAGE:
                return

    def streams_ending(self, end: str, limit: int = 10) -> tuple[str, ...]:
        """Name streams whose name ends so; see the port."""
        refuse_limit(limit)
        refuse_half_character(end)
        with self._file.told():
            rows = list(self._db.execute(ENDING, (end, limit)))
        return tuple(str(name) for (name,) in rows)

    def snapshot(self, stream: str) -> StoredSnapshot | None:
        """Give the newest snapshot of a stream; see the port."""
        refuse_half_character(stream)
        with self._file.told():
            return reads.snapshot(self._db, stream)

    def record(self, kind: str, name: str) -> StoredRecord | None:
        """Give the one record of this kind and id; see the port."""
        refuse_half_character(kind + name)
        with self._file.told():
            row = self._db.execute(RECORD_OF, (kind, name)).get
        return None if row is None else StoredRecord(*row)

    def records(
        self, kind: str, since: float = 0.0, past: Mark = FIRST
    ) -> Iterator[StoredRecord]:
        """Give records of a kind, the newest first; see the port."""
        last = past
        while True:
            with self._file.told():
                rows = list(self._db.execute(RECENT, (kind, since, *last, PAGE)))
            for row in rows:
                record = StoredRecord(*row)
                last = (record.at, record.number)
                yield record
            if len(rows) < PAGE:
                return

    def entries(self, kind: str, owner: str | None = None) -> Iterator[StoredEntry]:
        """Give entries of a kind in the order of their ids; see the port."""
        after = ""
        while True:
            with self._file.told():
                rows = reads.listed(self._db, kind, owner, after, PAGE)
            yield from rows
            if len(rows) < PAGE:
                return
            after = rows[-1].id

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
        chosen, given = where(states, besides)
        if newest_first:
            past = past or NEVER
        side, way = ("<", "DESC") if newest_first else (">", "ASC")
        sql = f"""SELECT {columns} FROM {table} WHERE {chosen} number {side} ?
            ORDER BY number {way} LIMIT ?"""
        with self._file.told():
            return list(self._db.execute(sql, (*given, past, limit)))


def where(
    states: Collection[str], besides: Collection[str]
) -> tuple[str, tuple[str, ...]]:
    """Write the condition for rows in these states, without some receipts, and `AND`.

    Returns:
        The condition, and the values for its question marks.
    """
    marks = ", ".join("?" * len(states))
    chosen = f"state IN ({marks}) AND" if states else ""
    chosen += " substr(receipt, 1, length(?)) <> ? AND" * len(besides)
    return chosen, (*states, *(each for receipt in besides for each in [receipt] * 2))


def find_message(db: apsw.Connection, name: str) -> StoredMessage:
    """Find the one message whose id is `name`, or else begins with it.

    Raises:
        MisuseError: there is none, or more than one.
    """
    return StoredMessage(*find(db, "inbox", MESSAGE, name))


def find_delivery(db: apsw.Connection, name: str) -> StoredDelivery:
    """Find the one delivery whose id is `name`, or else begins with it.

    Raises:
        MisuseError: there is none, or more than one.
    """
    return StoredDelivery(*find(db, "outbox", DELIVERY, name))


def find(db: apsw.Connection, table: str, columns: str, name: str) -> tuple[Any, ...]:
    """Find the one row of the inbox or outbox whose id is `name`, or begins with it.

    Raises:
        MisuseError: there is none, or more than one.
    """
    what = "message" if table == "inbox" else "delivery"
    refuse_half_character(name)
    select = f"SELECT id, {columns} FROM {table}"
    rows = list(db.execute(f"{select} WHERE id = ?", (name,)))
    if not rows and name:
        rows = list(
            db.execute(
                f"{select} WHERE id > ? AND id < ? ORDER BY id LIMIT ?",
                (name, name + LAST_CHARACTER, MOST_NAMED + 1),
            )
        )
    if not rows:
        raise MisuseError(none_found(what, name))
    if len(rows) > 1:
        raise MisuseError(many_found(what, name, [str(row[0]) for row in rows]))
    return tuple(rows[0][1:])


class AtOnce:
    """Does what a thread would do, in the thread that asks.

    Args:
        file: whose errors are told.
        db: an open connection to it.
    """

    def __init__(self, file: SqliteFile, db: apsw.Connection) -> None:
        self._file = file
        self._db = db

    async def call(self, work: Callable[[apsw.Connection], T], size: int = 0) -> T:
        """Do `work`, and give what it gives; `size` means nothing here."""
        del size
        await trio.lowlevel.checkpoint()
        with self._file.told():
            return work(self._db)


class SqliteReader:
    """Entries and facts of a database; made by `SqliteDatabase.reader`; see the port.

    Args:
        file: whose errors are told.
        db: an open connection to it, for reading only.
    """

    def __init__(self, file: SqliteFile, db: apsw.Connection) -> None:
        self._jobs = AtOnce(file, db)
        self.facts = SqliteFacts(self._jobs, self._jobs)
        """What is remembered."""

    async def entry(self, kind: str, name: str) -> StoredEntry | None:
        """Give one entry; None if there is none."""
        refuse_half_character(kind + name)
        return await self._jobs.call(lambda db: reads.one(db, kind, name))

    async def entries(
        self, kind: str, owner: str | None = None, after: str = "", limit: int = 1000
    ) -> tuple[StoredEntry, ...]:
        """Give entries of a kind in the order of their ids; see the port."""
        refuse_limit(limit)
        refuse_half_character(kind + (owner or "") + after)
        return await self._jobs.call(
            lambda db: reads.listed(db, kind, owner, after, limit)
        )
