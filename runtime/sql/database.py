"""A database as operators reach it, while a server may be using it.

Implements the larger part of `runtime.store.database`. Each call is done at once, in
the thread that makes it; each change by hand is one short transaction of its own. To
remove what must not stay anywhere in it, `change` goes through all rows; nobody else
may work with the database meanwhile.
"""

from __future__ import annotations

import abc
from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import AbstractContextManager
from functools import partial
from typing import TYPE_CHECKING, ClassVar, Protocol, TypeVar

import msgspec
import trio

from runtime.errors import MisuseError
from runtime.sql import read as reads, write as rows
from runtime.sql.facts import Lookup, SqlFacts
from runtime.sql.read import DELIVERY, EVENT, MESSAGE, NEVER, RECORD, Db, Row
from runtime.store.database import (
    DROPPED,
    FIRST,
    MOST_NAMED,
    Decide,
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
    AnyRow,
    Commit,
    Counts,
    DeliveryState,
    InboxState,
    StoredDelivery,
    StoredEntry,
    StoredEvent,
    StoredMessage,
    StoredRecord,
    StoredSnapshot,
    TableName,
)
from runtime.store.text import refuse_half_character

if TYPE_CHECKING:
    Stream = Callable[[str], Iterator[Row]]
    """Gives the rows of a statement one after the other."""


READ: dict[TableName, tuple[str, str]] = {
    "inbox": ("SELECT 0, connector, id, '', '', body FROM inbox", "id"),
    "journal": (
        """SELECT sequence, kind, stream, '', coalesce(inbox_id, ''), body
        FROM journal""",
        "sequence, stream",
    ),
    "outbox": ("SELECT 0, connector, id, chat, correlation_id, body FROM outbox", "id"),
    "snapshot": ("SELECT 0, '', stream, '', '', body FROM snapshot", "stream"),
    "record": ("SELECT 0, kind, id, owner, '', body FROM record", "id, kind"),
    "entry": ("SELECT 0, kind, id, owner, '', body FROM entry", "id, kind"),
    "fact": (
        """SELECT fact.number, fact.kind, fact.id, home.scope, home.agent,
        text, category, key, provenance
        FROM fact JOIN fact_scope AS home ON home.number = fact.scope""",
        "number",
    ),
}
"""By table: number, kind, id, owner, key, body; and the columns that name a row."""

EMPTY_SCOPES = """DELETE FROM fact_scope WHERE NOT EXISTS
    (SELECT 1 FROM fact WHERE fact.scope = fact_scope.number)"""
"""The name of a scope says whose it is, so it is removed with the last fact."""

TOLD = ("text", "category", "key", "provenance")
"""What the body of a fact is made of."""


def rows_of(stream: Stream, table: TableName) -> Iterator[tuple[int, AnyRow]]:
    """Give the rows of a table with their numbers, 0 where none is needed."""
    for number, kind, name, owner, key, body, *more in stream(READ[table][0]):
        if table == "fact":
            told: dict[str, str] = dict(zip(TOLD, (body, *more), strict=True))
            packed = msgspec.json.encode(told)
            yield number, AnyRow(table, kind, name, owner, key, packed)
        else:
            yield number, AnyRow(table, kind, name, owner, key, bytes(body))


def change(db: Db, stream: Stream, table: TableName, decide: Decide) -> int:
    """Change the rows of a table; count them."""
    # Why first all: a table that is read must not change meanwhile.
    wanted = [
        (number, row, body)
        for number, row in rows_of(stream, table)
        if (body := decide(row)) != row.body
    ]
    columns = READ[table][1]
    where = " AND ".join([f"{each} = ?" for each in columns.split(", ")])
    for number, row, body in wanted:
        found = {
            "id": row.id,
            "stream": row.id,
            "kind": row.kind,
            "number": number,
            "sequence": number,
        }
        place = [found[each] for each in columns.split(", ")]
        if body is None:
            db.execute(f"DELETE FROM {table} WHERE {where}", place)
        elif table != "fact":
            more = ", version = version + 1" if table == "entry" else ""
            db.execute(
                f"UPDATE {table} SET body = ?{more} WHERE {where}", (body, *place)
            )
    if table == "fact":
        db.execute(EMPTY_SCOPES)
    return len(wanted)


T = TypeVar("T")

PAGE = 1000
"""Rows read at once."""

