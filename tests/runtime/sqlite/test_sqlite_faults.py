"""Proves that nothing acknowledged is lost when the disk, the process or we fail."""

# apsw's stubs name `collections.abc.Buffer`, which Python 3.11 has not got yet:
# pyright: reportUnknownMemberType=false

from __future__ import annotations

import itertools
import logging
import shutil
import subprocess
import sys
from collections.abc import AsyncGenerator, Iterator
from functools import partial
from pathlib import Path
from typing import cast

import apsw
import pytest
import trio

from runtime.errors import DuplicateError, MisuseError, StoreUnavailableError
from runtime.sql import write as sql_rows
from runtime.sqlite import store as sqlite_store
from runtime.sqlite.file import SqliteFile, SqliteOptions
from runtime.sqlite.store import SqliteStore
from runtime.store.jobs import WorkingThread
from runtime.store.rows import MAX_ROWS, Append, Commit, NewEvent
from tests.fakes.store.faulty_disk import FaultyDisk, Operation
from tests.support.store.engines import names_unsettled
from tests.support.store.rows import NOW, accepting, events, turn
from tests.support.store.writer import STREAMS

ROOT = Path(__file__).parents[3]


@pytest.fixture
def disk(request: pytest.FixtureRequest) -> Iterator[FaultyDisk]:
    disk = FaultyDisk("faulty", getattr(request, "param", apsw.IOError))
    yield disk
    disk.unregister()


@pytest.fixture
async def store(disk: FaultyDisk, tmp_path: Path) -> AsyncGenerator[SqliteStore]:
    options = SqliteOptions(idle_after=0.001, idle_pages=1)
    file = SqliteFile(tmp_path / "callboard.db", options, vfs=disk.name)
    store = await SqliteStore.open(file)
    yield store
    await store.aclose()


def limit_pages(db: apsw.Connection, pages: int) -> None:
    db.pragma("max_page_count", pages)


def check(path: Path) -> None:
    db = apsw.Connection(str(path))
    assert db.pragma("integrity_check") == "ok"
    db.close()


def copy_files(path: Path, folder: Path) -> Path:
    """Copy a database as it lies there, as a power cut would leave it."""
    folder.mkdir()
    for file in (path, Path(f"{path}-wal")):
        shutil.copy(file, folder / file.name)
    return folder / path.name


SYNCS: tuple[Operation, ...] = ("sync",)


async def wait_idle(store: SqliteStore) -> None:
    """Wait until the writer has done all that it does when no commit comes."""
    with trio.fail_after(30):
        while not store._writer.jobs._is_asleep:
            await trio.testing.wait_all_tasks_blocked(0.02)
        # It says so before it rests; whatever it is asked comes after that.
        await trio.to_thread.run_sync(store._writer._ref.proxy().most.get)


@pytest.mark.parametrize(("pages", "flushes"), [(1000, 1), (1, 4)])
async def test_a_short_log_is_left_alone_in_a_pause(
    tmp_path: Path, pages: int, flushes: int
) -> None:
    disk = FaultyDisk("pausing", counts=SYNCS)
    options = SqliteOptions(idle_after=0.001, idle_pages=pages)
    path = tmp_path / "callboard.db"
    store = await SqliteStore.open(SqliteFile(path, options, vfs=disk.name))
    await store.commit(accepting("m0"))
    await wait_idle(store)
    before = disk.steps
    await store.commit(accepting("m1"))
    await wait_idle(store)
    assert disk.steps - before == flushes
    killed = copy_files(path, tmp_path / "killed")
    await store.aclose()
    disk.unregister()
    opened = await SqliteStore.open(SqliteFile(killed))
    assert await names_unsettled(opened) == ["m0", "m1"]
    await opened.aclose()


async def test_a_full_disk_refuses_and_goes_on_when_there_is_room(
    tmp_path: Path,
) -> None:
    store = await SqliteStore.open(SqliteFile(tmp_path / "callboard.db"))
    await store.commit(accepting("before"))
    await store._writer.jobs.call(partial(limit_pages, pages=40))
    large = Commit(at=NOW, appends=(events("a", 0, body=bytes(400_000)),))
    with pytest.raises(StoreUnavailableError, match="no more room"):
        await store.commit(large)
    assert not store.healthy
    with pytest.raises(StoreUnavailableError):
        await store.commit(large)
    await store._writer.jobs.call(partial(limit_pages, pages=1_000_000))
    assert not store.healthy
    await store.commit(large)
    assert store.healthy
    assert await names_unsettled(store) == ["before"]
    assert len(await store.read("a")) == 1
    await store.aclose()
    check(tmp_path / "callboard.db")


