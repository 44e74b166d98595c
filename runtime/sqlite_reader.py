"""The reading half of a store, on a database that another process may be using.

For command-line tools that look with the eyes of the program itself: the same calls as
`runtime.store.Store` and `runtime.facts.Facts` have, on a connection that can write
nothing. Each call is done at once, in the thread that makes it; it holds no lock that a
writer waits for, and nothing of the database is kept between two calls.
"""

# apsw's stubs name `collections.abc.Buffer`, which Python 3.11 has not got yet:
# pyright: reportUnknownMemberType=false

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, TypeVar

import trio

from runtime import sqlite_entries
from runtime.sqlite_fact_store import SqliteFacts
from runtime.sqlite_file import SqliteFile
from runtime.sqlite_vectors import extension, teach
from runtime.store import refuse_limit
from runtime.texts import refuse_half_character

if TYPE_CHECKING:
    from collections.abc import Callable, Generator
    from pathlib import Path

    import apsw

    from runtime.entries import StoredEntry

T = TypeVar("T")


@contextlib.contextmanager
def reader(path: Path) -> Generator[SqliteReader]:
    """Open a database for reading as the program itself does.

    Raises:
        StoreUnavailableError: there is none, or the disk fails.
        StoreRefusedError: another program's, or an older release's.
        StoreTooNewError: a newer release wrote it.
        CorruptError: it is damaged.
    """
    file = SqliteFile(path)
    db = file.open_existing()
    try:
        teach(db, extension())
        yield SqliteReader(file, db)
    finally:
        db.close()


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
    """Entries and facts of a database; made by `reader`.

    Its calls raise what those of `runtime.store.Entries` and `runtime.facts.Facts` do;
    `facts.prune`, the one that writes, always raises `StoreUnavailableError`.

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
        return await self._jobs.call(lambda db: sqlite_entries.one(db, kind, name))

    async def entries(
        self, kind: str, owner: str | None = None, after: str = "", limit: int = 1000
    ) -> tuple[StoredEntry, ...]:
        """Give entries of a kind in the order of their ids; see the port."""
        refuse_limit(limit)
        refuse_half_character(kind + (owner or "") + after)
        return await self._jobs.call(
            lambda db: sqlite_entries.listed(db, kind, owner, after, limit)
        )
