"""Proves that what may wait keeps its place, and is never left behind."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import apsw
import pytest
import trio

from runtime.errors import MisuseError, StoreUnavailableError
from runtime.sqlite.file import SqliteFile
from runtime.sqlite.store import SqliteStore, transact
from runtime.store.facts import MAX_FACT_ROWS, ForgetFacts, refuse_fact_misuse
from runtime.store.jobs import LINGER, Job, JobQueue, Told
from runtime.store.rows import Commit


def do_nothing(_: object) -> None:
    """Stand for some work, and for who is told of it."""


def make_queue(wake: Callable[[], None] = lambda: None) -> JobQueue:
    async def make() -> JobQueue:
        return JobQueue(9, 99, wake)

    return trio.run(make)


def sizes(jobs: list[Job]) -> list[int]:
    return [job.size for job in jobs]


def test_what_may_wait_wakes_nobody_who_is_awake() -> None:
    wakes: list[None] = []
    queue = make_queue(lambda: wakes.append(None))
    queue.submit(do_nothing, do_nothing, 1, may_wait=True)
    begun = time.perf_counter()
    assert sizes(queue.take(9, patience=60.0)) == [1]
    assert time.perf_counter() - begun >= LINGER / 2
    queue.submit(do_nothing, do_nothing, 2, may_wait=True)
    queue.submit(do_nothing, do_nothing, 3)
    assert sizes(queue.take(9, patience=60.0)) == [2, 3]
    assert len(wakes) == 1
    assert queue.take(9, patience=LINGER) == []
    queue.submit(do_nothing, do_nothing, 4, may_wait=True)
    assert len(wakes) == 2
    queue.close("closed")
    assert sizes(queue.take(9, patience=60.0)) == [4]


def test_what_may_wait_is_heard_by_a_thread_that_dozes() -> None:
    queue = make_queue()
    queue.submit(do_nothing, do_nothing, 1)
    assert sizes(queue.take(9, patience=60.0)) == [1]
    taken: list[Job] = []
    thread = threading.Thread(target=lambda: taken.extend(queue.take(9, 60.0)))
    thread.start()
    while not queue._is_dozing:
        pass
    queue.submit(do_nothing, do_nothing, 2, may_wait=True)
    thread.join(30.0)
    assert sizes(taken) == [2]


def test_what_is_more_than_a_group_is_taken_right_after_it() -> None:
    queue = make_queue()
    for size in (1, 2, 3, 4, 5):
        queue.submit(do_nothing, do_nothing, size)
    taken = [sizes(queue.take(2, patience=60.0)) for _ in range(3)]
    assert taken == [[1, 2], [3, 4], [5]]


async def test_a_caller_that_was_refused_is_not_woken_where_it_waits_next() -> None:
    # The thread dies as soon as it is woken: it has seen the job by then.
    queue = JobQueue(9, 99, lambda: queue.give_up(RuntimeError("a bug"), ()))
    with pytest.raises(StoreUnavailableError, match="a bug"):
        await queue.call(do_nothing)
    later = trio.Event()
    trio.lowlevel.current_trio_token().run_sync_soon(later.set)
    await later.wait()
    assert later.is_set()


def test_what_sqlite_says_of_one_job_is_that_jobs_alone() -> None:
    db: Any = apsw.Connection(":memory:")
    db.execute("CREATE TABLE row (id)")

    def told(words: str) -> Job:
        def work(db: Any) -> object:
            return db.execute(words)

        return Job(work)

    right = "INSERT INTO row VALUES (1)"
    jobs = [told(right), told("INSERT INTO nowhere VALUES (2)"), told(right)]
    assert transact(db, jobs)
    assert [type(job.error) for job in jobs] == [type(None), MisuseError, type(None)]
    assert list(db.execute("SELECT id FROM row")) == [(1,), (1,)]
    db.close()


def test_no_more_is_forgotten_at_once_than_can_be_listed() -> None:
    ids = tuple(str(number) for number in range(MAX_FACT_ROWS + 1))
    refuse_fact_misuse([ForgetFacts(agent="anna", scopes=("ben",), ids=ids[1:])])
    with pytest.raises(MisuseError, match="filters are more"):
        refuse_fact_misuse([ForgetFacts(agent="anna", scopes=("ben",), ids=ids)])


def test_one_callers_mistake_does_not_leave_the_others_waiting() -> None:
    told: list[object] = []
    told_wrong = Told(do_nothing, done=lambda _: divmod(1, 0))
    told_right = Told(do_nothing, done=told.append)
    for job in (told_wrong, told_right):
        job.error = StoreUnavailableError("closed")
    JobQueue._arrive((told_wrong, told_right), lambda: divmod(1, 0))
    assert told == [told_right.error]


async def test_a_read_that_met_a_lock_refuses_no_commits(tmp_path: Path) -> None:
    def meet_a_lock(_: object) -> None:
        raise apsw.BusyError

    store = await SqliteStore.open(SqliteFile(tmp_path / "x.db"))
    try:
        with pytest.raises(StoreUnavailableError):
            await store._reader.jobs.call(meet_a_lock)
        await store.commit(Commit(at=1.0))
    finally:
        await store.aclose()
