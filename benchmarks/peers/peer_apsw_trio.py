"""The least that stores rows for trio tasks: a thread with SQLite, and those who wait.

Nothing is checked, bounded or reported; a task hands a row to the thread, which stores
all that wait in one transaction, and wakes them in one hop. What this takes beyond
`peer_apsw.py` is the price of tasks that wait, which every store of theirs pays.
"""

from __future__ import annotations

import threading
from queue import SimpleQueue
from typing import TYPE_CHECKING

import trio

from benchmarks.peers.peer_apsw import row, store
from benchmarks.stopwatch import Lap
from benchmarks.store.bench_commit import BODY_BYTES, WRITERS, on_new_files
from runtime.sqlite.file import SqliteFile

if TYPE_CHECKING:
    from pathlib import Path

    import apsw

    from benchmarks.figure import Figure, Plan, Round
    from benchmarks.peers.peer_apsw import Row

    Jobs = SimpleQueue[tuple[trio.lowlevel.Task, Row] | None]

SHARE = 1.0


def commit(plan: Plan) -> list[Figure]:
    """Let each writer store a tenth of `size` messages."""
    return on_new_files(write_all, WRITERS, plan)


async def write_all(path: Path, writers: int, plan: Plan) -> list[Figure]:
    """Let the writers work side by side on a new database."""
    body, share = plan.dice().randbytes(BODY_BYTES), plan.size // 10
    jobs: Jobs = SimpleQueue()
    token = trio.lowlevel.current_trio_token()
    db = SqliteFile(path).open_writer()
    thread = threading.Thread(target=work, args=(db, jobs, token))
    thread.start()
    lap = Lap()
    async with trio.open_nursery() as nursery:
        for writer in range(writers):
            nursery.start_soon(write, jobs, writer, share, body)
    stored = lap.figures(share * writers, "commit", f", {writers}")
    jobs.put(None)
    thread.join()
    db.close()
    return stored


async def write(jobs: Jobs, writer: int, count: int, body: bytes) -> None:
    """Store messages one after the other."""
    for number in range(count):
        jobs.put((trio.lowlevel.current_task(), row(writer, number, body)))
        await trio.lowlevel.wait_task_rescheduled(stay)


def stay(_: object) -> trio.lowlevel.Abort:
    """Wait on, also when cancelled."""
    return trio.lowlevel.Abort.FAILED


def work(db: apsw.Connection, jobs: Jobs, token: trio.lowlevel.TrioToken) -> None:
    """Store what comes, until nothing will any more."""
    while (first := jobs.get()) is not None:
        taken = [first]
        while not jobs.empty() and (job := jobs.get()) is not None:
            taken.append(job)
        store(db, [stored for _, stored in taken])
        token.run_sync_soon(wake, [task for task, _ in taken])


def wake(tasks: list[trio.lowlevel.Task]) -> None:
    """Let those who wait go on."""
    for task in tasks:
        trio.lowlevel.reschedule(task)


ROUNDS: dict[str, Round] = {"commit": commit}
