"""Proves that a database is opened only if it is ours, current, free and safe."""

# apsw's stubs name `collections.abc.Buffer`, which Python 3.11 has not got yet:
# pyright: reportUnknownMemberType=false

from __future__ import annotations

import os
import stat
import sys
from pathlib import Path

import apsw
import pytest
import trio
import trio.testing

from runtime.errors import (
    CorruptError,
    StoreRefusedError,
    StoreTooNewError,
    StoreUnavailableError,
)
from runtime.sqlite.file import SqliteFile, SqliteOptions, refuse_old_engine
from runtime.sqlite.migrations import APPLICATION_ID, MIGRATIONS
from runtime.sqlite.store import SqliteStore
from runtime.store.rows import MAX_ROWS, Commit
from tests.support.store.engines import names_unsettled
from tests.support.store.rows import NOW, accepting, events

ROOT = Path(__file__).parents[3]


def add_a_table(db: apsw.Connection) -> None:
    db.execute("CREATE TABLE later(id INTEGER PRIMARY KEY) STRICT")


def add_a_table_and_fail(db: apsw.Connection) -> None:
    add_a_table(db)
    raise apsw.FullError("as told")


def pragma(path: Path, name: str) -> int:
    db = apsw.Connection(str(path))
    value: int = db.pragma(name)
    db.close()
    return value


# Files are so small here that a test may wait for them.
def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def set_mode(path: Path, mode: int) -> None:
    path.chmod(mode)


def content(path: Path) -> bytes:
    return path.read_bytes()


def fill(path: Path, content: bytes) -> None:
    path.write_bytes(content)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "callboard.db"


async def write_one(path: Path) -> None:
    store = await SqliteStore.open(SqliteFile(path))
    await store.commit(accepting("m1"))
    await store.aclose()


async def test_a_new_file_is_private_and_known_as_ours(tmp_path: Path) -> None:
    path = tmp_path / "new" / "folder" / "callboard.db"
    store = await SqliteStore.open(SqliteFile(path))
    await store.commit(accepting("m1"))
    modes = {file.name: mode(file) for file in path.parent.iterdir()}
    await store.aclose()
    assert len(modes) == 4
    assert set(modes.values()) == {0o600}
    assert mode(path.parent) == 0o700
    assert pragma(path, "application_id") == APPLICATION_ID
    assert pragma(path, "user_version") == len(MIGRATIONS)


@pytest.mark.parametrize(("setting", "level"), [("full", 2), ("normal", 1)])
def test_commits_are_flushed_as_the_settings_say(
    path: Path, setting: str, level: int
) -> None:
    options = SqliteOptions(synchronous="full" if setting == "full" else "normal")
    db = SqliteFile(path, options).open_writer()
    assert db.pragma("journal_mode") == "wal"
    assert db.pragma("synchronous") == level
    db.close()


async def test_a_wal_that_grew_gives_its_room_back(path: Path) -> None:
    options = SqliteOptions(wal_kept=100_000, idle_after=0.001, idle_pages=1)
    store = await SqliteStore.open(SqliteFile(path, options))
    wal = trio.Path(f"{path}-wal")
    large = events("a", 0, body=b"x" * 1_000_000)
    await store.commit(Commit(at=NOW, appends=(large,)))
    assert (await wal.stat()).st_size > 1_000_000
    with trio.fail_after(30):
        number = 0
        while (await wal.stat()).st_size > 100_000:
            await trio.testing.wait_all_tasks_blocked(0.02)  # it is copied meanwhile
            await store.commit(accepting(f"m{number}"))
            number += 1
    await store.aclose()


