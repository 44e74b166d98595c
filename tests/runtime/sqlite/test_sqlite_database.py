"""Proves which files are opened from outside, and that none is made or upgraded."""

# apsw's stubs name `collections.abc.Buffer`, which Python 3.11 has not got yet:
# pyright: reportUnknownMemberType=false

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable
from contextlib import AbstractContextManager
from pathlib import Path

import apsw
import pytest

from runtime.errors import (
    CorruptError,
    StoreError,
    StoreRefusedError,
    StoreTooNewError,
    StoreUnavailableError,
)
from runtime.sql.database import SqlInspection
from runtime.sqlite.database import SqliteDatabase
from runtime.sqlite.file import SqliteFile
from runtime.sqlite.migrations import MIGRATIONS, NEEDED
from runtime.sqlite.store import SqliteStore
from tests.support.store.rows import NOW, accepting

LookInto = Callable[[Path], AbstractContextManager[SqlInspection]]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "callboard.db"


@pytest.fixture
async def store(path: Path) -> AsyncGenerator[SqliteStore]:
    store = await SqliteStore.open(SqliteFile(path))
    yield store
    await store.aclose()


@pytest.fixture(params=[False, True])
def look_into(
    request: pytest.FixtureRequest,
) -> LookInto:
    return lambda path: SqliteDatabase(path).inspect(live=request.param)


def test_a_missing_database_is_not_made(path: Path) -> None:
    database = SqliteDatabase(path)
    told = "there is no database"
    with pytest.raises(StoreUnavailableError, match=told), database.inspect():
        pass
    with pytest.raises(StoreUnavailableError, match=told), database.claim():
        pass
    with pytest.raises(StoreUnavailableError, match=told):
        database.retry_message("m1", NOW)
    assert list(path.parent.iterdir()) == []


@pytest.mark.parametrize("is_device", [False, True])
def test_what_holds_nothing_is_no_database(
    look_into: LookInto, path: Path, *, is_device: bool
) -> None:
    if is_device:
        path = type(path)("/dev/null")
    else:
        path.touch()
    text = "/dev/null: it is no file" if is_device else "is empty: no database"
    with pytest.raises(StoreError, match=text), look_into(path):
        pass


def test_an_older_database_is_not_brought_up_to_date(
    look_into: LookInto, path: Path
) -> None:
    SqliteFile(path, migrations=MIGRATIONS[:1]).open_writer().close()
    before = path.read_bytes()
    with pytest.raises(StoreRefusedError, match="older release"), look_into(path):
        pass
    assert path.read_bytes() == before


def test_a_newer_database_is_refused(look_into: LookInto, path: Path) -> None:
    SqliteFile(path).open_writer().close()
    db = apsw.Connection(str(path))
    db.pragma("user_version", len(MIGRATIONS) + 1)
    db.close()
    with pytest.raises(StoreTooNewError, match="newer release"), look_into(path):
        pass


@pytest.mark.parametrize("table", sorted(NEEDED))
def test_a_database_without_one_of_its_tables_is_refused(
    look_into: LookInto, path: Path, table: str
) -> None:
    SqliteFile(path).open_writer().close()
    db = apsw.Connection(str(path))
    db.execute(f"ALTER TABLE {table} RENAME TO elsewhere")
    db.close()
    with pytest.raises(CorruptError, match=f"no table {table}:"), look_into(path):
        pass
    with pytest.raises(CorruptError, match=f"no table {table}:"):
        SqliteFile(path).open_writer()


def test_another_programs_database_is_refused(look_into: LookInto, path: Path) -> None:
    db = apsw.Connection(str(path))
    db.execute("CREATE TABLE theirs(x)")
    db.close()
    with pytest.raises(StoreRefusedError, match="another program"), look_into(path):
        pass


def test_a_file_that_is_no_database_is_refused(look_into: LookInto, path: Path) -> None:
    path.write_bytes(b"Dear diary, " * 1000)
    with pytest.raises(CorruptError, match="no database"), look_into(path):
        pass


async def test_an_error_of_the_reader_itself_stays_as_it_is(
    look_into: LookInto, store: SqliteStore, path: Path
) -> None:
    assert store.healthy
    with pytest.raises(BrokenPipeError), look_into(path):
        raise BrokenPipeError


async def test_a_copy_that_was_put_back_is_read_and_written_at_once(
    path: Path, tmp_path: Path
) -> None:
    store = await SqliteStore.open(SqliteFile(path))
    await store.commit(accepting("m1"))
    await store.aclose()
    database, copy = SqliteDatabase(path), tmp_path / "copy.db"
    database.back_up(copy)
    database.restore(copy)
    with database.claim(), database.inspect() as rows:
        assert database.write((accepting("m2"),)) == 1
        assert [row.id for row in rows.messages()] == ["m1"]


async def test_a_server_keeps_its_database_to_itself(
    store: SqliteStore, path: Path
) -> None:
    assert store.healthy
    claim = SqliteDatabase(path).claim()
    with pytest.raises(StoreUnavailableError, match="in use by another"), claim:
        pass
