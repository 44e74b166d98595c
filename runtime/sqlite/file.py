"""Opening and locking the database file.

It knows files, locks and SQLite's settings, and nothing of rows. All of it blocks;
in a server only the threads of `store.py` call it.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
from collections.abc import Generator, Sequence
from pathlib import Path

import apsw
import msgspec

from runtime.disk import flush_folder
from runtime.errors import StoreRefusedError, StoreTooNewError, StoreUnavailableError
from runtime.sql.vectors import extension, teach
from runtime.sqlite.errors import DAMAGED, DISK, refused_by_system, translate
from runtime.sqlite.migrations import (
    MIGRATIONS,
    Migration,
    migrate,
    refuse_foreign,
    refuse_incomplete,
)
from runtime.store.jobs import ThreadOptions

KEPT = ".before-restore"
"""Stands behind a database's name where `restore` keeps it."""

LONGEST_MARK = 80
"""Bytes of the lock file: two numbers."""

OLDEST_ENGINE = (3, 51, 3)
"""Releases before this one can damage a database when the WAL is reset."""

READER_CACHE = 8_000
"""KiB of the database that the reader may keep. Chosen: with SQLite's own 2,000 a
search among a million facts takes twice as long at worst."""


def greet(db: apsw.Connection) -> int:
    """Read the schema, so that a damaged file is found at once."""
    tables: int = db.execute("SELECT count(*) FROM sqlite_schema").get
    return tables


def refuse_damaged(db: apsw.Connection, path: Path) -> None:
    """Read a whole database, but no index against its table.

    Raises:
        CorruptError: it is damaged.
        apsw.Error: it cannot be read.
    """
    found = str(db.execute("PRAGMA quick_check(1)").get)
    if found != "ok":
        raise translate(apsw.CorruptError(found.splitlines()[-1]), path)


class SqliteOptions(ThreadOptions, frozen=True, forbid_unknown_fields=True):
    """How the database file is used."""

    idle_pages: int = 1000
    """Pages of 4,096 bytes that the WAL must have to be copied into the database when
    the thread rests. Chosen: after a copy it begins anew, which costs the next commit a
    second flush, and the copy itself costs two. So it is done for many messages at once
    and not after each. What is in the WAL is as safe as in the database; to read it
    after a kill takes milliseconds."""

    wal_kept: int = 67_108_864
    """Bytes of the WAL that stay when it begins anew; -1: all. It grows beyond what
    is usual while somebody reads for long, or by one large commit."""

    busy_timeout: float = 1.0
    """Seconds to wait for another program that holds the database."""

    check_below: int = 67_108_864
    """Bytes of a database that is checked for damage whenever it is opened; a larger
    one only after an end that was not clean."""


def engine_version(text: str) -> tuple[int, ...]:
    """Read a version such as `3.51.3`."""
    return tuple(int(number) for number in text.split("."))


def refuse_old_engine(version: str) -> None:
    """Check that SQLite itself is safe to use.

    Raises:
        StoreRefusedError: it is older than `OLDEST_ENGINE`.
    """
    if engine_version(version) < OLDEST_ENGINE:
        oldest = ".".join(str(number) for number in OLDEST_ENGINE)
        raise StoreRefusedError(
            f"SQLite {version} can damage a database in WAL mode; Callboard needs"
            f" {oldest} or newer: install a newer `apsw`, which brings its own"
        )


def size_of(path: Path) -> int:
    """Count the bytes of a file; one that is not there has none."""
    try:
        return path.stat().st_size
    except FileNotFoundError:
        return 0


def refuse_second_names(path: Path) -> None:
    """Refuse a file that has further names (hard links).

    Why: lock and WAL lie beside one name. Who opens it by another sees neither, and
    each would write over what the other had acknowledged. The name that a `restore`
    gave it and that was cut short is no harm: nobody opens it by that.

    Raises:
        StoreRefusedError: it has.
    """
    if not path.is_file() or path.stat().st_nlink == 1:
        return
    ours = [
        each
        for each in path.parent.iterdir()
        if each.name.startswith(f"{path.name}{KEPT}") and each.samefile(path)
    ]
    if path.stat().st_nlink - len(ours) > 1:
        raise StoreRefusedError(
            f"{path} has a second name (a hard link): whoever opens it by that would"
            " not see that it is in use, and messages would be lost. Find it with"
            f" `find / -xdev -samefile {path}`, and remove it; or link with `ln -s`"
        )


def lock_path(path: Path) -> Path:
    """Return the lock file of a database: next to it, and not next to a link to it."""
    file = path.resolve()
    return file.with_name(f"{file.name}.lock")


