"""A database on a server as operators reach it, while a server may be using it.

Implements `runtime.store.database`. Each change by hand is one short transaction of its
own. What copies a whole database PostgreSQL brings itself, and the errors name it.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Collection, Generator, Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import trio

from runtime.errors import MisuseError, StoreRefusedError, StoreUnavailableError
from runtime.postgresql import read as reads
from runtime.postgresql import write as rows
from runtime.postgresql.facts import PostgresqlFacts
from runtime.postgresql.migrations import (
    MIGRATIONS,
    TABLES,
    migrate,
    refuse_other,
    version_of,
)
from runtime.postgresql.read import (
    DELIVERY,
    EVENT,
    MESSAGE,
    NEVER,
    RECORD,
    Rows,
    rows_of,
    run,
)
from runtime.postgresql.server import PostgresqlServer
from runtime.postgresql.threads import claim, is_held
from runtime.store.copying import Row, Table, pages
from runtime.store.database import (
    DROPPED,
    FIRST,
    MOST_NAMED,
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
    DeliveryState,
    InboxState,
    StoredDelivery,
    StoredEntry,
    StoredEvent,
    StoredMessage,
    StoredRecord,
    StoredSnapshot,
)
from runtime.store.text import refuse_half_character

if TYPE_CHECKING:
    from runtime.postgresql.server import Db

T = TypeVar("T")

PAGE = 1000
"""Rows read at once."""

PATIENCE = 10.0
"""Seconds that a change by hand may take."""

LAST_CHARACTER = "\U0010ffff"
"""Sorts behind all others, as texts are compared: by their UTF-8 bytes."""

BELOW = "(stream = %s OR (stream > %s AND stream < %s))"
EVENTS = f"""SELECT number, {EVENT} FROM journal
    WHERE {BELOW} AND number > %s ORDER BY number LIMIT %s"""
EVENTS_BEFORE = f"""SELECT number, {EVENT} FROM journal
    WHERE {BELOW} AND number < %s ORDER BY number DESC LIMIT %s"""
JOURNAL = f"""SELECT {EVENT} FROM journal WHERE (stream, sequence) > (%s, %s)
    ORDER BY stream, sequence LIMIT %s"""
RECORD_OF = f"SELECT {RECORD} FROM record WHERE kind = %s AND id = %s"
RECENT = f"""SELECT {RECORD} FROM record
    WHERE kind = %s AND at >= %s AND (at, number) < (%s, %s)
    ORDER BY at DESC, number DESC LIMIT %s"""
ENDING = """SELECT DISTINCT stream FROM journal
    WHERE right(stream, length(%s)) = %s LIMIT %s"""
TOTALS = """SELECT (SELECT count(*) FROM inbox), (SELECT count(*) FROM outbox),
    (SELECT count(*) FROM journal)"""
OLDEST = """SELECT
    (SELECT min(accepted_at) FROM inbox WHERE settled_at IS NULL),
    (SELECT min(enqueued_at) FROM outbox WHERE settled_at IS NULL)"""
KINDS = "SELECT kind, count(*) FROM record GROUP BY kind"

# Why the attempts stay: each has its row in the ledger. `BY_HAND` grants new ones, and
# tells a delivery that is to be said once more from one that was handed over twice.
RETRY = """UPDATE inbox SET state = 'accepted', reason = %s, due_at = 0,
    settled_at = NULL WHERE id = %s"""
HURRY = "UPDATE inbox SET due_at = 0 WHERE id = %s"
DROP = "UPDATE inbox SET state = 'dropped', reason = %s, settled_at = %s WHERE id = %s"
EPOCH = "SELECT coalesce(max(epoch), 0) FROM entry"
RETRY_DELIVERY = """UPDATE outbox SET state = 'pending', receipt = %s,
    settled_at = NULL WHERE id = %s"""
DROP_DELIVERY = """UPDATE outbox SET state = 'dead', receipt = %s, settled_at = %s
    WHERE id = %s"""
NOTICED = "UPDATE change SET version = version + 1 WHERE topic = 'rows'"

# SQLite keeps no part with these; that of a fact stands for its scope, too.
FILL_VECTOR = """INSERT INTO fact_vector(part, scope, number, space, vector)
    SELECT part, %s, number, %s, %s FROM fact WHERE number = %s"""
PLACE_SCOPES = """UPDATE fact_scope SET part =
    coalesce((SELECT min(part) FROM fact WHERE scope = fact_scope.number), part)"""

COPYING = (
    "{name} is copied by PostgreSQL's own programs, also while it is in use:"
    " pg_dump --format=custom --file=COPY; to go back, stop Callboard, then pg_restore"
    " --clean --if-exists COPY. docs/operate/postgresql.md has the whole commands;"
    " callboard store copy makes a SQLite file of it"
)


class PostgresqlDatabase:
    """One database on a server from outside; see the port.

    Args:
        server: which one.
    """

    def __init__(self, server: PostgresqlServer) -> None:
        self._server = server

    @property
    def name(self) -> str:
        """How texts for people name it: without user and password."""
        return self._server.name

    def exists(self) -> bool:
        """Whether a start has made its tables; see the port."""
        with self._connected() as db:
            return version_of(db) is not None

    def is_current(self) -> bool:
        """Whether it is this release's; see the port."""
        with self._connected() as db:
            version = refuse_other(db, self.name)
        if not version:
            raise StoreUnavailableError(
                f"{self.name} has no tables of Callboard's yet; `callboard serve`"
                " makes them"
            )
        return version == len(MIGRATIONS)

    def refuse_damaged(self) -> None:
        """Read all rows once; see the port.

        Of damage in them the server itself finds what its page checksums show.
        """
        with self._opened() as db:
            for table in TABLES:
                rows_of(db, f"SELECT sum(hashtext({table}::text)) FROM {table}")

    def engine_version(self) -> str:
        """Give the version of the server; see the port."""
        with self._connected() as db:
            return str(rows_of(db, "SHOW server_version")[0][0])

    @contextlib.contextmanager
    def inspect(self, *, live: bool = False) -> Generator[PostgresqlInspection]:
        """Open it for reading; see the port."""
        with self._opened() as db:
            if not live:
                db.execute("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")
                reads.greet(db)
            yield PostgresqlInspection(self._server, db)

    @contextlib.contextmanager
    def reader(self) -> Generator[PostgresqlOutside]:
        """Open it for reading as the running program does; see the port."""
        with self._opened() as db:
            yield PostgresqlOutside(self._server, db)

    @contextlib.contextmanager
    def claim(self) -> Generator[None]:
        """Keep servers out while the block runs; see the port."""
        with self._opened() as db:
            claim(db, self.name)
            yield

    @contextlib.contextmanager
    def read_whole(self) -> Generator[PostgresqlRows]:
        """Give all its rows; see the port."""
        with self._opened() as db:
            claim(db, self.name)
            db.execute("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")
            yield PostgresqlRows(db)

    @contextlib.contextmanager
    def fill_new(self) -> Generator[PostgresqlRows]:
        """Make its tables, to be filled; see the port."""
        with self._connected() as db:
            claim(db, self.name)
            migrate(db, self.name)
            for table in TABLES:
                if rows_of(db, f"SELECT 1 FROM {table} LIMIT 1"):
                    raise StoreRefusedError(
                        f"{self.name} has rows already, and is left as it is; name an"
                        " empty database"
                    )
            with db.transaction():
                yield PostgresqlRows(db)

    def back_up(self, target: Path, *, replace: bool = False) -> int:
        """Refuse, and say what to do instead."""
        del target, replace
        raise StoreRefusedError(COPYING.format(name=self.name))

    def refuse_replacing(self) -> None:
        """Refuse, and say what to do instead."""
        raise StoreRefusedError(COPYING.format(name=self.name))

    def restore(self, copy: Path) -> Path | None:
        """Refuse, and say what to do instead."""
        del copy
        raise StoreRefusedError(COPYING.format(name=self.name))

    def retry_message(self, name: str, now: float) -> RepairResult:
        """Have a message tried at once; see the port."""
        with self._changing() as db:
            row = find_message(db, name, lock=True)
            result = retried_message(row, now)
            if result.has_changed and row.state == "dead":
                run(db, RETRY, (BY_HAND, row.id))
            elif result.has_changed:
                run(db, HURRY, (row.id,))
            return noticed(db, result)

    def drop_message(
        self, name: str, now: float, settling: Callable[[StoredMessage], Commit]
    ) -> RepairResult:
        """Settle a message as dropped; see the port."""
        with self._changing() as db:
            row = find_message(db, name, lock=True)
            result = dropped_message(row, is_served=is_held(db))
            if result.has_changed and row.state == "dead":
                run(db, DROP, (DROPPED, now, row.id))
            elif result.has_changed:
                rows.write(rows.Session(db, is_stepping=True), settling(row), row.epoch)
            return noticed(db, result)

    def retry_delivery(self, name: str) -> RepairResult:
        """Have a delivery sent again; see the port."""
        with self._changing() as db:
            row = find_delivery(db, name, lock=True)
            result = retried_delivery(row)
            if result.has_changed:
                run(db, RETRY_DELIVERY, (BY_HAND, row.id))
            return noticed(db, result)

    def drop_delivery(self, name: str, now: float) -> RepairResult:
        """Settle a delivery as dead; see the port."""
        with self._changing() as db:
            row = find_delivery(db, name, lock=True)
            result = dropped_delivery(row)
            if result.has_changed:
                run(db, DROP_DELIVERY, (DROPPED, now, row.id))
            return noticed(db, result)

    def write(self, commits: Iterable[Commit]) -> int:
        """Store units, all of them or none; see the port."""
        count = 0
        with self._changing() as db:
            epoch: int = rows_of(db, EPOCH)[0][0]
            session = rows.Session(db, is_stepping=True)
            for commit in commits:
                rows.write(session, commit, epoch)
                count += 1
            run(db, NOTICED)
        return count

    @contextlib.contextmanager
    def _connected(self) -> Generator[Db]:
        """Connect, whatever is there."""
        db = self._server.connect("callboard outside")
        with contextlib.closing(db), self._server.told():
            yield db

    @contextlib.contextmanager
    def _opened(self) -> Generator[Db]:
        """Connect to a database of this release."""
        with self._connected() as db:
            self._refuse_old(db)
            yield db

    def _refuse_old(self, db: Db) -> None:
        version = refuse_other(db, self.name)
        if not version:
            raise StoreUnavailableError(
                f"{self.name} has no tables of Callboard's yet; `callboard serve`"
                " makes them"
            )
        if version < len(MIGRATIONS):
            raise StoreRefusedError(
                f"{self.name} is an older release's (its version is {version}, this"
                f" release's {len(MIGRATIONS)}); start `callboard serve` once, which"
                " brings it up to date"
            )

    @contextlib.contextmanager
    def _changing(self) -> Generator[Db]:
        """Connect for one transaction, kept if nothing is raised."""
        db = self._server.connect("callboard outside", PATIENCE)
        with contextlib.closing(db), self._server.told():
            self._refuse_old(db)
            with db.transaction():
                yield db


