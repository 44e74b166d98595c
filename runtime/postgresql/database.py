"""A database on a server as operators reach it, while a server may be using it.

Implements `runtime.store.database`. Each change by hand is one short transaction of its
own. What copies a whole database PostgreSQL brings itself, and the errors name it.
"""

from __future__ import annotations

import contextlib
from collections.abc import Generator, Iterable, Iterator
from pathlib import Path

import msgspec
import psycopg

from runtime.errors import (
    MisuseError,
    StoreError,
    StoreRefusedError,
    StoreTooNewError,
    StoreUnavailableError,
)
from runtime.postgresql.migrations import (
    MIGRATIONS,
    TABLES,
    migrate,
    refuse_other,
    version_of,
)
from runtime.postgresql.server import Db, PostgresqlServer, plain, rows_of
from runtime.postgresql.session import LOOKUP, Session
from runtime.postgresql.threads import CHANGED, claim, is_held
from runtime.sql import write
from runtime.sql.database import PAGE, SqlInspection, SqlReader, SqlRepair
from runtime.sql.read import Db as SqlDb, Row as SqlRow
from runtime.store.copying import Row, Table, pages
from runtime.store.database import Decide
from runtime.store.rows import Commit
from runtime.telemetry.logs import EventLog

LOG = EventLog("store")

PATIENCE = 10.0
"""Seconds that a change by hand may take."""


# SQLite keeps no part with these; that of a fact stands for its scope, too.
FILL_VECTOR = """INSERT INTO fact_vector(part, scope, number, space, vector)
    SELECT part, %s, number, %s, %s FROM fact WHERE number = %s"""
WAITING = "SELECT number, body FROM handover ORDER BY number"

PLACE_SCOPES = """UPDATE fact_scope SET part =
    coalesce((SELECT min(part) FROM fact WHERE scope = fact_scope.number), part)"""

COPYING = (
    "{name} is copied by PostgreSQL's own programs, also while it is in use:"
    " pg_dump --format=custom --file=COPY; to go back, stop Callboard, then pg_restore"
    " --clean --if-exists COPY. docs/operate/postgresql.md has the whole commands;"
    " callboard store copy makes a SQLite file of it"
)