def read_lock(file: int) -> tuple[str, str]:
    """Return the process that holds, or held, an open lock file, and its mark."""
    text = os.pread(file, LONGEST_MARK, 0).decode("ascii", "replace")
    holder, _, rest = text.partition("\n")
    return holder.strip(), rest.strip()


class FileLock:
    """One process's claim on a database, given up by `release` or by its end.

    Why a file of its own: SQLite's own exclusive mode would keep our reading
    connection out too, and opening the database file a second time would drop
    SQLite's locks when closed. It stays behind: removing it would race.

    Args:
        path: the database; the lock lies next to it, and not next to a link to it,
            so that there is one lock however the database is reached.

    Raises:
        StoreRefusedError: the path is a folder, or the file has other names.
        StoreUnavailableError: another process, or another store here, has it.
    """

    def __init__(self, path: Path) -> None:
        if path.is_dir():
            raise StoreRefusedError(f"{path} is a folder; give a file in it a name")
        file = path.resolve()
        name = lock_path(path)
        self._file = os.open(name, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            holder = self._read()[0]
            self.release()
            raise StoreUnavailableError(
                f"{path} is in use by another callboard (process {holder}); stop it,"
                " or give this one a database of its own"
            ) from error
        except OSError:  # a file system without locks
            self.release()
            raise
        try:
            refuse_second_names(file)
        except (StoreRefusedError, OSError):
            self.release()
            raise
        self.behind = self._read()[1]
        """The mark that the last holder left; empty: none, all was in the database."""

        self.mark("")
        self.path = name
        found = os.fstat(self._file)
        self.identity = found.st_dev, found.st_ino
        """Of the lock file: who has the name of another keeps nobody out."""

    def mark(self, behind: str) -> None:
        """Note the age of a database while commits stand in its WAL alone.

        Not flushed: that is for whoever comes after a kill, not after a power cut. Nor
        is it worth an error: without it a loss is not noticed, and nothing else.

        Args:
            behind: see `SqliteFile.age`; empty: it has all of them.
        """
        text = f"{os.getpid()}\n{behind}\n".encode()
        with contextlib.suppress(OSError):
            os.pwrite(self._file, text, 0)
            os.ftruncate(self._file, len(text))

    def _read(self) -> tuple[str, str]:
        return read_lock(self._file)

    def release(self) -> None:
        """Let the next process in."""
        os.close(self._file)


def is_claimed(path: Path) -> bool:
    """Whether a process works with a database; for an instant no other can claim it."""
    file = path.resolve()
    try:
        handle = os.open(file.with_name(f"{file.name}.lock"), os.O_RDONLY)
    except FileNotFoundError:
        return False
    try:
        fcntl.flock(handle, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except OSError:  # held, or a file system without locks: nobody can tell
        return True
    finally:
        os.close(handle)
    return False


class SqliteFile(msgspec.Struct, frozen=True):
    """A database file, and how it is used."""

    path: Path
    options: SqliteOptions = SqliteOptions()
    vfs: str | None = None
    """Name of a registered apsw VFS; None for the system's own."""

    migrations: Sequence[Migration] = MIGRATIONS

    def lock(self) -> FileLock:
        """Make the folder if need be, and claim the file."""
        with self.told():
            self.path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            return FileLock(self.path)

    def mark_left(self) -> str:
        """Return the mark in the lock file, without claiming it; empty without one."""
        try:
            file = os.open(lock_path(self.path), os.O_RDONLY | os.O_CLOEXEC)
        except FileNotFoundError:
            return ""
        try:
            return read_lock(file)[1]
        finally:
            os.close(file)

    @property
    def wal_path(self) -> Path:
        """Where the newest commits are: beside the file itself, not beside a link."""
        path = self.path.resolve()
        return path.with_name(f"{path.name}-wal")

    def age(self) -> str:
        """Give the time of the last write to the database itself; empty: no file."""
        try:
            return str(self.path.stat().st_mtime_ns)
        except OSError:
            return ""

    def has_lost_wal(self, behind: str) -> bool:
        """Whether commits were lost with the WAL that they stood in.

        Args:
            behind: the mark that the last holder left. A database that was written to
                since then may have got them from its WAL: another program does that,
                and removes it.
        """
        return bool(behind) and behind == self.age() and not self.wal_path.exists()

    @property
    def name(self) -> str:
        """How texts for people name it: its path."""
        return str(self.path)

    def identity(self) -> tuple[int, int] | None:
        """Give the identity of the file that has the name now; None: no file."""
        try:
            file = self.path.stat()
        except OSError:
            return None
        return file.st_dev, file.st_ino

    def open_writer(self) -> apsw.Connection:
        """Open, or make, the database and bring it up to date.

        Raises:
            StoreRefusedError: there is only its WAL left, and that not empty.
            StoreError: see `runtime.sqlite.migrations.migrate` and `told`.
        """
        refuse_old_engine(apsw.sqlite_lib_version())
        with self.told(), contextlib.ExitStack() as stack:
            self._refuse_lost()
            # Before SQLite does: its -wal and -shm files take over the mode.
            os.close(os.open(self.path, os.O_RDWR | os.O_CREAT, 0o600))
            flush_folder(self.path.parent)
            db = self._connect()
            stack.callback(db.close)
            migrate(db, self.path, self.migrations)
            if db.pragma("journal_mode", "wal") != "wal":
                raise StoreUnavailableError(
                    f"{self.path} cannot be put into WAL mode; put it on a local disk"
                )
            db.pragma("synchronous", self.options.synchronous)
            # Source: sqlite.org/pragma.html: else it stays as large as it ever was.
            db.pragma("journal_size_limit", self.options.wal_kept)
            # What is forgotten is overwritten, and so is what SQLite moves about.
            db.pragma("secure_delete", "on")
            for suffix in ("", "-wal", "-shm"):
                file = self.path.with_name(f"{self.path.name}{suffix}")
                if file.exists():
                    file.chmod(0o600)
            stack.pop_all()
            return db

    def refuse_damage(self, db: apsw.Connection, *, is_unclean: bool) -> None:
        """Look for damage, unless the file is large and its last user ended cleanly.

        Raises:
            StoreError: see `told`; `CorruptError` if there is damage.
        """
        with self.told():
            if is_unclean or size_of(self.path) < self.options.check_below:
                refuse_damaged(db, self.path)

    def _refuse_lost(self) -> None:
        """Refuse to make a database beside the WAL of one that is gone.

        Why: SQLite would throw it away, with all that is in it alone.

        Raises:
            StoreRefusedError: there is one.
        """
        wal = self.wal_path
        if not size_of(wal) or size_of(self.path):
            return
        what = "is empty" if self.path.exists() else "is not there"
        raise StoreRefusedError(
            f"{self.path.absolute()} {what}, but {wal} holds {size_of(wal):,} bytes"
            " of what was stored last; a new database would throw that away. Put the"
            " database back beside it, or a copy in its place (callboard restore), or"
            " move that file away"
        )

    def open_reader(self) -> apsw.Connection:
        """Open it once more, for reading only."""
        with self.told():
            db = self._connect()
            db.pragma("query_only", value=True)
            db.pragma("cache_size", -READER_CACHE)
            teach(db, extension())
            return db

    def open_existing(
        self, flags: int = apsw.SQLITE_OPEN_READONLY, *, oldest: int | None = None
    ) -> apsw.Connection:
        """Open a database as it is, which another process may hold.

        Args:
            oldest: the lowest version that will do; None: only the present one.

        Raises:
            StoreUnavailableError: there is none, or the disk fails.
            StoreRefusedError: another program's, or an older release's.
            StoreTooNewError: a newer release wrote it.
            CorruptError: it is damaged.
        """
        newest = len(self.migrations)
        with self.told(), contextlib.ExitStack() as stack:
            if self.path.is_dir():
                text = f"{self.path} is a folder; give a file in it a name"
                raise StoreRefusedError(text)
            if not self.path.is_file():
                what = "is no file" if self.path.exists() else "does not exist"
                raise StoreUnavailableError(
                    f"there is no database {self.path}: it {what}; give the path of one"
                )
            if self.path.stat().st_size == 0:
                raise StoreRefusedError(
                    f"{self.path} is empty: no database, and no copy of one; give the"
                    " path of another"
                )
            db = self._connect(flags)
            stack.callback(db.close)
            refuse_foreign(db, self.path)
            version = int(db.pragma("user_version"))
            if version > newest:
                raise StoreTooNewError(
                    f"{self.path} was written by a newer release of Callboard (its"
                    f" version is {version}, this release knows {newest}); use that"
                    " release"
                )
            if version < (newest if oldest is None else oldest):
                raise StoreRefusedError(
                    f"{self.path} was written by an older release of Callboard (its"
                    f" version is {version}, this release needs {newest}); start this"
                    " release on it once, which brings it up to date"
                )
            if version == newest:
                refuse_incomplete(db, self.path)
            stack.pop_all()
            return db

    @contextlib.contextmanager
    def told(self) -> Generator[None]:
        """Translate errors of the disk while the block runs."""
        try:
            yield
        except (*DAMAGED, *DISK) as error:
            raise translate(error, self.path) from error
        except OSError as error:
            raise refused_by_system(error, self.path) from error

    def _connect(self, flags: int = apsw.SQLITE_OPEN_READWRITE) -> apsw.Connection:
        db = apsw.Connection(str(self.path), flags=flags, vfs=self.vfs)
        db.set_busy_timeout(int(self.options.busy_timeout * 1000))
        return db
