"""Proves that a store knows when its file is damaged, lost, or changed by others."""

# apsw's stubs name `collections.abc.Buffer`, which Python 3.11 has not got yet:
# pyright: reportUnknownMemberType=false

from __future__ import annotations

from collections.abc import AsyncGenerator
from pathlib import Path

import apsw
import pytest
import trio

from runtime.errors import (
    CorruptError,
    DuplicateError,
    StoreError,
    StoreUnavailableError,
)
from runtime.sqlite.file import SqliteFile, SqliteOptions
from runtime.sqlite.store import SqliteStore
from runtime.store.rows import Commit, Committed
from tests.support.store.engines import Gate, names_unsettled
from tests.support.store.rows import NOW, accepting, events, remembering

BODY = b"seven" * 600
PAGE = 4096
UNCHECKED = SqliteOptions(check_below=0)
"""Opens a file without a look for damage, as one that is large."""


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "callboard.db"


@pytest.fixture
async def store(path: Path) -> AsyncGenerator[SqliteStore]:
    """Open a store that leaves its WAL alone."""
    options = SqliteOptions(idle_after=3600.0)
    store = await SqliteStore.open(SqliteFile(path, options))
    yield store
    await store.aclose()


# Files are so small here that a test may wait for them.
def content(path: Path) -> bytes:
    return path.read_bytes()


def overwrite(path: Path, offset: int, data: bytes) -> None:
    with path.open("r+b") as file:
        file.seek(offset)
        file.write(data)


def cut_off(path: Path, size: int) -> None:
    with path.open("r+b") as file:
        file.truncate(size)


def spoil(path: Path, table: str) -> None:
    """Write nonsense over all pages of one table."""
    db = apsw.Connection(str(path))
    find = "SELECT pageno FROM dbstat WHERE name = ?"
    pages: list[tuple[int]] = list(db.execute(find, (table,)))
    db.close()
    assert pages
    for (number,) in pages:
        overwrite(path, (number - 1) * PAGE, b"\xa5" * PAGE)


async def test_a_wal_cut_off_is_ill_health_until_the_store_is_opened_anew(
    store: SqliteStore, path: Path
) -> None:
    wal = Path(f"{path}-wal")
    await store.commit(Commit(at=NOW, appends=(events("a", 0, body=BODY),)))
    whole = content(wal)
    cut_off(wal, 32)
    with pytest.raises(StoreError):
        await store.read("a")
    assert not store.healthy
    with pytest.raises(StoreError):
        await store.probe()
    assert not store.healthy
    overwrite(wal, 0, whole)
    with pytest.raises(CorruptError, match="until the damage is mended"):
        await store.probe()
    assert not store.healthy


async def test_damage_in_one_place_is_not_made_good_by_work_in_another(
    path: Path,
) -> None:
    store = await SqliteStore.open(SqliteFile(path))
    await store.commit(Commit(at=NOW, appends=(events("a", 0, 3, body=BODY),)))
    await store.aclose()
    whole = content(path)
    place = whole.index(BODY[:64]) // PAGE * PAGE
    overwrite(path, place, b"\xa5" * PAGE)
    store = await SqliteStore.open(SqliteFile(path, UNCHECKED))
    with pytest.raises(CorruptError, match="damaged"):
        await store.read("a")
    with pytest.raises(CorruptError, match="nothing is stored"):
        await store.commit(accepting("m1"))
    told: list[object] = []
    store.submit(accepting("m1"), told.append)
    assert await names_unsettled(store) == []
    with pytest.raises(CorruptError):
        await store.probe()
    assert not store.healthy
    assert isinstance(told[0], CorruptError)
    overwrite(path, place, whole[place : place + PAGE])
    with pytest.raises(CorruptError):
        await store.probe()
    assert not store.healthy
    await store.aclose()
    again = await SqliteStore.open(SqliteFile(path))
    await again.commit(accepting("m1"))
    assert again.healthy
    await again.aclose()


@pytest.mark.parametrize("table", ["fact_words_data", "fact_words_idx"])
async def test_a_damaged_index_fails_only_those_of_a_group_who_need_it(
    path: Path, table: str
) -> None:
    store = await SqliteStore.open(SqliteFile(path))
    old = tuple(remembering(f"f{n}", words=("safe", f"w{n}")) for n in range(50))
    await store.commit(Commit(at=NOW, facts=old))
    await store.aclose()
    spoil(path, table)
    store = await SqliteStore.open(SqliteFile(path, UNCHECKED))
    gate, told = Gate(), list[object]()
    store._writer.jobs.submit(gate.hold, told.append)
    await gate.wait_reached()
    new = Commit(at=NOW, facts=(remembering("new", words=("safe",)),))
    for commit in (accepting("m1"), new, accepting("m1"), accepting("m2")):
        store.submit(commit, told.append)
    gate.open()
    await store.commit(accepting("m3"))
    assert await names_unsettled(store) == ["m1", "m2", "m3"]
    kinds = [type(each) for each in told[1:]]
    assert kinds == [Committed, CorruptError, DuplicateError, Committed]
    assert not store.healthy
    await store.aclose()