LAST_CHARACTER = "\U0010ffff"
"""Sorts behind all others, as texts are compared: by their UTF-8 bytes."""

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
    WHERE substr(stream, length(stream) - length(?) + 1) = ? LIMIT ?"""
TOTALS = """SELECT (SELECT count(*) FROM inbox), (SELECT count(*) FROM outbox),
    (SELECT count(*) FROM journal)"""
# The rows that are not settled have an index of their own.
OLDEST = """SELECT
    (SELECT min(accepted_at) FROM inbox WHERE settled_at IS NULL),
    (SELECT min(enqueued_at) FROM outbox WHERE settled_at IS NULL)"""
KINDS = "SELECT kind, count(*) FROM record GROUP BY kind"

# Why the attempts stay: each has its row in the ledger. `BY_HAND` grants new ones, and
# tells a delivery that is to be said once more from one that was handed over twice.
RETRY = """UPDATE inbox SET state = 'accepted', reason = ?, due_at = 0.0,
    settled_at = NULL WHERE id = ?"""
HURRY = "UPDATE inbox SET due_at = 0.0 WHERE id = ?"
DROP = "UPDATE inbox SET state = 'dropped', reason = ?, settled_at = ? WHERE id = ?"
EPOCH = "SELECT max(epoch) FROM entry"
RETRY_DELIVERY = """UPDATE outbox SET state = 'pending', receipt = ?,
    settled_at = NULL WHERE id = ?"""
DROP_DELIVERY = """UPDATE outbox SET state = 'dead', receipt = ?, settled_at = ?
    WHERE id = ?"""


class Telling(Protocol):
    """Where a database is: a file, or a server."""

    def told(self) -> AbstractContextManager[None]:
        """Translate the engine's errors while the block runs."""
        ...


class SqlRepair(abc.ABC):
    """Changes by hand; see the port."""

    locking: ClassVar[str] = ""
    """Ends a statement that reads what is changed next, so that nobody else does."""

    @abc.abstractmethod
    def changing(self) -> AbstractContextManager[Db]:
        """Open the database for one transaction, kept if nothing is raised."""

    @abc.abstractmethod
    def notice(self, db: Db) -> None:
        """Have a running server notice that something was changed."""

    @abc.abstractmethod
    def stream(self, db: Db, sql: str) -> Iterator[Row]:
        """Give the rows of a statement without holding all of them."""

    @abc.abstractmethod
    def overwrite(self) -> None:
        """Have what was removed overwritten, as far as the engine can."""

    @abc.abstractmethod
    def inspect(self) -> AbstractContextManager[SqlInspection]:
        """Open it for reading; see the port."""

    @abc.abstractmethod
    def is_served(self) -> bool:
        """Whether a process works with it."""

    def retry_message(self, name: str, now: float) -> RepairResult:
        """Have a message tried at once; see the port."""
        with self.changing() as db:
            row = find_message(db, name, self.locking)
            result = retried_message(row, now)
            if result.has_changed:
                is_dead = row.state == "dead"
                given = (BY_HAND, row.id) if is_dead else (row.id,)
                db.execute(RETRY if is_dead else HURRY, given)
                self.notice(db)
        return result

    def drop_message(
        self, name: str, now: float, settling: Callable[[StoredMessage], Commit]
    ) -> RepairResult:
        """Settle a message as dropped; see the port."""
        with self.changing() as db:
            row = find_message(db, name, self.locking)
            result = dropped_message(row, is_served=self.is_served())
            if result.has_changed:
                if row.state == "dead":
                    db.execute(DROP, (DROPPED, now, row.id))
                else:
                    rows.write(db, settling(row), row.epoch)
                self.notice(db)
        return result

    def retry_delivery(self, name: str) -> RepairResult:
        """Have a delivery sent again; see the port."""
        with self.changing() as db:
            row = find_delivery(db, name, self.locking)
            result = retried_delivery(row)
            if result.has_changed:
                db.execute(RETRY_DELIVERY, (BY_HAND, row.id))
                self.notice(db)
        return result

    def drop_delivery(self, name: str, now: float) -> RepairResult:
        """Settle a delivery as dead; see the port."""
        with self.changing() as db:
            row = find_delivery(db, name, self.locking)
            result = dropped_delivery(row)
            if result.has_changed:
                db.execute(DROP_DELIVERY, (DROPPED, now, row.id))
                self.notice(db)
        return result

    def write(self, commits: Iterable[Commit]) -> int:
        """Store units, all of them or none; see the port."""
        count = 0
        with self.changing() as db:
            epoch: int = db.execute(EPOCH).get or 0
            for commit in commits:
                rows.write(db, commit, epoch)
                count += 1
            self.notice(db)
        return count

    def every_row(self) -> Iterator[AnyRow]:
        """Give every row; see the port."""
        with self.inspect() as found:
            for table in READ:
                read = partial(self.stream, found.db)
                for _, row in rows_of(read, table):
                    yield row

    def rewrite(self, decide: Decide) -> int:
        """Change or remove rows; see the port."""
        with self.changing() as db:
            read = partial(self.stream, db)
            tables = READ
            count = sum(change(db, read, each, decide) for each in tables)
            if count:
                self.notice(db)
        if count:
            self.overwrite()
        return count


