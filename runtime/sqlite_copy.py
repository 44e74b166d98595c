"""Whole copies of a database: taken while a server may be busy, and put back.

A copy is one plain file, complete and checked when it has its name. It blocks: for
command-line tools.
"""

# apsw's stubs name `collections.abc.Buffer`, which Python 3.11 has not got yet:
# pyright: reportUnknownMemberType=false

from __future__ import annotations

import contextlib
import itertools
import os
from typing import TYPE_CHECKING

import apsw

from runtime.errors import CorruptError, StoreRefusedError
from runtime.sqlite_file import DAMAGED, SqliteFile, translate
from runtime.sqlite_reads import greet

if TYPE_CHECKING:
    from collections.abc import Generator
    from pathlib import Path

STEP = 1000
"""Pages (of 4 KiB) copied between two moments at which Ctrl-C is noticed."""


def backup(source: Path, target: Path, *, replace: bool = False) -> int:
    """Copy a database as it stands at this moment.

    A busy server is not held up: the copy reads from the one moment at which it
    began, whatever is written meanwhile.

    Args:
        source: the database.
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
    if source.resolve() == target.resolve():
        raise StoreRefusedError(f"{target} is the database itself; give another name")
    if target.exists() and not replace:
        raise StoreRefusedError(
            f"{target} exists and is not overwritten; give another name, or say so"
        )
    with made_whole(source, target) as unfinished:
        unfinished.replace(target)
    return target.stat().st_size


def restore(copy: Path, path: Path) -> Path | None:
    """Put a copy in the place of a database that nobody uses.

    Args:
        copy: a database of this or an earlier release; it is not changed.
        path: where it is to be.

    Returns:
        Where the database that was there is now; None if there was none.

    Raises:
        StoreUnavailableError: a process uses `path`, there is no `copy`, or a disk
            fails.
        StoreRefusedError: `copy` is another program's.
        StoreTooNewError: a newer release wrote it.
        CorruptError: `copy` is damaged.
    """
    if copy.resolve() == path.resolve():
        raise StoreRefusedError(f"{copy} is the database itself; give a copy of it")
    file = SqliteFile(path)
    lock = file.lock()
    try:
        with made_whole(copy, path) as unfinished:
            kept = set_aside(path)
            unfinished.replace(path)
    finally:
        lock.release()
    return kept


@contextlib.contextmanager
def made_whole(source: Path, target: Path) -> Generator[Path]:
    """Make a checked copy beside `target`, to be given that name; or none."""
    unfinished = target.with_name(f"{target.name}.unfinished")
    with SqliteFile(target).told():
        target.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        unfinished.unlink(missing_ok=True)
        os.close(os.open(unfinished, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600))
        try:
            try:
                copy_pages(source, unfinished)
                check(unfinished, source)
            except DAMAGED as error:
                raise translate(error, source) from error
            yield unfinished
        finally:
            unfinished.unlink(missing_ok=True)
        flush_folder(target.parent)


def copy_pages(source: Path, target: Path) -> None:
    """Copy a database into an empty file.

    Raises:
        StoreError: see `runtime.sqlite_file.SqliteFile.open_existing`.
    """
    with contextlib.ExitStack() as stack:
        old = SqliteFile(source).open_existing(oldest=1)
        stack.callback(old.close)
        new = apsw.Connection(str(target))
        stack.callback(new.close)
        # Why: SQLite begins a copy afresh when somebody writes in between; on a busy
        # server it would never end. One reading transaction is one view.
        old.execute("BEGIN")
        greet(old)
        with new.backup("main", old, "main") as pages:
            while not pages.done:
                pages.step(STEP)
        # The copied header says WAL; as one plain file it can be moved about.
        new.pragma("journal_mode", "delete")


def check(copy: Path, source: Path) -> None:
    """Read a whole copy.

    Raises:
        CorruptError: it is damaged, and so is what it was taken from.
    """
    # Why: on a connection that only reads, SQLite leaves out the CHECKs.
    db = apsw.Connection(str(copy), flags=apsw.SQLITE_OPEN_READWRITE)
    try:
        found = str(db.pragma("integrity_check"))
    finally:
        db.close()
    if found != "ok":
        first = found.splitlines()[0]
        raise CorruptError(f"{source} is damaged ({first}); it was not copied")


def set_aside(path: Path) -> Path | None:
    """Take a database and its WAL out of the way; gives its new name."""
    wal, shm = (path.with_name(f"{path.name}{suffix}") for suffix in ("-wal", "-shm"))
    shm.unlink(missing_ok=True)
    if not path.exists():
        wal.unlink(missing_ok=True)
        return None
    kept = path.with_name(f"{path.name}.before-restore")
    for number in itertools.count(2):
        if not kept.exists():
            break
        kept = path.with_name(f"{path.name}.before-restore-{number}")
    # The WAL first, for it may hold what the database does not have yet: cut short
    # here and run again, the two still find each other.
    if wal.exists():
        wal.replace(kept.with_name(f"{kept.name}-wal"))
    path.replace(kept)
    return kept


def flush_folder(folder: Path) -> None:
    """Have the disk keep the new names of files."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