async def test_a_probe_tells_that_a_disk_is_well_again(
    store: SqliteStore, disk: FaultyDisk
) -> None:
    disk.is_broken = True
    with pytest.raises(StoreUnavailableError):
        await store.commit(accepting("m1"))
    with pytest.raises(StoreUnavailableError):
        await store.probe()
    assert not store.healthy
    disk.is_broken = False
    assert not store.healthy
    await store.probe()
    assert store.healthy


@pytest.mark.parametrize("disk", [apsw.IOError, apsw.FullError], indirect=True)
async def test_whichever_step_fails_a_commit_is_whole_or_absent(
    store: SqliteStore, disk: FaultyDisk, tmp_path: Path
) -> None:
    acknowledged = 0
    for step in itertools.count(1):
        disk.fails_at = (disk.steps + step,)
        try:
            await store.commit(turn(acknowledged, "a"))
            break
        except StoreUnavailableError:
            assert len(await store.read("a")) == acknowledged
        disk.fails_at = ()
        await store.commit(turn(acknowledged, "a"))
        acknowledged += 1
        cut = copy_files(tmp_path / "callboard.db", tmp_path / f"cut{step}")
        after = await SqliteStore.open(SqliteFile(cut))
        assert len(await after.read("a")) == acknowledged
        assert (await after.counts()).inbox["replied"] == acknowledged
        await after.aclose()
        check(cut)
    assert acknowledged > 10


async def test_a_flush_that_failed_before_a_crash_leaves_all_or_nothing(
    disk: FaultyDisk, tmp_path: Path
) -> None:
    # Never idle: a copy of the WAL between the commits would take steps of its own.
    options = SqliteOptions(idle_after=3600.0)
    file = SqliteFile(tmp_path / "callboard.db", options, vfs=disk.name)
    store = await SqliteStore.open(file)
    await store.commit(turn(0, "a"))
    before = disk.steps
    await store.commit(turn(1, "a"))
    disk.fails_at = range(2 * disk.steps - before, sys.maxsize)
    with pytest.raises(StoreUnavailableError):
        await store.commit(turn(2, "a"))
    cut = copy_files(tmp_path / "callboard.db", tmp_path / "cut")
    disk.fails_at = ()
    after = await SqliteStore.open(SqliteFile(cut))
    found = len(await after.read("a"))
    assert (await after.counts()).outbox["sent"] == found
    if found == 3:
        with pytest.raises(DuplicateError):
            await after.commit(turn(2, "a"))
    else:
        await after.commit(turn(2, "a"))
    await after.aclose()
    await store.aclose()


async def test_the_wal_is_copied_into_the_database_when_it_is_quiet(
    store: SqliteStore, disk: FaultyDisk
) -> None:
    token, copied = trio.lowlevel.current_trio_token(), trio.Event()
    await store.commit(accepting("m1"))
    disk.watch("callboard.db", lambda: token.run_sync_soon(copied.set))
    await store.commit(accepting("m2"))
    with trio.fail_after(30):
        await copied.wait()


async def test_the_wal_is_copied_in_time_when_it_is_never_quiet(
    disk: FaultyDisk, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sqlite_store, "MOST_WAL_PAGES", 20)
    copies: list[int] = []
    options = SqliteOptions(idle_after=3600.0)
    file = SqliteFile(tmp_path / "callboard.db", options, vfs=disk.name)
    store = await SqliteStore.open(file)
    disk.watch("callboard.db", lambda: copies.append(disk.steps))
    for number in range(20):
        await store.commit(turn(number, "a"))
    assert copies
    await store.aclose()


async def test_a_disk_that_cannot_copy_the_wal_is_not_healthy(
    store: SqliteStore, disk: FaultyDisk
) -> None:
    token, failed = trio.lowlevel.current_trio_token(), trio.Event()

    def fail() -> None:
        token.run_sync_soon(failed.set)
        raise apsw.IOError("as told")

    disk.watch("callboard.db", fail)
    await store.commit(accepting("m1"))
    with trio.fail_after(30):
        await failed.wait()
        while store.healthy:
            await trio.lowlevel.checkpoint()
    disk.watch("callboard.db", lambda: None)
    await store.probe()
    assert store.healthy
    assert await names_unsettled(store) == ["m1"]


async def test_a_group_that_fails_leaves_no_transaction_open(
    store: SqliteStore,
) -> None:
    def stay_busy(db: apsw.Connection) -> None:
        sql_rows.write(db, accepting("half done"), 0)
        raise apsw.BusyError("as told")

    with pytest.raises(StoreUnavailableError, match="as told"):
        await store._writer.jobs.call(stay_busy)
    await store.commit(accepting("m1"))
    assert store.healthy
    assert await names_unsettled(store) == ["m1"]


