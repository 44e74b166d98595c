"""Proves that a copy is never put where it would do harm."""

# apsw's stubs name `collections.abc.Buffer`, which Python 3.11 has not got yet:
# pyright: reportUnknownMemberType=false

from __future__ import annotations

import os
from pathlib import Path

import apsw
import pytest

from runtime.errors import StoreRefusedError, StoreTooNewError, StoreUnavailableError
from runtime.sqlite.database import backup, restore
from runtime.sqlite.file import SqliteFile
from runtime.sqlite.store import SqliteStore
from tests.support.store.engines import names_unsettled
from tests.support.store.rows import accepting


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


def theirs(path: Path) -> apsw.Connection:
    """Make another program's database, still open, with its last commit in a log."""
    db = apsw.Connection(str(path))
    db.pragma("journal_mode", "wal")
    db.execute("CREATE TABLE theirs(x); INSERT INTO theirs VALUES (1)")
    return db


@pytest.mark.parametrize("is_open", [True, False])
async def test_another_programs_database_is_not_replaced(
    tmp_path: Path, *, is_open: bool
) -> None:
    path, copy = tmp_path / "theirs.db", tmp_path / "copy.db"
    await make(copy, "m1")
    db = theirs(path)
    if not is_open:
        db.close()
    before = path.stat().st_ino
    with pytest.raises(StoreRefusedError, match="another program; nothing in it"):
        restore(copy, path)
    assert path.stat().st_ino == before
    assert not (tmp_path / "theirs.db.lock").exists()
    if not is_open:
        db = apsw.Connection(str(path))
    assert db.execute("SELECT x FROM theirs").get == 1
    db.close()


async def test_a_newer_releases_database_is_not_replaced(tmp_path: Path) -> None:
    path, copy = tmp_path / "callboard.db", tmp_path / "copy.db"
    await make(path, "m1")
    await make(copy, "m2")
    db = apsw.Connection(str(path))
    db.pragma("user_version", 99)
    db.close()
    before = path.stat().st_ino
    with pytest.raises(StoreTooNewError, match=r"newer.*use that release.*move it"):
        restore(copy, path)
    assert path.stat().st_ino == before
    path.rename(tmp_path / "newer.db")
    restore(copy, path)


async def test_a_database_that_somebody_has_open_is_not_replaced(
    tmp_path: Path,
) -> None:
    path, copy = tmp_path / "callboard.db", tmp_path / "copy.db"
    await make(path, "m1")
    await make(copy, "m2")
    other = apsw.Connection(str(path))
    other.execute("UPDATE inbox SET reason = 'by hand'")
    before = path.stat().st_ino
    with pytest.raises(StoreUnavailableError, match="nothing was written"):
        restore(copy, path)
    assert path.stat().st_ino == before
    assert (tmp_path / "callboard.db-wal").exists()
    assert other.execute("SELECT reason FROM inbox").get == "by hand"
    other.close()
