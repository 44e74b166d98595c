"""A database file as operators reach it, while a server may be using it.

Implements `runtime.store.database`. Each change by hand is one short transaction of
its own. A whole copy, taken while a server may be busy, is one plain file, complete and
checked when it has its name; taking it or putting it back blocks: for command-line
tools.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import shutil
from collections.abc import Callable, Generator, Iterator
from pathlib import Path

import apsw

from runtime.disk import flush_file, flush_folder
from runtime.errors import (
    CorruptError,
    StoreRefusedError,
    StoreTooNewError,
    StoreUnavailableError,
)
from runtime.sql.database import SqlInspection, SqlReader, SqlRepair
from runtime.sql.read import Db, Row
from runtime.sql.vectors import LOOKUP, extension, teach
from runtime.sqlite.copying import SqliteRows, copy_whole, unfinished_beside
from runtime.sqlite.errors import DAMAGED, translate
from runtime.sqlite.file import (
    KEPT,
    SqliteFile,
    SqliteOptions,
    greet,
    is_claimed,
    refuse_damaged,
    refuse_old_engine,
    size_of,
)
from runtime.sqlite.migrations import MIGRATIONS, migrate

Link = Callable[[Path, Path], object]

UNREADABLE = (*DAMAGED, apsw.CantOpenError, apsw.IOError)
"""Errors of SQLite that say that a database cannot be opened by any program."""

LOGS = ("-wal", "-journal")
"""Ends of the names of files that hold what a database does not have yet, or must
give back. Beside another database they would be written into it."""


def backup(source: Path, target: Path, *, replace: bool = False) -> int:
    """Copy a database as it stands at this moment.

    A busy server is not held up: the copy reads from the one moment at which it
    began, whatever is written meanwhile.

    Args:
        target: the copy; it appears only when it is complete and found whole.
        replace: whether `target` may be there already.

    Returns:
        The size of the copy, in bytes.

    Raises:
        StoreRefusedError: `target` exists, or `source` is another program's.
        StoreUnavailableError: there is no `source`, or a disk fails.
        StoreTooNewError: a newer release wrote it.
        CorruptError: `source` is damaged; the copy is not kept.
    """
    refuse_own(source, target)
    if target.exists() and not replace:
        raise StoreRefusedError(
            f"{target} exists and is not overwritten; give another name, or replace it"
            " with --force"
        )
    with made_whole(source, target) as unfinished:
        unfinished.replace(target)
    return target.stat().st_size


def refuse_own(source: Path, target: Path) -> None:
    """Refuse a target that is the source itself, or no file.

    Raises:
        StoreRefusedError: it is.
    """
    own = source.resolve()
    if target.resolve() in {
        own.with_name(f"{own.name}{end}") for end in ("", "-shm", ".lock", *LOGS)
    }:
        raise StoreRefusedError(
            f"{target} belongs to the database itself; give another name"
        )
    if target.exists() and not target.is_file():
        raise StoreRefusedError(f"{target} is no file; give another name")


def restore(copy: Path, path: Path) -> Path | None:
    """Put a copy in the place of a database that nobody uses.

    Cut short at any moment it leaves the old database or the copy, each whole.

    Args:
        copy: a database of this or an earlier release; it is not changed.

    Returns:
        Where the database that was there is now; None if there was none.

    Raises:
        StoreUnavailableError: a process uses `path`, there is no `copy`, or a disk
            fails.
        StoreRefusedError: one of the two is another program's, or `path` is a folder.
        StoreTooNewError: a newer release wrote one of the two.
        CorruptError: `copy` is damaged.
    """
    path = path.resolve()  # a link stays one
    refuse_replacing(path, copy)
    lock = SqliteFile(path).lock()
    try:
        with made_whole(copy, path) as unfinished, held(path) as is_settled:
            kept = keep(path, is_settled=is_settled)
            clear(path)
            unfinished.replace(path)
    finally:
        lock.release()
    return kept


def refuse_replacing(path: Path, copy: Path) -> None:
    """Refuse to replace another program's database, or a newer release's, or by itself.

    Ours, of this or an earlier release, may be replaced; so may what is empty, or so
    damaged that nobody can tell what it was.

    Raises:
        StoreRefusedError: another program's, or `copy` is the same file.
        StoreTooNewError: a newer release wrote it.
    """
    if copy.resolve() == path.resolve():
        raise StoreRefusedError(f"{copy} is the database itself; give a copy of it")
    if not path.is_file() or path.stat().st_size == 0:
        return
    try:
        SqliteFile(path).open_existing(oldest=0).close()
    except StoreTooNewError as error:
        raise StoreTooNewError(
            f"{error}. It is not replaced: what is in it would be lost to that release."
            f" To go back all the same, move it away first, with all files whose names"
            f" begin with {path.name}"
        ) from error
    except (CorruptError, StoreUnavailableError):
        return


@contextlib.contextmanager
def made_whole(source: Path, target: Path) -> Generator[Path]:
    """Make a checked copy beside `target`; the caller renames it."""
    with SqliteFile(target).told():
        target.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        with unfinished_beside(target) as unfinished:
            try:
                copy_moment(source, unfinished)
            except DAMAGED as error:
                raise translate(error, source) from error
            yield unfinished


def copy_moment(source: Path, target: Path) -> None:
    """Copy a database, as it is at one moment, into an empty file.

    Raises:
        StoreError: see `runtime.sqlite.file.SqliteFile.open_existing`.
    """
    db = SqliteFile(source).open_existing(oldest=1)
    try:
        # Why: SQLite begins a copy afresh when somebody writes in between; on a busy
        # server it would never end. One reading transaction is one view.
        db.execute("BEGIN")
        greet(db)
        copy_whole(db, source, target)
    finally:
        db.close()


def keep(path: Path, *, is_settled: bool) -> Path | None:
    """Keep a database under a second name; None: there is no database.

    A log whose database is gone is kept, too: that may come back.

    Args:
        is_settled: whether all its commits are in the one file; if not, what lies
            beside it is kept too.
    """
    kept = free_name(path)
    if not is_settled:
        for suffix in LOGS:
            log = Path(f"{path}{suffix}")
            if log.exists():
                name_twice(log, Path(f"{kept}{suffix}"))
    if not path.exists():
        return None
    name_twice(path, kept)
    return kept


@contextlib.contextmanager
def held(path: Path) -> Generator[bool]:
    """Hold a database alone, with all its commits in its one file.

    Our own lock keeps out only Callboard, and whoever else has it open would go on
    writing into a log that is removed.

    Returns:
        False when there is none, or none that can be read.

    Raises:
        apsw.Error: somebody holds it, or there is no room; nothing is lost.
    """
    # Why the empty one: SQLite would throw its log away.
    if not size_of(path):
        yield False
        return
    with contextlib.ExitStack() as stack:
        try:
            db = apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READWRITE)
            stack.callback(db.close)
            settle(db)
        except UNREADABLE:
            yield False
        else:
            yield True


def settle(db: apsw.Connection) -> None:
    """Bring all commits of a database into its one file, and keep all others out."""
    db.set_busy_timeout(int(SqliteOptions().busy_timeout * 1000))
    # What cannot be read is not changed either, by closing it.
    db.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1)
    db.pragma("locking_mode", "exclusive")
    greet(db)  # undoes what a killed process left half done
    db.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_TRUNCATE)


def free_name(path: Path) -> Path:
    """Choose a name to keep a database under."""
    kept = path.with_name(f"{path.name}{KEPT}")
    for number in itertools.count(2):
        # A log that is there belongs to what somebody kept before. The same file: a
        # restore was cut short after it had been named.
        has_log = any(Path(f"{kept}{suffix}").exists() for suffix in LOGS)
        is_same = path.exists() and kept.exists() and kept.samefile(path)
        if not has_log and (is_same or not kept.exists()):
            break
        kept = path.with_name(f"{path.name}{KEPT}-{number}")
    return kept


def name_twice(path: Path, second: Path, link: Link = os.link) -> None:
    """Give a file a second name; where the disk knows no such thing, copy it.

    Args:
        second: the name; whatever has it is replaced.
        link: what makes a second name, or raises OSError.
    """
    with unfinished_beside(second) as unfinished:
        unfinished.unlink()
        try:
            link(path, unfinished)
        except OSError:  # the copy fails too, if there is another reason
            shutil.copy2(path, unfinished)
            flush_file(unfinished)
        # Between two names of one file this does nothing, and need not.
        unfinished.replace(second)


def clear(path: Path) -> None:
    """Remove what lies beside a database, before another gets its name.

    Why before: SQLite would write it into the new one.
    """
    for suffix in (*LOGS, "-shm"):
        Path(f"{path}{suffix}").unlink(missing_ok=True)
    flush_folder(path.parent)


# Chosen: longer than any group commit takes, also on a slow disk.
PATIENCE = SqliteOptions(busy_timeout=10.0)


class SqliteDatabase(SqlRepair):
    """One database file from outside; see the port."""

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
        return backup(self.path, target, replace=replace)

    def refuse_replacing(self, copy: Path) -> None:
        """Check that `restore` may put a copy in its place; see the port."""
        refuse_replacing(self.path, copy)

    def restore(self, copy: Path) -> Path | None:
        """Put a copy in its place; see the port."""
        return restore(copy, self.path)

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