def noticed(db: Db, result: RepairResult) -> RepairResult:
    """Let a running server notice that something was changed, if it was."""
    if result.has_changed:
        run(db, NOTICED)
    return result


class PostgresqlInspection:
    """Reads the rows of a database; made by `PostgresqlDatabase.inspect`; see the port.

    Args:
        server: whose errors are told.
        db: an open connection to it; inside a transaction all calls see one moment.
    """

    def __init__(self, server: PostgresqlServer, db: Db) -> None:
        self._server = server
        self._db = db

    def _rows(self, sql: str, given: Iterable[object] = ()) -> Rows:
        with self._server.told():
            return rows_of(self._db, sql, tuple(given))

    def counts(self) -> Counts:
        """Count messages and deliveries by state; see the port."""
        with self._server.told():
            return reads.counts(self._db)

    def oldest_open(self) -> OldestOpen:
        """Give since when the oldest rows wait; see the port."""
        message, delivery = self._rows(OLDEST)[0]
        return OldestOpen(message or 0.0, delivery or 0.0)

    def totals(self) -> Totals:
        """Count all rows; see the port."""
        counted = self._rows(TOTALS)[0]
        kinds = {str(kind): int(count) for kind, count in self._rows(KINDS)}
        messages, deliveries, events = counted
        return Totals(int(messages), int(deliveries), int(events), kinds)

    def message(self, name: str) -> StoredMessage:
        """Give the one message whose id is or begins with `name`; see the port."""
        with self._server.told():
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
        found = self._listed(order, MESSAGE, states, limit)
        return tuple([StoredMessage(*row) for row in found])

    def delivery(self, name: str) -> StoredDelivery:
        """Give the one delivery whose id is or begins with `name`; see the port."""
        with self._server.told():
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
        with self._server.told():
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
        with self._server.told():
            return reads.snapshot(self._db, stream)

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
            with self._server.told():
                found = reads.listed(self._db, kind, owner, after, PAGE)
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
    ) -> Rows:
        refuse_limit(limit)
        table, newest_first, past = order
        chosen, given = where(states, besides)
        if newest_first:
            past = past or NEVER
        side, way = ("<", "DESC") if newest_first else (">", "ASC")
        sql = f"""SELECT {columns} FROM {table} WHERE {chosen} number {side} %s
            ORDER BY number {way} LIMIT %s"""
        return self._rows(sql, (*given, past, limit))


