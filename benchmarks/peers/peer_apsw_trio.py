"""The least that stores rows for trio tasks: a thread with SQLite, and those who wait.

Nothing is checked, bounded or reported; a task hands a row to the thread, which stores
all that wait in one transaction, and wakes them in one hop. What this takes beyond
`peer_apsw.py` is the price of tasks that wait, which every store of theirs pays.
"""

from __future__ import annotations

import tempfile
import threading
from pathlib import Path
from queue import SimpleQueue
from time import process_time
from typing import TYPE_CHECKING

import trio

from benchmarks.peers.peer_apsw import row, store
from benchmarks.stopwatch import now, rate, spent
from benchmarks.store.bench_commit import BODY_BYTES, WRITERS
from runtime.sqlite.file import SqliteFile

if TYPE_CHECKING:
    from benchmarks.figure import Figure, Plan, Round
    from benchmarks.peers.peer_apsw import Row

    Jobs = SimpleQueue[tuple[trio.lowlevel.Task, Row] | None]

SHARE = 1.0


def commit(plan: Plan) -> list[Figure]:
    """Let each writer store a tenth of `size` messages."""
    figures: list[Figure] = []
    for writers in WRITERS:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "bench.db"
            figures += trio.run(write_all, path, writers, plan)
    return figures


async def write_all(path: Path, writers: int, plan: Plan) -> list[Figure]:
    """Let the writers work side by side on a new database."""
    body, share = plan.dice().randbytes(BODY_BYTES), plan.size // 10
    jobs: Jobs = SimpleQueue()
    token = trio.lowlevel.current_trio_token()
    thread = threading.Thread(target=work, args=(path, jobs, token))
    thread.start()
    begin, used = now(), process_time()
    async with trio.open_nursery() as nursery:
        for writer in range(writers):
            nursery.start_soon(write, jobs, writer, share, body)
    stored = rate(share * writers, begin, "commits", f"rate, {writers}")
    used = process_time() - used
    jobs.put(None)
    thread.join()
    return [stored, spent(used, share * writers, "commit", f", {writers}")]


async def write(jobs: Jobs, writer: int, count: int, body: bytes) -> None:
    """Store messages one after the other."""
    for number in range(count):
        jobs.put((trio.lowlevel.current_task(), row(writer, number, body)))
        await trio.lowlevel.wait_task_rescheduled(stay)


def stay(_: object) -> trio.lowlevel.Abort:
    """Wait on, also when cancelled."""
    return trio.lowlevel.Abort.FAILED


def work(path: Path, jobs: Jobs, token: trio.lowlevel.TrioToken) -> None:
    """Store what comes, until nothing will any more."""
    db = SqliteFile(path).open_writer()
    while (first := jobs.get()) is not None:
        taken = [first]
        while not jobs.empty() and (job := jobs.get()) is not None:
            taken.append(job)
        store(db, [stored for _, stored in taken])
        token.run_sync_soon(wake, [task for task, _ in taken])
    db.close()


def wake(tasks: list[trio.lowlevel.Task]) -> None:
    """Let those who wait go on."""
    for task in tasks:
        trio.lowlevel.reschedule(task)


ROUNDS: dict[str, Round] = {"commit": commit}
