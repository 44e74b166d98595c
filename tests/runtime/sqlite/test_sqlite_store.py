"""Proves that the SQLite engine groups commits, bounds its queue and truly closes."""

# apsw's stubs name `collections.abc.Buffer`, which Python 3.11 has not got yet:
# pyright: reportUnknownMemberType=false

from __future__ import annotations

import threading
from collections.abc import AsyncGenerator
from pathlib import Path

import msgspec
import pykka
import pytest
import trio
import trio.testing

from runtime.errors import DuplicateError, MisuseError, StoreUnavailableError
from runtime.sql import read as sql_reads, write as sql_rows
from runtime.sqlite import store as sqlite_store
from runtime.sqlite.file import SqliteFile, SqliteOptions
from runtime.sqlite.migrations import MIGRATIONS
from runtime.sqlite.store import SqliteStore
from runtime.store.jobs import JobQueue
from runtime.store.rows import Commit, Committed
from tests.support.store.engines import Gate, names_unsettled
from tests.support.store.rows import NOW, accepting, events


@pytest.fixture
def file(tmp_path: Path) -> SqliteFile:
    options = SqliteOptions(
        max_queued=20, max_queued_bytes=1000, idle_after=0.01, close_within=0.2
    )
    return SqliteFile(tmp_path / "callboard.db", options)


@pytest.fixture
async def store(file: SqliteFile) -> AsyncGenerator[SqliteStore]:
    store = await SqliteStore.open(file)
    yield store
    await store.aclose()


@pytest.fixture
async def held(store: SqliteStore, nursery: trio.Nursery) -> AsyncGenerator[Gate]:
    """Hold the writer until the gate is opened."""
    gate = Gate()
    nursery.start_soon(store._writer.jobs.call, gate.hold)
    await gate.wait_reached()
    yield gate
    gate.open()


async def wait_queued(store: SqliteStore, count: int) -> None:
    with trio.fail_after(30):
        while store.queued < count:
            await trio.lowlevel.checkpoint()


async def test_what_waits_together_is_committed_together(file: SqliteFile) -> None:
    groups: list[tuple[float, int, int]] = []
    store = await SqliteStore.open(
        file, on_commit=lambda time, count, wal: groups.append((time, count, wal))
    )
    gate = Gate()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(store._writer.jobs.call, gate.hold)
        await gate.wait_reached()
        groups.clear()
        for number in range(20):
            nursery.start_soon(store.commit, accepting(f"m{number}"))
        await wait_queued(store, 20)
        gate.open()
    assert [count for _, count, _ in groups] == [1, 20]
    assert all(seconds > 0 for seconds, _, _ in groups)
    assert groups[-1][2] > 0
    assert len(await names_unsettled(store)) == 20
    await store.aclose()


async def test_a_group_is_one_also_when_some_of_it_are_to_blame(
    file: SqliteFile,
) -> None:
    groups: list[int] = []
    store = await SqliteStore.open(
        file, on_commit=lambda _, count, _wal: groups.append(count)
    )
    told: list[object] = []
    gate = Gate()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(store._writer.jobs.call, gate.hold)
        await gate.wait_reached()
        groups.clear()
        for names in (("m1",), ("m2", "m1"), ("m3",), ("m3",), ("m2",)):
            store.submit(accepting(*names), told.append)
        gate.open()
    with trio.fail_after(30):
        while len(told) < 5:
            await trio.lowlevel.checkpoint()
    assert groups == [1, 5]
    assert [type(each) for each in told] == [
        *(Committed, DuplicateError, Committed, DuplicateError, Committed)
    ]
    assert await names_unsettled(store) == ["m1", "m3", "m2"]
    await store.aclose()


async def test_a_full_queue_says_overloaded_and_writes_nothing(
    store: SqliteStore, held: Gate, nursery: trio.Nursery
) -> None:
    for number in range(20):
        nursery.start_soon(store.commit, accepting(f"m{number}"))
    await wait_queued(store, 20)
    with pytest.raises(StoreUnavailableError, match="overloaded"):
        await store.commit(accepting("late"))
    held.open()
    with trio.fail_after(30):
        while len(await names_unsettled(store)) < 20:
            await trio.lowlevel.checkpoint()
    await store.commit(accepting("later"))
    assert (await names_unsettled(store))[-1] == "later"