def where(
    states: Collection[str], besides: Collection[str]
) -> tuple[str, tuple[object, ...]]:
    """Write the condition for rows in these states, without some receipts, and `AND`.

    Returns:
        The condition, and its values.
    """
    chosen = "state = ANY(%s::text[]) AND" if states else ""
    chosen += " NOT starts_with(receipt, %s) AND" * len(besides)
    return chosen, (*([list(states)] if states else []), *besides)


def find_message(db: Db, name: str, *, lock: bool = False) -> StoredMessage:
    """Find the one message whose id is `name`, or else begins with it.

    Args:
        db: an open connection.
        name: an id, or its beginning.
        lock: whether nobody else may change it until the transaction's end.

    Raises:
        MisuseError: there is none, or more than one.
    """
    return StoredMessage(*find(db, "inbox", MESSAGE, name, lock=lock))


def find_delivery(db: Db, name: str, *, lock: bool = False) -> StoredDelivery:
    """Find the one delivery whose id is `name`, or else begins with it.

    Args:
        db: an open connection.
        name: an id, or its beginning.
        lock: whether nobody else may change it until the transaction's end.

    Raises:
        MisuseError: there is none, or more than one.
    """
    return StoredDelivery(*find(db, "outbox", DELIVERY, name, lock=lock))


