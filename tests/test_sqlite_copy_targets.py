"""Proves that a copy is never put where it would do harm."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from runtime.errors import StoreRefusedError
from runtime.sqlite_copy import backup, restore
from runtime.sqlite_file import SqliteFile
from runtime.sqlite_store import SqliteStore
from tests.store_engines import names_unsettled
from tests.store_rows import accepting

if TYPE_CHECKING:
    from pathlib import Path


async def make(path: Path, name: str) -> None:
    """Make a database with one message."""
    store = await SqliteStore.open(SqliteFile(path))
    await store.commit(accepting(name))
    await store.aclose()


@pytest.mark.parametrize("end", ["", "-wal", "-shm", "-journal", ".lock"])
async def test_a_copy_never_replaces_a_file_of_its_database(
    tmp_path: Path, end: str
) -> None:
    path = tmp_path / "callboard.db"
    await make(path, "m1")
    target = tmp_path / f"callboard.db{end}"
    before = target.exists() and target.stat().st_ino
    with pytest.raises(StoreRefusedError, match="belongs to the database itself"):
        backup(path, target, replace=True)
    assert (target.exists() and target.stat().st_ino) == before


async def test_a_copy_never_replaces_what_is_no_file(tmp_path: Path) -> None:
    path, pipe = tmp_path / "callboard.db", tmp_path / "pipe"
    await make(path, "m1")
    os.mkfifo(pipe)
    with pytest.raises(StoreRefusedError, match="is no file"):
        backup(path, pipe, replace=True)
    assert pipe.is_fifo()


async def test_a_link_to_a_database_stays_a_link(tmp_path: Path) -> None:
    path, link, copy = (tmp_path / name for name in ("a.db", "link.db", "copy.db"))
    await make(path, "m1")
    await make(copy, "m2")
    link.symlink_to(path)
    kept = restore(copy, link)
    assert kept is not None
    assert link.is_symlink()
    store = await SqliteStore.open(SqliteFile(path))
    assert await names_unsettled(store) == ["m2"]
    await store.aclose()