async def test_a_foreign_reader_is_told_of_and_costs_few_copies(
    path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """While it reads, the WAL grows; then it begins anew and stays within its bound."""
    store = await SqliteStore.open(SqliteFile(path))
    wal = trio.Path(f"{path}-wal")
    await store.commit(accepting("m0"))
    reader = apsw.Connection(str(path))
    reader.execute("BEGIN")
    assert reader.execute("SELECT count(*) FROM inbox").get == 1
    body = b"x" * 8_000_000
    for version in range(15):
        large = events("a", version, body=body)
        await store.commit(Commit(at=NOW, appends=(large,)))
    assert (await wal.stat()).st_size > 100_000_000
    told = [each for each in caplog.records if "-wal" in each.getMessage()]
    assert len(told) == 1
    reader.close()
    for version in range(15, 20):
        large = events("a", version, body=body)
        await store.commit(Commit(at=NOW, appends=(large,)))
    assert (await wal.stat()).st_size <= 67_108_864 + 10_000_000
    await store.aclose()


async def test_a_file_that_others_could_read_is_made_private(path: Path) -> None:
    await write_one(path)
    set_mode(path, 0o644)
    await write_private(path)


async def write_private(path: Path) -> None:
    store = await SqliteStore.open(SqliteFile(path))
    for file in (path, Path(f"{path}-wal"), Path(f"{path}-shm")):
        assert mode(file) == 0o600
    await store.aclose()


@pytest.mark.parametrize(
    "sql",
    [
        "CREATE TABLE theirs(x)",
        "PRAGMA application_id = 77",
        "PRAGMA user_version = 1",
    ],
)
async def test_another_programs_database_is_refused_untouched(
    path: Path, sql: str
) -> None:
    db = apsw.Connection(str(path))
    db.execute(sql)
    db.close()
    set_mode(path, 0o664)
    before = content(path)
    with pytest.raises(StoreRefusedError, match="another program"):
        await SqliteStore.open(SqliteFile(path))
    assert content(path) == before
    assert mode(path) == 0o664


async def test_a_file_that_is_no_database_is_refused(path: Path) -> None:
    fill(path, b"Dear diary, " * 1000)
    with pytest.raises(CorruptError, match="no database"):
        await SqliteStore.open(SqliteFile(path))


async def test_a_damaged_file_is_told_as_such(path: Path) -> None:
    store = await SqliteStore.open(SqliteFile(path))
    await store.commit(accepting(*(f"m{number}" for number in range(2000))))
    await store.aclose()
    whole = content(path)
    half = len(whole) // 2  # the schema is in the first
    fill(path, whole[:half] + b"\xa5" * (len(whole) - half))
    unchecked = SqliteOptions(check_below=0)
    store = await SqliteStore.open(SqliteFile(path, unchecked))
    with pytest.raises(CorruptError, match="damaged"):
        await store.unsettled(0, MAX_ROWS)
    with pytest.raises(CorruptError, match="damaged"):
        await store.commit(accepting("m1"))
    assert not store.healthy
    await store.aclose()


async def test_a_newer_releases_database_is_refused(path: Path) -> None:
    await write_one(path)
    newer = (*MIGRATIONS, add_a_table)
    await (await SqliteStore.open(SqliteFile(path, migrations=newer))).aclose()
    with pytest.raises(StoreTooNewError, match="newer release"):
        await SqliteStore.open(SqliteFile(path))


async def test_an_older_database_is_copied_and_then_brought_up_to_date(
    path: Path,
) -> None:
    await write_one(path)
    newer = (*MIGRATIONS, add_a_table)
    copy = path.with_name(f"callboard.db.backup-v{len(MIGRATIONS)}")
    fill(copy, b"an older copy, to be replaced")
    store = await SqliteStore.open(SqliteFile(path, migrations=newer))
    assert await names_unsettled(store) == ["m1"]
    await store.aclose()
    assert pragma(path, "user_version") == len(newer)
    assert mode(copy) == 0o600
    fill(path, content(copy))
    store = await SqliteStore.open(SqliteFile(path))
    assert await names_unsettled(store) == ["m1"]
    await store.aclose()


async def test_a_migration_that_fails_changes_nothing(path: Path) -> None:
    await write_one(path)
    failing = (*MIGRATIONS, add_a_table_and_fail)
    with pytest.raises(StoreUnavailableError, match="as told"):
        await SqliteStore.open(SqliteFile(path, migrations=failing))
    assert pragma(path, "user_version") == len(MIGRATIONS)
    newer = (*MIGRATIONS, add_a_table)
    store = await SqliteStore.open(SqliteFile(path, migrations=newer))
    assert await names_unsettled(store) == ["m1"]
    await store.aclose()


async def test_a_current_database_is_not_copied(path: Path) -> None:
    await write_one(path)
    await write_private(path)
    assert sorted(file.name for file in path.parent.iterdir()) == [
        "callboard.db",
        "callboard.db.lock",
    ]


@pytest.mark.parametrize("version", ["3.51.2", "3.45.1", "2.9.9"])
def test_an_engine_known_to_lose_data_is_refused(version: str) -> None:
    with pytest.raises(StoreRefusedError, match=version):
        refuse_old_engine(version)


@pytest.mark.parametrize("version", ["3.51.3", "3.54.1", "4.0.0"])
def test_an_engine_that_is_safe_is_taken(version: str) -> None:
    refuse_old_engine(version)


async def test_a_second_store_on_one_file_is_refused(path: Path) -> None:
    store = await SqliteStore.open(SqliteFile(path))
    with pytest.raises(StoreUnavailableError, match=rf"{path}.*process {os.getpid()}"):
        await SqliteStore.open(SqliteFile(path))
    await store.commit(accepting("m1"))
    await store.aclose()
    await write_private(path)


async def test_a_second_process_on_one_file_is_refused(path: Path) -> None:
    store = await SqliteStore.open(SqliteFile(path))
    with trio.fail_after(60):
        second = await trio.run_process(
            [sys.executable, "-m", "tests.support.store.writer", str(path)],
            cwd=ROOT,
            capture_stderr=True,
            check=False,
        )
    await store.aclose()
    said = second.stderr.decode()
    assert second.returncode == 1
    assert f"{path} is in use by another callboard" in said
    assert "Traceback" not in said


@pytest.mark.parametrize("comes_back", [True, False])
async def test_nothing_is_acknowledged_into_a_file_that_lost_its_name(
    path: Path, *, comes_back: bool
) -> None:
    store = await SqliteStore.open(SqliteFile(path))
    await store.commit(accepting("m1"))
    elsewhere = trio.Path(path.with_name("elsewhere"))
    await trio.Path(path).rename(elsewhere)
    if not comes_back:
        await trio.Path(path).write_bytes(await elsewhere.read_bytes())
    with pytest.raises(StoreUnavailableError, match="removed or replaced"):
        await store.commit(accepting("m2"))
    assert not store.healthy
    if comes_back:
        await elsewhere.rename(path)
        await store.commit(accepting("m2"))
        assert store.healthy
    await store.aclose()


async def test_a_path_that_cannot_be_used_is_told_as_such(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("not a folder")
    with pytest.raises(StoreUnavailableError, match="another path"):
        await SqliteStore.open(SqliteFile(tmp_path / "file" / "callboard.db"))
    (tmp_path / "callboard.db").mkdir()
    with pytest.raises(StoreRefusedError, match="is a folder"):
        await SqliteStore.open(SqliteFile(tmp_path / "callboard.db"))
