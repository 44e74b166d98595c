"""Proves that one file is opened by one name only."""

from __future__ import annotations

from pathlib import Path

import pytest

from runtime.errors import StoreRefusedError
from runtime.sqlite.file import SqliteFile
from runtime.sqlite.store import SqliteStore
from tests.support.store.engines import names_unsettled
from tests.support.store.rows import accepting


@pytest.fixture
async def path(tmp_path: Path) -> Path:
    path = tmp_path / "callboard.db"
    store = await SqliteStore.open(SqliteFile(path))
    await store.commit(accepting("m1"))
    await store.aclose()
    return path


def link(path: Path, second: str) -> Path:
    other = path.with_name(second)
    other.hardlink_to(path)
    return other


async def test_a_file_with_a_second_name_is_opened_by_neither(path: Path) -> None:
    other = link(path, "other.db")
    for name in (path, other):
        with pytest.raises(StoreRefusedError, match=r"second name.*hard link.*find"):
            await SqliteStore.open(SqliteFile(name))
    with pytest.raises(StoreRefusedError, match="second name"):  # the lock is free
        await SqliteStore.open(SqliteFile(path))
    other.unlink()
    store = await SqliteStore.open(SqliteFile(path))
    assert await names_unsettled(store) == ["m1"]
    await store.aclose()


async def test_a_restore_that_was_cut_short_keeps_nobody_from_starting(
    path: Path,
) -> None:
    kept = link(path, "callboard.db.before-restore")
    link(path, "callboard.db.before-restore-2.unfinished")
    with pytest.raises(StoreRefusedError, match="second name"):
        await SqliteStore.open(SqliteFile(kept))
    store = await SqliteStore.open(SqliteFile(path))
    assert await names_unsettled(store) == ["m1"]
    await store.aclose()


async def test_a_link_to_a_file_is_no_second_name(path: Path) -> None:
    link = path.with_name("link.db")
    link.symlink_to(path)
    store = await SqliteStore.open(SqliteFile(link))
    assert await names_unsettled(store) == ["m1"]
    await store.aclose()