class PostgresqlDatabase(SqlRepair):
    """One database on a server from outside; see the port."""

    locking = " FOR UPDATE"

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
        """Whether it needs no change for this release; see the port."""
        with self._connected() as db:
            return self._version(db) >= len(MIGRATIONS)

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
    def inspect(self, *, live: bool = False) -> Generator[SqlInspection]:
        """Open it for reading; see the port."""
        with self._opened() as db:
            if not live:
                db.execute("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")
                version_of(db)  # the moment is that of the first statement
            yield SqlInspection(self._server, Session(db))

    @contextlib.contextmanager
    def reader(self) -> Generator[SqlReader]:
        """Open it for reading as the running program does; see the port."""
        with self._opened() as db:
            yield SqlReader(self._server, Session(db), LOOKUP)

    @contextlib.contextmanager
    def claim(self) -> Generator[None]:
        """Keep servers out while the block runs; see the port."""
        with self._opened() as db:
            claim(db, self.name)
            yield

    def rewrite(self, decide: Decide) -> int:
        """Change or remove rows; see the port."""
        with self._opened(whole=True) as db, db.transaction():
            store_waiting(db)
        return super().rewrite(decide)

    @contextlib.contextmanager
    def read_whole(self) -> Generator[PostgresqlRows]:
        """Give all its rows; see the port."""
        with self._opened(whole=True) as db:
            claim(db, self.name)
            with db.transaction():
                store_waiting(db)
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

    def refuse_replacing(self, copy: Path) -> None:
        """Refuse, and say what to do instead."""
        del copy
        raise StoreRefusedError(COPYING.format(name=self.name))

    def restore(self, copy: Path) -> Path | None:
        """Refuse, and say what to do instead."""
        del copy
        raise StoreRefusedError(COPYING.format(name=self.name))

    def notice(self, db: SqlDb) -> None:
        """Have a running server notice that something was changed."""
        db.execute(CHANGED)

    def stream(self, db: SqlDb, sql: str) -> Iterator[SqlRow]:
        """Give the rows of a statement without holding all of them."""
        assert isinstance(db, Session)  # noqa: S101  it is one of `changing`'s
        with db.db.cursor("stream", binary=True) as cursor:
            cursor.itersize = PAGE
            yield from cursor.execute(sql.encode())

    def overwrite(self) -> None:
        """Rewrite the tables without the removed rows; nobody may be serving."""
        with self._connected() as db:
            made = rows_of(db, "SELECT to_regclass('fact_direction') IS NOT NULL")
            further = ("fact_direction",) if made[0][0] else ()
            for table in (*TABLES, *further):
                try:
                    db.execute(f"VACUUM (FULL) {table}".encode())
                except psycopg.Error as error:
                    raise StoreUnavailableError(
                        f"the rows are changed, but the files of {self.name} still have"
                        f" what was removed, because table {table} could not be"
                        f" rewritten ({plain(error)}): end what reads it or make room,"
                        " then run VACUUM FULL in psql"
                    ) from error

    def is_served(self) -> bool:
        """Whether a process works with it."""
        with self._connected() as db:
            return is_held(db)

    @contextlib.contextmanager
    def _connected(self) -> Generator[Db]:
        """Connect, whatever is there."""
        db = self._server.connect("callboard outside")
        with contextlib.closing(db), self._server.told():
            yield db

    @contextlib.contextmanager
    def _opened(self, *, whole: bool = False) -> Generator[Db]:
        """Connect to a database that this release can use.

        Args:
            whole: whether nothing may be overlooked that a newer release has added.
        """
        with self._connected() as db:
            version = self._refuse_old(db)
            if whole and version > len(MIGRATIONS):
                raise StoreTooNewError(
                    f"{self.name} has tables of a newer release (its version is"
                    f" {version}, this release knows {len(MIGRATIONS)}), and this must"
                    " overlook nothing; do it with that release"
                )
            yield db

    def _version(self, db: Db) -> int:
        """Give the version of its tables; refuse a database without them."""
        version = refuse_other(db, self.name)
        if not version:
            raise StoreUnavailableError(
                f"{self.name} has no tables of Callboard's yet; `callboard serve`"
                " makes them"
            )
        return version

    def _refuse_old(self, db: Db) -> int:
        version = self._version(db)
        if version < len(MIGRATIONS):
            raise StoreRefusedError(
                f"{self.name} is an older release's (its version is {version}, this"
                f" release's {len(MIGRATIONS)}); start `callboard serve` once, which"
                " brings it up to date"
            )
        return version

    @contextlib.contextmanager
    def changing(self) -> Generator[SqlDb]:
        """Connect for one transaction; see `SqlRepair`."""
        db = self._server.connect("callboard outside", PATIENCE)
        with contextlib.closing(db), self._server.told():
            self._refuse_old(db)
            with db.transaction():
                yield Session(db)


def store_waiting(db: Db) -> None:
    """Store what nodes handed over and none of them has stored yet.

    Nobody may serve meanwhile. What cannot be stored any more is left out, as a node
    does.
    """
    epoch = rows_of(db, "SELECT coalesce(max(epoch), 0) FROM entry")[0][0]
    for number, body in rows_of(db, WAITING):
        handed = msgspec.msgpack.decode(body, type=Commit)
        try:
            with db.transaction():
                write.take_over(Session(db), number, handed, epoch)
        except (StoreError, MisuseError) as error:
            LOG.fault("what was handed over could not be stored", error, number=number)
            db.execute("DELETE FROM handover WHERE number = %s", (number,))


class PostgresqlRows:
    """All rows of a database."""

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
            self._db.execute(PLACE_SCOPES)

    def number_on(self, table: Table, last: int) -> None:
        """Have the next row numbered behind `last`."""
        sql = "SELECT setval(pg_get_serial_sequence(%s, 'number'), %s, %s)"
        rows_of(self._db, sql, (table.name, max(last, 1), last > 0))