class SqlInspection:
    """Reads the rows of a database; made by `Database.inspect`; see the port.

    It makes, changes and upgrades nothing.

    Args:
        db: an open connection to it; inside a transaction all calls see one moment.
    """

    def __init__(self, place: Telling, db: Db) -> None:
        self._place = place
        self.db = db

    def _rows(self, sql: str, given: tuple[object, ...] = ()) -> list[Row]:
        with self._place.told():
            return list(self.db.execute(sql, given))

    def counts(self) -> Counts:
        """Count messages and deliveries by state; see the port."""
        with self._place.told():
            return reads.counts(self.db)

    def oldest_open(self) -> OldestOpen:
        """Give since when the oldest rows wait; see the port."""
        message, delivery = self._rows(OLDEST)[0]
        return OldestOpen(message or 0.0, delivery or 0.0)

    def totals(self) -> Totals:
        """Count all rows; see the port."""
        messages, deliveries, events = self._rows(TOTALS)[0]
        kinds = {str(kind): int(count) for kind, count in self._rows(KINDS)}
        return Totals(int(messages), int(deliveries), int(events), kinds)

    def message(self, name: str) -> StoredMessage:
        """Give the one message whose id is or begins with `name`; see the port."""
        with self._place.told():
            return find_message(self.db, name)

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
        found = self._listed(order, MESSAGE, states, limit)
        return tuple([StoredMessage(*row) for row in found])

    def delivery(self, name: str) -> StoredDelivery:
        """Give the one delivery whose id is or begins with `name`; see the port."""
        with self._place.told():
            return find_delivery(self.db, name)

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
        found = self._listed(order, DELIVERY, states, limit, besides)
        return tuple([StoredDelivery(*row) for row in found])

    def count_deliveries(
        self, states: Collection[DeliveryState] = (), besides: Collection[str] = ()
    ) -> int:
        """Count deliveries in any of these states; see the port."""
        chosen, given = where(states, besides)
        sql = f"SELECT count(*) FROM outbox WHERE {chosen} TRUE"
        return int(self._rows(sql, given)[0][0])

    def deliveries_of(self, correlation_id: str) -> tuple[StoredDelivery, ...]:
        """Give all deliveries that belong to one message; see the port."""
        refuse_half_character(correlation_id)
        with self._place.told():
            return reads.correlated(self.db, correlation_id)

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
            found = self._rows(JOURNAL, (*last, PAGE))
            for row in found:
                event = StoredEvent(*row)
                last = (event.stream, event.sequence)
                yield event
            if len(found) < PAGE:
                return

    def streams_ending(self, end: str, limit: int = 10) -> tuple[str, ...]:
        """Name streams whose name ends so; see the port."""
        refuse_limit(limit)
        refuse_half_character(end)
        return tuple([str(row[0]) for row in self._rows(ENDING, (end, end, limit))])

    def snapshot(self, stream: str) -> StoredSnapshot | None:
        """Give the newest snapshot of a stream; see the port."""
        refuse_half_character(stream)
        with self._place.told():
            return reads.snapshot(self.db, stream)

    def record(self, kind: str, name: str) -> StoredRecord | None:
        """Give the one record of this kind and id; see the port."""
        refuse_half_character(kind + name)
        found = self._rows(RECORD_OF, (kind, name))
        return StoredRecord(*found[0]) if found else None

    def records(
        self, kind: str, since: float = 0.0, past: Mark = FIRST
    ) -> Iterator[StoredRecord]:
        """Give records of a kind, the newest first; see the port."""
        last = past
        while True:
            found = self._rows(RECENT, (kind, since, *last, PAGE))
            for row in found:
                record = StoredRecord(*row)
                last = (record.at, record.number)
                yield record
            if len(found) < PAGE:
                return

    def entries(self, kind: str, owner: str | None = None) -> Iterator[StoredEntry]:
        """Give entries of a kind in the order of their ids; see the port."""
        after = ""
        while True:
            with self._place.told():
                found = reads.listed(self.db, kind, owner, after, PAGE)
            yield from found
            if len(found) < PAGE:
                return
            after = found[-1].id

    def _entries(
        self, sql: str, name: str, number: int, limit: int
    ) -> tuple[JournalEntry, ...]:
        refuse_limit(limit)
        refuse_half_character(name)
        # `0` is the character behind `/`.
        given = (name, f"{name}/", f"{name}0", number, limit)
        return tuple(
            [JournalEntry(at, StoredEvent(*row)) for at, *row in self._rows(sql, given)]
        )

    def _listed(
        self,
        order: tuple[str, bool, int],
        columns: str,
        states: Collection[str],
        limit: int,
        besides: Collection[str] = (),
    ) -> list[Row]:
        refuse_limit(limit)
        table, newest_first, past = order
        chosen, given = where(states, besides)
        if states and OPEN.issuperset(states):
            chosen += " settled_at IS NULL AND"  # so that an index has them all
        if newest_first:
            past = past or NEVER
        side, way = ("<", "DESC") if newest_first else (">", "ASC")
        sql = f"""SELECT {columns} FROM {table} WHERE {chosen} number {side} ?
            ORDER BY number {way} LIMIT ?"""
        return self._rows(sql, (*given, past, limit))