async def test_a_queue_full_of_bytes_says_overloaded(
    store: SqliteStore, held: Gate, nursery: trio.Nursery
) -> None:
    def large(stream: str) -> Commit:
        return Commit(at=NOW, appends=(events(stream, 0, body=bytes(600)),))

    nursery.start_soon(store.commit, large("a"))
    await wait_queued(store, 1)
    with pytest.raises(StoreUnavailableError, match="overloaded"):
        await store.commit(large("b"))
    held.open()
    with trio.fail_after(30):
        while not await store.read("a"):
            await trio.lowlevel.checkpoint()
    await store.commit(large("b"))


async def test_a_commit_larger_than_the_queue_is_misuse(store: SqliteStore) -> None:
    with pytest.raises(MisuseError, match="1001 bytes"):
        await store.commit(Commit(at=NOW, appends=(events("a", 0, body=bytes(1001)),)))


async def test_a_commit_may_happen_after_its_caller_was_cancelled(
    store: SqliteStore, held: Gate
) -> None:
    with trio.move_on_after(0.01) as scope:
        await store.commit(accepting("m1"))
    assert scope.cancelled_caught
    held.open()
    with pytest.raises(DuplicateError):
        await store.commit(accepting("m1"))


async def test_a_read_that_nobody_waits_for_is_not_done(
    store: SqliteStore, nursery: trio.Nursery
) -> None:
    gate = Gate()
    done: list[str] = []
    nursery.start_soon(store._reader.jobs.call, gate.hold)
    await gate.wait_reached()
    with trio.move_on_after(0.01):
        await store._reader.jobs.call(lambda _: done.append("abandoned"))
    gate.open()
    await store._reader.jobs.call(lambda _: done.append("awaited"))
    assert done == ["awaited"]


async def test_slow_reads_do_not_hold_up_commits(
    store: SqliteStore, nursery: trio.Nursery
) -> None:
    gate = Gate()
    nursery.start_soon(store._reader.jobs.call, gate.hold)
    await gate.wait_reached()
    with trio.fail_after(30):
        await store.commit(accepting("m1"))
    gate.open()


async def test_the_reading_connection_cannot_write(store: SqliteStore) -> None:
    with pytest.raises(StoreUnavailableError, match="readonly"):
        await store._reader.jobs.call(sqlite_store.probe)


async def test_closing_leaves_no_thread_no_connection_and_no_wal(
    file: SqliteFile,
) -> None:
    # By themselves, not by their number: a thread of an earlier test may end meanwhile.
    before = set(threading.enumerate())
    store = await SqliteStore.open(file)
    await store.commit(accepting("m1"))
    assert len(set(threading.enumerate()) - before) == 2
    await store.aclose()
    assert not set(threading.enumerate()) - before
    assert not pykka.ActorRegistry.get_all()
    left = {entry.name for entry in await trio.Path(file.path.parent).iterdir()}
    assert left == {"callboard.db", "callboard.db.lock"}


async def test_closing_finishes_what_was_asked_for_before(
    file: SqliteFile, nursery: trio.Nursery
) -> None:
    store = await SqliteStore.open(file)
    gate = Gate()
    nursery.start_soon(store._writer.jobs.call, gate.hold)
    await gate.wait_reached()
    for number in range(10):
        nursery.start_soon(store.commit, accepting(f"m{number}"))
    await wait_queued(store, 10)
    nursery.start_soon(store.aclose)
    await trio.testing.wait_all_tasks_blocked()
    with pytest.raises(StoreUnavailableError, match="closed"):
        await store.commit(accepting("late"))
    gate.open()
    await store.aclose()
    again = await SqliteStore.open(file)
    assert len(await names_unsettled(again)) == 10
    await again.aclose()


async def test_closing_is_not_cut_short_by_cancellation(file: SqliteFile) -> None:
    before = set(threading.enumerate())
    with trio.CancelScope() as scope:
        store = await SqliteStore.open(file)
        await store.commit(accepting("m1"))
        scope.cancel()
        await store.aclose()
    assert not set(threading.enumerate()) - before


async def test_opening_that_is_cancelled_leaves_nothing_open(file: SqliteFile) -> None:
    before = set(threading.enumerate())
    with trio.CancelScope() as scope:
        scope.cancel()
        await SqliteStore.open(file)
    assert scope.cancelled_caught
    assert not set(threading.enumerate()) - before
    store = await SqliteStore.open(file)
    await store.aclose()