def find(db: Db, table: str, columns: str, name: str, *, lock: bool) -> tuple[Any, ...]:
    """Find the one row of the inbox or outbox whose id is `name`, or begins with it.

    Raises:
        MisuseError: there is none, or more than one.
    """
    what = "message" if table == "inbox" else "delivery"
    refuse_half_character(name)
    select = f"SELECT id, {columns} FROM {table}"
    whole = f"{select} WHERE id = %s{' FOR UPDATE' if lock else ''}"
    found = rows_of(db, whole, (name,))
    if not found and name:
        begun = f"{select} WHERE id > %s AND id < %s ORDER BY id LIMIT %s"
        found = rows_of(db, begun, (name, name + LAST_CHARACTER, MOST_NAMED + 1))
        if len(found) == 1 and lock:
            found = rows_of(db, whole, (found[0][0],))
    if not found:
        raise MisuseError(none_found(what, name))
    if len(found) > 1:
        raise MisuseError(many_found(what, name, [str(row[0]) for row in found]))
    return tuple(found[0][1:])


class PostgresqlOutside:
    """Entries and facts of a database; made by `PostgresqlDatabase.reader`.

    See the port `StoreReader`.

    Args:
        server: whose errors are told.
        db: an open connection to it.
    """

    def __init__(self, server: PostgresqlServer, db: Db) -> None:
        self._server = server
        self._db = db
        self.facts = PostgresqlFacts(self._ask, self._refuse)
        """What is remembered."""

    async def _ask(self, work: Callable[[Db], T]) -> T:
        await trio.lowlevel.checkpoint()
        with self._server.told():
            return work(self._db)

    async def _refuse(self, work: Callable[[Db], T]) -> T:
        del work
        await trio.lowlevel.checkpoint()
        raise StoreUnavailableError("this only reads; a server forgets by itself")

    async def entry(self, kind: str, name: str) -> StoredEntry | None:
        """Give one entry; None if there is none."""
        refuse_half_character(kind + name)
        return await self._ask(lambda db: reads.one(db, kind, name))

    async def entries(
        self, kind: str, owner: str | None = None, after: str = "", limit: int = 1000
    ) -> tuple[StoredEntry, ...]:
        """Give entries of a kind in the order of their ids; see the port."""
        refuse_limit(limit)
        refuse_half_character(kind + (owner or "") + after)
        return await self._ask(lambda db: reads.listed(db, kind, owner, after, limit))