OPEN = frozenset({"accepted", "running", "pending", "sending"})
"""States of messages and deliveries that are not settled."""


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


def find_message(db: Db, name: str, locking: str = "") -> StoredMessage:
    """Find the one message whose id is `name`, or else begins with it.

    Raises:
        MisuseError: there is none, or more than one.
    """
    return StoredMessage(*find(db, "inbox", MESSAGE, name, locking))


def find_delivery(db: Db, name: str, locking: str = "") -> StoredDelivery:
    """Find the one delivery whose id is `name`, or else begins with it.

    Raises:
        MisuseError: there is none, or more than one.
    """
    return StoredDelivery(*find(db, "outbox", DELIVERY, name, locking))


def find(db: Db, table: str, columns: str, name: str, locking: str) -> Row:
    """Find the one row of the inbox or outbox whose id is `name`, or begins with it.

    Args:
        name: an id, or its beginning.
        locking: see `SqlRepair`.

    Raises:
        MisuseError: there is none, or more than one.
    """
    what = "message" if table == "inbox" else "delivery"
    refuse_half_character(name)
    whole = f"SELECT {columns} FROM {table} WHERE id = ?{locking}"
    row: Row | None = db.execute(whole, (name,)).get
    if row is None and name:
        begun = f"SELECT id FROM {table} WHERE id > ? AND id < ? ORDER BY id LIMIT ?"
        given = (name, name + LAST_CHARACTER, MOST_NAMED + 1)
        ids = [str(found[0]) for found in db.execute(begun, given)]
        if len(ids) > 1:
            raise MisuseError(many_found(what, name, ids))
        row = db.execute(whole, ids).get if ids else None
    if row is None:
        raise MisuseError(none_found(what, name))
    return row


class AtOnce:
    """Does what a thread would do, in the thread that asks."""

    def __init__(self, place: Telling, db: Db) -> None:
        self._place = place
        self._db = db

    async def call(self, work: Callable[[Db], T], size: int = 0) -> T:
        """Do `work`, and give what it gives; `size` means nothing here."""
        del size
        await trio.lowlevel.checkpoint()
        with self._place.told():
            return work(self._db)


class SqlReader:
    """Entries and facts of a database; made by `Database.reader`; see the port.

    Args:
        db: an open connection to it, for reading only.
    """

    def __init__(self, place: Telling, db: Db, lookup: Lookup) -> None:
        self._jobs = AtOnce(place, db)
        self.facts = SqlFacts(self._jobs, self._jobs, lookup)
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
