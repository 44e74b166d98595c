"""Proves that a store whose file is damaged under it stops acknowledging."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from runtime.errors import StoreError
from runtime.sqlite.file import SqliteFile, SqliteOptions
from runtime.sqlite.store import SqliteStore
from runtime.store.rows import Commit
from tests.support.store.rows import NOW, accepting, events

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable
    from pathlib import Path

PAGE = 4096
FRAME = PAGE + 24
WAL_HEADER = 32


@pytest.fixture
async def path(tmp_path: Path) -> Path:
    return tmp_path / "callboard.db"


@pytest.fixture
async def store(path: Path) -> AsyncGenerator[SqliteStore]:
    """Open a store with forty pages in its database and forty in its WAL."""
    options = SqliteOptions(idle_after=3600.0)
    before = await SqliteStore.open(SqliteFile(path, options))
    await fill(before, "old")
    await before.aclose()
    store = await SqliteStore.open(SqliteFile(path, options))
    await fill(store, "new")
    yield store
    await store.aclose()


async def fill(store: SqliteStore, stream: str) -> None:
    """Write forty events of about a page."""
    for number in range(40):
        append = events(stream, number, body=bytes(range(256)) * 16)
        await store.commit(Commit(at=NOW, appends=(append,)))


def spoil_pages(path: Path) -> None:
    """Write nonsense over each page of the database."""
    with path.open("r+b") as file:
        for number in range(path.stat().st_size // PAGE):
            file.seek(number * PAGE)
            file.write(b"\xff" * 100)


def spoil_wal(path: Path) -> None:
    """Write nonsense over each page in the WAL."""
    wal = path.with_name(f"{path.name}-wal")
    with wal.open("r+b") as file:
        for number in range(wal.stat().st_size // FRAME):
            file.seek(WAL_HEADER + number * FRAME + 24)
            file.write(b"\xff" * 100)


def cut_wal(path: Path) -> None:
    """Take most of the WAL away."""
    os.truncate(path.with_name(f"{path.name}-wal"), WAL_HEADER + 3 * FRAME)


def cut_database(path: Path) -> None:
    """Take most of the database away."""
    os.truncate(path, 2 * PAGE)


damages = [spoil_pages, spoil_wal, cut_wal, cut_database]


@pytest.mark.parametrize("damage", damages)
async def test_a_reader_that_finds_damage_says_so_and_the_store_is_not_healthy(
    store: SqliteStore, path: Path, damage: Callable[[Path], None]
) -> None:
    damage(path)
    with pytest.raises(StoreError):
        await store.read("old")
    assert not store.healthy


@pytest.mark.parametrize("damage", damages)
async def test_nothing_is_acknowledged_once_a_reader_has_found_damage(
    store: SqliteStore, path: Path, damage: Callable[[Path], None]
) -> None:
    damage(path)
    with pytest.raises(StoreError):
        await store.read("old")
    with pytest.raises(StoreError):
        await store.commit(accepting("m1"))
    assert not store.healthy
