"""Every store, opened and opened again, for suites that all of them must pass."""

from __future__ import annotations

import threading
from pathlib import Path

import apsw
import trio

from runtime.postgresql.store import PostgresqlStore
from runtime.sqlite.file import SqliteFile
from runtime.sqlite.store import SqliteStore
from runtime.store.port import Store
from tests.fakes.store.in_memory import MemoryStore
from tests.support.store.postgresql import emptied

NAMES = ("memory", "sqlite", "postgresql")


class MemoryEngine:
    """Opens and reopens stores in memory."""

    async def open(self) -> Store:
        return MemoryStore(epoch=3)

    async def reopen(self, store: Store) -> Store:
        assert isinstance(store, MemoryStore)
        return store.reopened()


class SqliteEngine:
    """Opens and reopens stores on one file."""

    def __init__(self, folder: Path) -> None:
        self._file = SqliteFile(folder / "callboard.db")

    async def open(self) -> Store:
        return await SqliteStore.open(self._file, epoch=3)

    async def reopen(self, store: Store) -> Store:
        await store.aclose()
        return await self.open()


class PostgresqlEngine:
    """Opens and reopens stores in the database of this process's tests."""

    def __init__(self) -> None:
        self.server = emptied()

    async def open(self) -> Store:
        return await PostgresqlStore.open(self.server, epoch=3)

    async def reopen(self, store: Store) -> Store:
        await store.aclose()
        return await self.open()


Engine = MemoryEngine | SqliteEngine | PostgresqlEngine


def make_engine(name: str, folder: Path) -> Engine:
    """Make the engine of that name, its file (if it has one) in `folder`."""
    if name == "postgresql":
        return PostgresqlEngine()
    return MemoryEngine() if name == "memory" else SqliteEngine(folder)


async def names_unsettled(store: Store) -> list[str]:
    """Give the ids of the messages not yet settled."""
    return [row.id for row in await store.unsettled()]


async def names_undelivered(store: Store) -> list[str]:
    """Give the ids of the deliveries still pending."""
    return [row.id for row in await store.undelivered()]


class Gate:
    """Holds a store's thread at one job until it is opened."""

    def __init__(self) -> None:
        self._token = trio.lowlevel.current_trio_token()
        self._reached = trio.Event()
        self._open = threading.Event()

    def hold(self, _: apsw.Connection) -> None:
        self._token.run_sync_soon(self._reached.set)
        assert self._open.wait(60)

    async def wait_reached(self) -> None:
        await self._reached.wait()

    def open(self) -> None:
        self._open.set()
