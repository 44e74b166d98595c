"""One whole copy of an open database, on the disk before it has its name.

Below the migrations, which copy an older database before they change it, and below
the copies that people make (`backup.py`). It blocks.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Generator
from pathlib import Path

import apsw

from runtime.disk import flush_file, flush_folder
from runtime.errors import CorruptError

STEP = 1000
"""Pages (of 4 KiB) copied between two moments at which Ctrl-C is noticed."""


@contextlib.contextmanager
def unfinished_beside(target: Path) -> Generator[Path]:
    """Make an empty private file, to be filled and then renamed to `target`.

    If it has not been renamed at the end it is removed; if it has, the new name is
    on the disk.
    """
    unfinished = target.with_name(f"{target.name}.unfinished")
    unfinished.unlink(missing_ok=True)
    os.close(os.open(unfinished, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600))
    try:
        yield unfinished
    finally:
        unfinished.unlink(missing_ok=True)
    flush_folder(target.parent)


def copy_whole(db: apsw.Connection, source: Path, target: Path) -> None:
    """Copy a database into an empty file, check the copy and flush it.

    Args:
        db: the database, open; nobody may keep writing to it, or there must be a
            transaction under way: SQLite begins afresh after each foreign write.
        source: its path, for the error.
        target: the empty file.

    Raises:
        CorruptError: the copy is damaged, and so is what it was taken from.
        apsw.Error: a disk fails.
    """
    new = apsw.Connection(str(target))
    try:
        with new.backup("main", db, "main") as pages:
            while not pages.done:
                pages.step(STEP)
        # The copied header says WAL; as one plain file it can be moved about.
        new.pragma("journal_mode", "delete")
    finally:
        new.close()
    check(target, source)
    flush_file(target)


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
