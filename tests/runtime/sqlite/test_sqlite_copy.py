"""Proves that a copy is whole or absent, and that it can be put back."""

# apsw's stubs name `collections.abc.Buffer`, which Python 3.11 has not got yet:
# pyright: reportUnknownMemberType=false

from __future__ import annotations

import stat
from collections.abc import AsyncGenerator
from pathlib import Path

import apsw
import pytest
import trio

from runtime.errors import (
    CorruptError,
    StoreRefusedError,
    StoreTooNewError,
    StoreUnavailableError,
)
from runtime.sqlite import copying as sqlite_pages
from runtime.sqlite.database import backup, name_twice, restore
from runtime.sqlite.file import SqliteFile, SqliteOptions
from runtime.sqlite.migrations import MIGRATIONS
from runtime.sqlite.store import SqliteStore
from runtime.store.rows import Commit
from tests.support.store.cuts import Cuts
from tests.support.store.engines import names_unsettled
from tests.support.store.rows import NOW, accepting, events, turn

PAGE = 4096


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "callboard.db"


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    return tmp_path / "copies" / "monday.db"


@pytest.fixture
async def store(path: Path) -> AsyncGenerator[SqliteStore]:
    store = await SqliteStore.open(SqliteFile(path))
    await store.commit(accepting("m1"))
    yield store
    await store.aclose()


async def names_in(path: Path) -> list[str]:
    """Open a database as a server does, and give the ids of its messages."""
    store = await SqliteStore.open(SqliteFile(path))
    names = await names_unsettled(store)
    await store.aclose()
    return names


# Files are so small here that a test may wait for them.
def fill(path: Path, data: bytes) -> None:
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(data)


def link(path: Path, second: Path) -> None:
    second.hardlink_to(path)


def content(path: Path) -> bytes:
    return path.read_bytes()


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def left_by(path: Path) -> dict[Path, bytes]:
    """Give a database and what lies beside it, as a killed process leaves them."""
    return {file: file.read_bytes() for file in path.parent.glob(f"{path.name}*")}


def files(folder: Path) -> set[str]:
    return {file.name for file in folder.iterdir()}


def damage(path: Path, body: bytes) -> None:
    whole = path.read_bytes()
    place = whole.index(body) // PAGE * PAGE
    path.write_bytes(whole[:place] + b"\xa5" * PAGE + whole[place + PAGE :])


async def test_a_copy_of_a_running_servers_database_is_one_whole_file(
    store: SqliteStore, path: Path, copy: Path
) -> None:
    size = backup(path, copy)
    await store.commit(accepting("m2"))
    assert files(copy.parent) == {"monday.db"}
    assert size == len(content(copy))
    assert mode(copy) == 0o600
    assert await names_in(copy) == ["m1"]
    assert not await store.changes_outside()


async def test_a_busy_server_neither_waits_nor_holds_up_the_copy(
    store: SqliteStore, path: Path, copy: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sqlite_pages, "STEP", 1)
    written, is_over = 0, trio.Event()

    async def keep_writing() -> None:
        nonlocal written
        while not is_over.is_set():
            await store.commit(turn(written, "a"))
            written += 1

    large = Commit(at=NOW, appends=(events("large", 0, body=bytes(1_000_000)),))
    await store.commit(large)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(keep_writing)
        await trio.to_thread.run_sync(backup, path, copy)
        is_over.set()
    assert written > 0
    assert await names_in(copy) == ["m1"]


async def test_a_copy_is_not_overwritten_unless_told(
    store: SqliteStore, path: Path, copy: Path
) -> None:
    fill(copy, b"precious")
    with pytest.raises(StoreRefusedError, match="not overwritten"):
        backup(path, copy)
    assert content(copy) == b"precious"
    backup(path, copy, replace=True)
    assert store.healthy
    assert await names_in(copy) == ["m1"]


async def test_a_database_is_never_copied_onto_itself(
    store: SqliteStore, path: Path
) -> None:
    roundabout = path.parent / "." / ".." / path.parent.name / path.name
    with pytest.raises(StoreRefusedError, match="itself"):
        backup(path, roundabout, replace=True)
    with pytest.raises(StoreRefusedError, match="itself"):
        restore(roundabout, path)
    assert await names_unsettled(store) == ["m1"]