async def test_opening_that_is_cancelled_half_way_closes_what_it_opened(
    file: SqliteFile,
) -> None:
    before = set(threading.enumerate())
    gate = Gate()
    slow = SqliteFile(file.path, file.options, migrations=(gate.hold, *MIGRATIONS))
    async with trio.open_nursery() as nursery:
        nursery.start_soon(SqliteStore.open, slow)
        await gate.wait_reached()
        nursery.cancel_scope.cancel()
        gate.open()
    assert not set(threading.enumerate()) - before
    store = await SqliteStore.open(slow)
    await store.aclose()


async def test_a_thread_stopped_from_outside_leaves_nobody_waiting(
    store: SqliteStore,
) -> None:
    await store.commit(accepting("m1"))
    for ref in pykka.ActorRegistry.get_all():
        ref.stop(block=False)
    with trio.fail_after(30):
        while not (store._writer.jobs.death and store._reader.jobs.death):
            await trio.lowlevel.checkpoint()
        for call in (lambda: store.commit(accepting("m2")), store.counts):
            with pytest.raises(StoreUnavailableError, match="stopped from outside"):
                await call()
    assert store.needs_reopening
    assert not store.healthy


async def test_a_disk_that_does_not_answer_cannot_hold_up_closing(
    file: SqliteFile, nursery: trio.Nursery
) -> None:
    store = await SqliteStore.open(file)
    gate = Gate()
    nursery.start_soon(store._writer.jobs.call, gate.hold)
    await gate.wait_reached()
    with pytest.raises(StoreUnavailableError, match="does not answer"):
        await store.aclose()
    gate.open()
    await store.aclose()


def test_a_thread_may_finish_after_its_trio_run(file: SqliteFile) -> None:
    async def make_queue() -> JobQueue:
        return JobQueue(1, 1, lambda: None)

    queue = trio.run(make_queue)
    queue.give_back(())
    assert file.options.max_queued == 20


@pytest.mark.parametrize(
    ("sql", "given"),
    [
        (sql_rows.LAST, ("a",)),
        (sql_reads.READ, ("a", 0, 1)),
        (sql_reads.UNSETTLED, (0, 1)),
        (sql_reads.UNDELIVERED_OF, ("c", 0, 1)),
        (sql_reads.SNAPSHOT, ("a",)),
        (sql_reads.MESSAGE_OF, ("c", "p")),
        (sql_reads.CORRELATED, ("m",)),
        (sql_reads.RECORDS, ("audit", 9, 1)),
        (sql_reads.RECORDS_OF, ("audit", "anna", 9, 1)),
        (sql_rows.CLAIM, (1, NOW, "m")),
        (sql_rows.DEFER, (1, NOW, "", NOW, "m")),
        (sql_rows.ATTEMPT, (1, "d")),
        (sql_rows.NOT_SAID, ("", "d")),
        (sql_rows.SETTLE, ("dead", "", NOW, "m")),
        (sql_rows.RECEIVE, ("dead", "", 1, NOW, "d")),
        (sql_rows.OLD_MESSAGES, (NOW, 1)),
        (sql_rows.FORGET_EVENTS, ("m",)),
        (sql_rows.FORGET_MESSAGE, ("m",)),
        (sql_rows.PRUNE_OUTBOX, (NOW, 1)),
        (sql_rows.PRUNE_RECORDS, ("audit", NOW, 1)),
        (sql_reads.COUNT, ()),
    ],
)
def test_no_call_reads_a_whole_table(
    file: SqliteFile, sql: str, given: tuple[object, ...]
) -> None:
    db = file.open_writer()
    plan = [str(row[3]) for row in db.execute(f"EXPLAIN QUERY PLAN {sql}", given)]
    db.close()
    assert plan
    scans = [step for step in plan if step.startswith("SCAN") and "USING" not in step]
    assert not scans, plan
    assert not any("TEMP B-TREE FOR ORDER" in step for step in plan), plan


async def test_a_message_is_known_to_the_next_process(file: SqliteFile) -> None:
    first = await SqliteStore.open(file)
    await first.commit(accepting("m1"))
    await first.aclose()
    second = await SqliteStore.open(file)
    (known,) = accepting("m1").accepts
    again = msgspec.structs.replace(known, id="another id for the same message")
    with pytest.raises(DuplicateError):
        await second.commit(Commit(at=NOW, accepts=(again,)))
    await second.aclose()