async def test_a_read_that_fails_is_told_and_the_next_one_goes_on(
    store: SqliteStore,
) -> None:
    def fail(_: apsw.Connection) -> None:
        raise apsw.IOError("as told")

    with pytest.raises(StoreUnavailableError, match="as told"):
        await store._reader.jobs.call(fail)
    with pytest.raises(MisuseError, match="read"):
        await store.read("a", 2**70)
    assert await store.read("a") == ()


async def test_a_commit_of_the_wrong_type_is_the_callers_fault_alone(
    store: SqliteStore,
) -> None:
    for wrong in ("text", 7, object()):
        row = NewEvent("kind", cast("bytes", wrong))
        append = Append(stream="a", expected=0, part=0, events=(row,))
        with pytest.raises(MisuseError, match="never be stored"):
            await store._writer.jobs.call(
                partial(sql_rows.append, row=append, epoch=0, at=NOW)
            )
    await store.commit(accepting("m1"))
    assert store.healthy


async def test_a_bug_in_the_thread_is_told_to_all_who_wait(
    store: SqliteStore, caplog: pytest.LogCaptureFixture
) -> None:
    def fail(_: apsw.Connection) -> None:
        raise LookupError("a bug")

    async def expect_failure(work: object) -> None:
        with pytest.raises(StoreUnavailableError, match="a bug"):
            await (store._writer.jobs.call(fail) if work is fail else store.probe())

    with caplog.at_level(logging.CRITICAL, "pykka"):
        async with trio.open_nursery() as nursery:
            for work in (fail, None, None):
                nursery.start_soon(expect_failure, work)
    await expect_failure(None)
    assert not store.healthy
    assert store.needs_reopening
    with pytest.raises(StoreUnavailableError, match="a bug"):
        await store.commit(accepting("m1"))


@pytest.mark.parametrize("name", ["_writer", "_reader"])
async def test_who_uses_a_store_is_told_that_a_thread_is_gone_for_good(
    store: SqliteStore, caplog: pytest.LogCaptureFixture, name: str
) -> None:
    def fail(_: apsw.Connection) -> None:
        raise LookupError("a bug")

    told = trio.Event()
    store.when_broken(lambda _: told.set())
    thread: WorkingThread = getattr(store, name)
    assert not told.is_set()
    with caplog.at_level(logging.CRITICAL, "pykka"):
        with pytest.raises(StoreUnavailableError, match="Start the program again"):
            await thread.jobs.call(fail)
        with trio.fail_after(30):
            await told.wait()
    why: list[StoreUnavailableError] = []
    store.when_broken(why.append)
    assert [str(each) for each in why] == [thread.jobs.death]
    with pytest.raises(StoreUnavailableError, match="a bug"):
        await store.probe()


async def test_kill_9_loses_nothing_acknowledged(tmp_path: Path) -> None:
    path = tmp_path / "callboard.db"
    acknowledged: dict[str, int] = dict.fromkeys(STREAMS, 0)
    for kill_after in (1, 2, 3, 5, 8, 13, 21, 34, 55, 89):
        for line in await run_and_kill(path, kill_after):
            stream, number = line.split()
            acknowledged[stream] = int(number)
        store = await SqliteStore.open(SqliteFile(path))
        stored = {
            name: len(await store.read(name, 0, MAX_ROWS)) for name in acknowledged
        }
        counts = await store.counts()
        await store.aclose()
        check(path)
        assert all(stored[name] >= acknowledged[name] for name in acknowledged)
        # At most the one turn of each stream that was under way is there as well.
        assert all(stored[name] <= acknowledged[name] + 1 for name in acknowledged)
        assert counts.inbox["replied"] == sum(stored.values())
        assert counts.outbox["sent"] == sum(stored.values())
        acknowledged = stored


async def run_and_kill(path: Path, kill_after: int) -> list[str]:
    """Let a writer acknowledge so many turns, kill it, and give all it had said."""
    said = b""
    with trio.fail_after(60):
        process = await trio.lowlevel.open_process(
            [sys.executable, "-m", "tests.support.store.writer", str(path)],
            cwd=ROOT,
            stdout=subprocess.PIPE,
        )
        assert process.stdout is not None
        async with process.stdout:
            async for piece in process.stdout:
                said += piece
                if said.count(b"\n") >= kill_after:
                    process.kill()
        await process.wait()
    assert process.returncode == -9
    # The last line may be cut; what was not said in full was not acknowledged.
    return said.decode().splitlines(keepends=False)[: said.count(b"\n")]