class PostgresqlRows:
    """All rows of a database.

    Args:
        db: an open connection, inside a transaction.
    """

    def __init__(self, db: Db) -> None:
        self._db = db

    def rows(self, table: Table) -> Iterator[Row]:
        """Give the rows of a table, in its order."""
        columns, order = ", ".join(table.columns), ", ".join(table.order)
        sql = f"SELECT {columns} FROM {table.name} ORDER BY {order}"
        # A cursor of the server's, so that not all rows are held here.
        with self._db.cursor(f"rows_{table.name}", binary=True) as cursor:
            cursor.itersize = PAGE
            yield from cursor.execute(sql.encode())

    def last_number(self, table: Table) -> int:
        """Give the last number that a row of it was ever given; 0: none."""
        if table.name == "journal":  # of these SQLite remembers no more
            last = "SELECT coalesce(max(number), 0) FROM journal"
            return int(rows_of(self._db, last)[0][0])
        sequence = f"SELECT last_value, is_called FROM {table.name}_number_seq"
        value, is_called = rows_of(self._db, sequence)[0]
        return int(value) if is_called else 0

    def fill(self, table: Table, rows: Iterable[Row]) -> None:
        """Add rows as they are."""
        if table.name == "fact_vector":
            for page in pages(rows):
                given = [(row[0], *row[2:], row[1]) for row in page]
                with self._db.cursor() as cursor:
                    cursor.executemany(FILL_VECTOR, given)
            return
        is_scope = table.name == "fact_scope"
        columns = ", ".join((*table.columns, *(("part",) if is_scope else ())))
        sql = f"COPY {table.name}({columns}) FROM STDIN"
        with self._db.cursor() as cursor, cursor.copy(sql.encode()) as sink:
            for row in rows:
                sink.write_row((*row, 0) if is_scope else row)
        if table.name == "fact":
            run(self._db, PLACE_SCOPES)

    def number_on(self, table: Table, last: int) -> None:
        """Have the next row numbered behind `last`."""
        sql = "SELECT setval(pg_get_serial_sequence(%s, 'number'), %s, %s)"
        rows_of(self._db, sql, (table.name, max(last, 1), last > 0))
