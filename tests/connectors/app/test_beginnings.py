"""Proves that nobody runs a new, empty company without being told."""

from __future__ import annotations

import logging
from pathlib import Path

import msgspec
import pytest

from connectors.admin import settings as applied
from connectors.app.app import open_app
from connectors.files import receipt_key
from runtime.clock import SystemClock
from runtime.errors import StoreRefusedError
from runtime.ids import IdSource
from runtime.sqlite.database import restore
from runtime.sqlite.file import SqliteFile, SqliteOptions
from runtime.sqlite.store import SqliteStore
from runtime.telemetry.logs import FIELDS
from tests.connectors.app.test_app import load
from tests.support.store.engines import names_unsettled
from tests.support.store.rows import accepting, noting

Lines = pytest.LogCaptureFixture


class Far(SystemClock):
    """A clock that is forty days ahead."""

    def wall(self) -> float:
        return super().wall() + 40 * 86_400.0


# Files are so small here that a test may wait for them.
def left_by(path: Path) -> dict[Path, bytes]:
    return {file: file.read_bytes() for file in path.parent.glob(f"{path.name}*")}


def fill(path: Path, data: bytes) -> None:
    path.write_bytes(data)


def remove(path: Path) -> None:
    path.unlink()


def link(path: Path, target: Path) -> None:
    path.symlink_to(target)


def is_there(path: Path) -> bool:
    return path.exists()


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "callboard.db"


async def start(folder: Path, lines: Lines) -> list[logging.LogRecord]:
    """Run a company for a moment, and give what it says of a new database."""
    lines.clear()
    async with open_app(load(folder), {}):
        pass
    return [
        each for each in lines.records if "a new database was made" in each.getMessage()
    ]


async def leave_killed(path: Path) -> dict[Path, bytes]:
    """Leave a database as a killed server does: one commit only in its WAL."""
    store = await SqliteStore.open(SqliteFile(path, SqliteOptions(idle_after=3600.0)))
    await store.commit(accepting("m1"))
    left = left_by(path)
    await store.aclose()
    for file, data in left.items():
        fill(file, data)
    return left


async def test_a_new_database_is_told_with_its_whole_path(
    path: Path, caplog: Lines
) -> None:
    (told,) = await start(path.parent, caplog)
    assert told.levelno == logging.WARNING
    assert getattr(told, FIELDS) == {"path": str(path)}
    assert not await start(path.parent, caplog)


async def test_a_link_at_the_path_is_told_with_what_it_leads_to(
    path: Path, caplog: Lines
) -> None:
    target = path.with_name("elsewhere.db")
    link(path, target)
    caplog.set_level(logging.INFO)
    await start(path.parent, caplog)
    (told,) = [each for each in caplog.records if "is a link" in each.getMessage()]
    assert getattr(told, FIELDS) == {"path": str(path), "target": str(target)}
    assert is_there(target)


async def test_an_empty_file_is_told_as_a_new_database(
    path: Path, caplog: Lines
) -> None:
    fill(path, b"")
    (told,) = await start(path.parent, caplog)
    assert "beside files of one that is gone" not in told.getMessage()


async def test_what_a_database_left_behind_is_told_when_it_is_gone(
    path: Path, caplog: Lines
) -> None:
    await start(path.parent, caplog)
    remove(path)
    (told,) = await start(path.parent, caplog)
    assert "beside files of one that is gone" in told.getMessage()
    assert receipt_key.path_of(path).name in getattr(told, FIELDS)["beside"]
    assert "put it back" in getattr(told, FIELDS)["hint"]


async def test_an_emptied_database_is_refused_until_the_empty_file_is_removed(
    path: Path, caplog: Lines
) -> None:
    await start(path.parent, caplog)
    fill(path, b"")
    with pytest.raises(StoreRefusedError, match=r"receipts\.key .* remove the empty"):
        await start(path.parent, caplog)
    assert left_by(path)[path] == b""
    remove(path)
    assert await start(path.parent, caplog)


async def test_the_settings_in_use_are_something_left_behind_too(
    path: Path, caplog: Lines
) -> None:
    fill(applied.path_of(path), b"{}")
    (told,) = await start(path.parent, caplog)
    assert getattr(told, FIELDS)["beside"] == "callboard.db.settings.json"


@pytest.mark.parametrize("is_empty", [True, False])
async def test_the_log_of_a_database_that_is_gone_is_not_thrown_away(
    path: Path, *, is_empty: bool
) -> None:
    left = await leave_killed(path)
    remove(path)
    if is_empty:
        fill(path, b"")
    with pytest.raises(
        StoreRefusedError, match=r"a new database would throw that away"
    ):
        await SqliteStore.open(SqliteFile(path))
    assert left_by(path)[Path(f"{path}-wal")] == left[Path(f"{path}-wal")]
    assert is_there(path) is is_empty
    fill(path, left[path])
    store = await SqliteStore.open(SqliteFile(path))
    assert await names_unsettled(store) == ["m1"]
    await store.aclose()


@pytest.mark.parametrize("is_empty", [True, False])
async def test_a_restore_keeps_the_log_of_a_database_that_is_gone(
    path: Path, *, is_empty: bool
) -> None:
    copy = path.with_name("copy.db")
    SqliteFile(copy).open_writer().close()
    left = await leave_killed(path)
    remove(path)
    if is_empty:
        fill(path, b"")
    restore(copy, path)
    kept = left_by(path)[Path(f"{path}.before-restore-wal")]
    assert kept == left[Path(f"{path}-wal")]
    await (await SqliteStore.open(SqliteFile(path))).aclose()


async def test_ids_go_on_after_those_of_a_clock_that_was_ahead(path: Path) -> None:
    ahead = Far()
    ids = IdSource(ahead)
    opened, audited = ids.new(), ids.new()
    store = await SqliteStore.open(SqliteFile(path))
    record = noting(f"{audited}#1", kind="audit")
    accepted = accepting(opened)
    await store.commit(msgspec.structs.replace(accepted, records=(record,)))
    await store.aclose()
    async with open_app(load(path.parent), {}) as app:
        assert app.company.services.ids.new() > audited > opened