async def test_a_damaged_database_gives_no_copy(path: Path, copy: Path) -> None:
    store = await SqliteStore.open(SqliteFile(path))
    body = b"seven" * 600
    await store.commit(Commit(at=NOW, appends=(events("a", 0, 3, body=body),)))
    await store.aclose()
    damage(path, body[:64])
    with pytest.raises(CorruptError, match=rf"{path} is damaged"):
        backup(path, copy)
    assert files(copy.parent) == set()


def test_a_database_that_breaks_its_own_rules_gives_no_copy(
    path: Path, copy: Path
) -> None:
    db = SqliteFile(path).open_writer()
    db.pragma("ignore_check_constraints", value=True)
    db.execute("INSERT INTO snapshot VALUES ('a', 1, 1, 999, 0, x'00', 0.0)")
    db.close()
    with pytest.raises(CorruptError, match="CHECK constraint failed in snapshot"):
        backup(path, copy)
    assert files(copy.parent) == set()


def test_a_database_cut_off_gives_no_copy(path: Path, copy: Path) -> None:
    SqliteFile(path).open_writer().close()
    fill(path, content(path)[: 3 * PAGE])
    with pytest.raises(CorruptError, match=rf"{path} is damaged"):
        backup(path, copy)
    assert files(copy.parent) == set()


def test_what_is_no_database_of_ours_gives_no_copy(path: Path, copy: Path) -> None:
    with pytest.raises(StoreUnavailableError, match="there is no database"):
        backup(path, copy)
    db = apsw.Connection(str(path))
    db.execute("CREATE TABLE theirs(x)")
    db.close()
    with pytest.raises(StoreRefusedError, match="another program"):
        backup(path, copy)
    assert files(copy.parent) == set()


async def test_a_copy_takes_the_place_of_a_database_which_is_kept(
    path: Path, copy: Path
) -> None:
    assert await names_in(path) == []
    backup(path, copy)
    for number, suffix in ((1, ""), (2, "-2"), (3, "-3")):
        store = await SqliteStore.open(SqliteFile(path))
        await store.commit(accepting(f"m{number}"))
        await store.aclose()
        kept = path.with_name(f"callboard.db.before-restore{suffix}")
        assert restore(copy, path) == kept
        assert await names_in(path) == []
        assert await names_in(kept) == [f"m{number}"]
    assert mode(path) == 0o600


async def test_what_a_killed_server_left_in_its_wal_is_kept_too(
    path: Path, copy: Path
) -> None:
    assert await names_in(path) == []
    backup(path, copy)
    await leave_killed(path, "m1")
    kept = restore(copy, path)
    assert kept is not None
    assert set(left_by(path)) == {path, Path(f"{path}.lock"), kept}
    assert await names_in(path) == []
    assert await names_in(kept) == ["m1"]


async def test_a_copy_goes_into_a_new_folder_that_is_its_owners_alone(
    store: SqliteStore, path: Path, copy: Path, tmp_path: Path
) -> None:
    assert store.healthy
    backup(path, copy)
    inner = tmp_path / "outer" / "inner"
    backup(copy, inner / "copy.db")
    assert mode(inner) == 0o700
    restore(copy, tmp_path / "home" / "callboard.db")
    assert mode(tmp_path / "home") == 0o700


async def test_a_copy_is_put_where_nothing_was(
    store: SqliteStore, path: Path, tmp_path: Path
) -> None:
    assert store.healthy
    place = tmp_path / "new" / "callboard.db"
    fill(Path(f"{place}-wal"), b"stale")
    assert restore(path, place) is None
    assert await names_in(place) == ["m1"]


async def test_a_database_in_use_is_not_replaced(
    store: SqliteStore, path: Path, copy: Path
) -> None:
    backup(path, copy)
    await store.commit(accepting("m2"))
    with pytest.raises(StoreUnavailableError, match="in use"):
        restore(copy, path)
    assert await names_unsettled(store) == ["m1", "m2"]
    await store.commit(accepting("m3"))


async def test_an_older_copy_is_taken_and_brought_up_to_date_at_the_next_start(
    path: Path, copy: Path
) -> None:
    copy.parent.mkdir()
    SqliteFile(copy, migrations=MIGRATIONS[:1]).open_writer().close()
    assert restore(copy, path) is None
    assert await names_in(path) == []