@pytest.mark.parametrize("is_replaced", [True, False])
async def test_nothing_is_acknowledged_when_the_lock_lost_its_name(
    store: SqliteStore, path: Path, *, is_replaced: bool
) -> None:
    await store.commit(accepting("m1"))
    lock = trio.Path(f"{path}.lock")
    await lock.rename(f"{path}.lock-elsewhere")
    if is_replaced:
        await lock.touch()
    with pytest.raises(StoreUnavailableError, match=r"lock was removed or replaced"):
        await store.commit(accepting("m2"))
    assert not store.healthy
    await trio.Path(f"{path}.lock-elsewhere").rename(lock)
    await store.commit(accepting("m2"))
    assert store.healthy


async def test_of_two_stores_only_the_one_whose_lock_has_its_name_writes(
    store: SqliteStore, path: Path
) -> None:
    await store.commit(accepting("m1"))
    await trio.Path(f"{path}.lock").unlink()
    second = await SqliteStore.open(SqliteFile(path))
    await second.commit(accepting("m2"))
    with pytest.raises(StoreUnavailableError, match="lock"):
        await store.commit(accepting("m3"))
    await second.commit(accepting("m4"))
    assert await names_unsettled(second) == ["m1", "m2", "m4"]
    await second.aclose()


async def test_what_another_program_writes_is_noticed_once(
    store: SqliteStore, path: Path
) -> None:
    assert not await store.changes_outside()
    await store.commit(accepting("m1"))
    assert not await store.changes_outside()
    other = apsw.Connection(str(path))
    other.execute("SELECT count(*) FROM inbox").get  # noqa: B018  it only reads
    assert not await store.changes_outside()
    other.execute("UPDATE inbox SET priority = 1")
    await store.commit(accepting("m2"))
    assert await store.changes_outside()
    assert not await store.changes_outside()
    other.close()


@pytest.mark.parametrize("is_replaced", [True, False])
async def test_nothing_is_acknowledged_when_the_wal_lost_its_name(
    store: SqliteStore, path: Path, *, is_replaced: bool
) -> None:
    await store.commit(accepting("m1"))
    await store.commit(accepting("m2"))
    wal = trio.Path(f"{path}-wal")
    await wal.rename(f"{path}-elsewhere")
    if is_replaced:
        await wal.touch()
    with pytest.raises(StoreUnavailableError, match=r"wal was removed or replaced"):
        await store.commit(accepting("m3"))
    assert not store.healthy
    await trio.Path(f"{path}-elsewhere").rename(wal)
    await store.commit(accepting("m3"))


async def test_a_link_to_a_database_in_use_is_the_same_database(
    store: SqliteStore, path: Path
) -> None:
    await store.commit(accepting("m1"))
    link = path.with_name("link.db")
    await trio.Path(link).symlink_to(path)
    with pytest.raises(StoreUnavailableError, match="in use by another callboard"):
        await SqliteStore.open(SqliteFile(link))


async def test_damage_is_told_once_and_stays_until_the_store_is_opened_anew(
    path: Path,
) -> None:
    store = await SqliteStore.open(SqliteFile(path))
    await store.commit(Commit(at=NOW, appends=(events("a", 0, 3, body=BODY),)))
    await store.aclose()
    spoil(path, "journal")
    store = await SqliteStore.open(SqliteFile(path, UNCHECKED))
    told: list[str] = []
    store.when_damaged(told.append)
    for _ in range(2):
        with pytest.raises(CorruptError):
            await store.read("a")
    assert len(told) == 1
    assert f"{path} is damaged" in told[0]
    late: list[str] = []
    store.when_damaged(late.append)
    assert late == told
    await store.aclose()


async def test_whichever_page_is_damaged_a_start_refuses_the_file(path: Path) -> None:
    store = await SqliteStore.open(SqliteFile(path))
    old = tuple(remembering(f"f{n}", words=("safe", f"w{n}")) for n in range(5))
    for number in range(5):
        await store.commit(accepting(f"m{number}"))
    await store.commit(Commit(at=NOW, facts=old, appends=(events("a", 0),)))
    await store.aclose()
    whole = content(path)
    for place in range(0, len(whole), PAGE):
        overwrite(path, 0, whole)
        overwrite(path, place, b"\xa5" * PAGE)
        with pytest.raises(StoreError) as caught:
            await SqliteStore.open(SqliteFile(path))
        assert not isinstance(caught.value, StoreUnavailableError)
    assert len(whole) // PAGE > 20


async def test_a_large_file_is_looked_at_after_an_unclean_end_only(path: Path) -> None:
    store = await SqliteStore.open(SqliteFile(path))
    await store.commit(Commit(at=NOW, appends=(events("a", 0, 3, body=BODY),)))
    await store.aclose()
    spoil(path, "journal")
    clean = await SqliteStore.open(SqliteFile(path, UNCHECKED))
    await clean.aclose()
    lock = SqliteFile(path).lock()
    lock.mark("what a killed process leaves")
    lock.release()
    with pytest.raises(CorruptError, match="damaged"):
        await SqliteStore.open(SqliteFile(path, UNCHECKED))
