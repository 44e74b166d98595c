"""One whole copy of an open database, on the disk before it has its name.

Below the migrations, which copy an older database before they change it, and below
the copies that people make (`database.py`). It blocks. And all its rows, for
`runtime.store.copying`.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Generator, Iterable, Iterator
from pathlib import Path

import apsw

from runtime.disk import flush_file, flush_folder
from runtime.errors import CorruptError
from runtime.store.copying import Row, Table, pages

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


class SqliteRows:
    """All rows of a file, for `runtime.store.copying`."""

    def __init__(self, db: apsw.Connection) -> None:
        self._db = db

    def rows(self, table: Table) -> Iterator[Row]:
        """Give the rows of a table, in its order."""
        columns, order = ", ".join(table.columns), ", ".join(table.order)
        sql = f"SELECT {columns} FROM {table.name} ORDER BY {order}"
        return iter(self._db.execute(sql))

    def last_number(self, table: Table) -> int:
        """Give the last number that a row of it was ever given; 0: none."""
        if table.name == "journal":  # the one that does not remember it
            return int(self._db.execute("SELECT max(number) FROM journal").get or 0)
        sql = "SELECT seq FROM sqlite_sequence WHERE name = ?"
        return int(self._db.execute(sql, (table.name,)).get or 0)

    def fill(self, table: Table, rows: Iterable[Row]) -> None:
        """Add rows as they are."""
        marks = ", ".join("?" * len(table.columns))
        sql = f"INSERT INTO {table.name}({', '.join(table.columns)}) VALUES ({marks})"
        for page in pages(rows):
            self._db.executemany(sql, page)

    def number_on(self, table: Table, last: int) -> None:
        """Have the next row numbered behind `last`."""
        if table.name == "journal":
            return
        given = (table.name,)
        self._db.execute("DELETE FROM sqlite_sequence WHERE name = ?", given)
        sql = "INSERT INTO sqlite_sequence(name, seq) VALUES (?, ?)"
        self._db.execute(sql, (table.name, last))