@pytest.mark.parametrize(
    ("pragma", "value", "error"),
    [
        ("user_version", 99, StoreTooNewError),
        ("application_id", 77, StoreRefusedError),
        ("", 0, CorruptError),
    ],
)
async def test_a_copy_that_will_not_do_leaves_all_as_it_was(
    path: Path, copy: Path, pragma: str, value: int, error: type[Exception]
) -> None:
    store = await SqliteStore.open(SqliteFile(path))
    await store.commit(accepting("m1"))
    await store.aclose()
    backup(path, copy)
    if pragma:
        db = apsw.Connection(str(copy))
        db.pragma(pragma, value)
        db.close()
    else:
        damage(copy, b"'m1'")
    before = content(path)
    with pytest.raises(error):
        restore(copy, path)
    assert content(path) == before
    assert not any("restore" in name for name in files(path.parent))
    assert not any("unfinished" in name for name in files(path.parent))
    assert await names_in(path) == ["m1"]


async def leave_killed(path: Path, name: str) -> None:
    """Leave a database as a killed server does: one commit only in its WAL."""
    store = await SqliteStore.open(SqliteFile(path, SqliteOptions(idle_after=3600.0)))
    await store.commit(accepting(name))
    left = left_by(path)
    await store.aclose()
    for file, data in left.items():
        fill(file, data)


async def test_a_restore_cut_at_any_moment_leaves_the_old_or_the_new(
    tmp_path: Path, copy: Path
) -> None:
    path = tmp_path / "place" / "callboard.db"
    assert await names_in(path) == []
    backup(path, copy)
    await leave_killed(path, "m1")
    with Cuts(path.parent, tmp_path / "cuts") as cuts:
        restore(copy, path)
    found = [(state / path.name).exists() for state in cuts.states]
    assert len(found) > 5
    assert all(found)
    names = [await names_in(state / path.name) for state in cuts.states]
    change = names.index([])
    assert names == [["m1"]] * change + [[]] * (len(names) - change)


async def test_a_restore_cut_short_can_be_run_again(tmp_path: Path, copy: Path) -> None:
    path = tmp_path / "place" / "callboard.db"
    assert await names_in(path) == []
    backup(path, copy)
    await leave_killed(path, "m1")
    with Cuts(path.parent, tmp_path / "cuts") as cuts:
        restore(copy, path)
    for state in cuts.states[:-1]:
        if await names_in(state / path.name) == ["m1"]:
            kept = restore(copy, state / path.name)
            assert kept is not None
            assert await names_in(kept) == ["m1"]
            assert await names_in(state / path.name) == []


async def test_a_name_given_before_a_restore_was_cut_short_is_used_again(
    path: Path, copy: Path
) -> None:
    assert await names_in(path) == []
    backup(path, copy)
    await leave_killed(path, "m1")
    kept = Path(f"{path}.before-restore")
    link(path, kept)
    assert restore(copy, path) == kept
    assert await names_in(kept) == ["m1"]
    assert await names_in(path) == []


async def test_what_cannot_be_read_is_kept_with_its_wal(path: Path, copy: Path) -> None:
    assert await names_in(path) == []
    backup(path, copy)
    fill(path, b"Dear diary, " * 1000)
    fill(Path(f"{path}-wal"), b"and more")
    kept = restore(copy, path)
    assert kept is not None
    assert content(kept) == b"Dear diary, " * 1000
    assert content(Path(f"{kept}-wal")) == b"and more"
    assert not any(name.endswith(".unfinished") for name in files(path.parent))
    assert await names_in(path) == []


async def test_a_journal_of_something_else_is_not_written_into_a_copy(
    store: SqliteStore, path: Path, tmp_path: Path
) -> None:
    assert store.healthy
    place = tmp_path / "new" / "callboard.db"
    fill(Path(f"{place}-journal"), b"stale")
    restore(path, place)
    assert "callboard.db-journal" not in files(place.parent)
    assert await names_in(place) == ["m1"]


async def test_a_database_that_somebody_reads_is_not_replaced(
    path: Path, copy: Path
) -> None:
    assert await names_in(path) == []
    backup(path, copy)
    await leave_killed(path, "m1")
    reader = apsw.Connection(str(path))
    reader.execute("BEGIN; SELECT * FROM inbox").fetchall()
    with pytest.raises(StoreUnavailableError, match="nothing was written"):
        restore(copy, path)
    reader.close()
    assert await names_in(path) == ["m1"]


def test_a_disk_without_second_names_gets_a_copy(tmp_path: Path) -> None:
    def refuse(_path: Path, _second: Path) -> None:
        raise PermissionError

    first, second = tmp_path / "first", tmp_path / "second"
    fill(first, b"text")
    name_twice(first, second, refuse)
    assert files(tmp_path) == {"first", "second"}
    assert content(second) == b"text"
    assert not first.samefile(second)
