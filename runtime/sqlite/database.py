"""A database file as operators reach it, while a server may be using it.

Implements `runtime.store.database`. Each change by hand is one short transaction of
its own.
"""

from __future__ import annotations

import contextlib
from collections.abc import Generator, Iterator
from pathlib import Path

import apsw

from runtime.disk import flush_file
from runtime.errors import StoreRefusedError, StoreUnavailableError
from runtime.sql.database import SqlInspection, SqlReader, SqlRepair
from runtime.sql.read import Db, Row
from runtime.sqlite import backup as backups
from runtime.sqlite.copying import SqliteRows, unfinished_beside
from runtime.sqlite.file import (
    SqliteFile,
    SqliteOptions,
    greet,
    is_claimed,
    refuse_damaged,
    refuse_old_engine,
)
from runtime.sqlite.migrations import MIGRATIONS, migrate
from runtime.sqlite.vectors import LOOKUP, extension, teach

# Chosen: longer than any group commit takes, also on a slow disk.
PATIENCE = SqliteOptions(busy_timeout=10.0)


class SqliteDatabase(SqlRepair):
    """One database file from outside; see the port.

    Args:
        path: the file.
    """

    def __init__(self, path: Path) -> None:
        self.path = path

    @property
    def name(self) -> str:
        """How texts for people name it: its path."""
        return str(self.path)

    def exists(self) -> bool:
        """Whether there is a file; see the port."""
        with SqliteFile(self.path).told():
            return self.path.exists()

    def is_current(self) -> bool:
        """Whether it is this release's; see the port."""
        db = SqliteFile(self.path).open_existing(oldest=0)
        try:
            return int(db.pragma("user_version")) == len(MIGRATIONS)
        finally:
            db.close()

    def refuse_damaged(self) -> None:
        """Read it whole; see the port."""
        file = SqliteFile(self.path)
        with contextlib.closing(file.open_existing(oldest=0)) as db, file.told():
            refuse_damaged(db, self.path)

    def engine_version(self) -> str:
        """Give the version of SQLite; see the port."""
        version = apsw.sqlite_lib_version()
        refuse_old_engine(version)
        return version

    @contextlib.contextmanager
    def inspect(self, *, live: bool = False) -> Generator[SqlInspection]:
        """Open it for reading; see the port."""
        file = SqliteFile(self.path)
        with contextlib.closing(file.open_existing()) as db:
            if not live:
                with file.told():
                    db.execute("BEGIN")
                    greet(db)
            yield SqlInspection(file, db)

    @contextlib.contextmanager
    def reader(self) -> Generator[SqlReader]:
        """Open it for reading as the running program does; see the port."""
        file = SqliteFile(self.path)
        with contextlib.closing(file.open_existing()) as db:
            teach(db, extension())
            yield SqlReader(file, db, LOOKUP)

    @contextlib.contextmanager
    def claim(self) -> Generator[None]:
        """Keep servers out while the block runs; see the port."""
        file = SqliteFile(self.path)
        # Before it is opened, which makes a new WAL: the loss would never be told.
        if file.has_lost_wal(file.mark_left()):
            raise StoreRefusedError(
                "what was stored last may be missing: the last process was killed,"
                f" and {file.wal_path} is gone; put it back if it was moved away,"
                " else start the server once, which goes on without it"
            )
        file.open_existing().close()  # else one would be made, or brought up to date
        lock = file.lock()
        try:
            # Why: a copy that was put back is in no WAL mode yet, in which who reads
            # and who writes do not wait for each other.
            file.open_writer().close()
            yield
        finally:
            lock.release()

    @contextlib.contextmanager
    def read_whole(self) -> Generator[SqliteRows]:
        """Give all its rows; see the port."""
        file = SqliteFile(self.path)
        with self.claim(), contextlib.closing(file.open_existing()) as db, file.told():
            db.execute("BEGIN")
            yield SqliteRows(db)

    @contextlib.contextmanager
    def fill_new(self) -> Generator[SqliteRows]:
        """Make it, to be filled; see the port."""
        file = SqliteFile(self.path)
        with file.told():
            if self.path.exists():
                raise StoreRefusedError(
                    f"{self.path} exists already, and is left as it is; name a new file"
                )
            self.path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            with unfinished_beside(self.path) as unfinished:
                with contextlib.closing(apsw.Connection(str(unfinished))) as db:
                    migrate(db, unfinished)
                    db.execute("BEGIN IMMEDIATE")
                    yield SqliteRows(db)
                    db.execute("COMMIT")
                flush_file(unfinished)
                unfinished.replace(self.path)

    def back_up(self, target: Path, *, replace: bool = False) -> int:
        """Write a whole copy to a file; see the port."""
        return backups.backup(self.path, target, replace=replace)

    def refuse_replacing(self) -> None:
        """Check that `restore` may put a copy in its place; see the port."""
        backups.refuse_replacing(self.path)

    def restore(self, copy: Path) -> Path | None:
        """Put a copy in its place; see the port."""
        return backups.restore(copy, self.path)

    def notice(self, db: Db) -> None:
        """Do nothing: SQLite tells by itself."""

    def stream(self, db: Db, sql: str) -> Iterator[Row]:
        """Give the rows of a statement without holding all of them."""
        return iter(db.execute(sql))

    def overwrite(self) -> None:
        """Empty the log of writes; the file itself was overwritten (`changing`)."""
        file = SqliteFile(self.path, PATIENCE)
        db = file.open_existing(apsw.SQLITE_OPEN_READWRITE)
        with contextlib.closing(db), file.told():
            try:
                db.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_TRUNCATE)
            except apsw.BusyError as error:
                raise StoreUnavailableError(
                    f"the rows are changed, but {file.wal_path} still has what was"
                    " removed, because another program reads an old state: end that"
                    " one, then start Callboard once"
                ) from error

    def is_served(self) -> bool:
        """Whether a process works with it."""
        return is_claimed(self.path)

    @contextlib.contextmanager
    def changing(self) -> Generator[apsw.Connection]:
        """Open it for one transaction; see `SqlRepair`."""
        file = SqliteFile(self.path, PATIENCE)
        db = file.open_existing(apsw.SQLITE_OPEN_READWRITE)
        with contextlib.closing(db), file.told():
            db.pragma("synchronous", "full")
            db.pragma("secure_delete", "on")
            db.execute("BEGIN IMMEDIATE")
            yield db
            db.execute("COMMIT")
