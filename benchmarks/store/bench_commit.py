"""Commit: messages stored in SQLite, each acknowledged when it is on the disk.

One, ten and a hundred writers, each waiting for its acknowledgement before it
writes again. `synchronous` is `full`. The disk is the one of the temporary folder:
set `TMPDIR` to measure another.
"""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import trio

from benchmarks.figure import Benchmark, Figure, Plan
from benchmarks.stopwatch import Lap, now_ns, spans
from runtime.sqlite.file import SqliteFile
from runtime.sqlite.store import SqliteStore
from runtime.store.rows import PARTS, Accept, Commit

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable

    Work = Callable[[Path, int, Plan], Awaitable[list[Figure]]]

WRITERS = (1, 10, 100)
BODY_BYTES = 300


def measure(plan: Plan) -> list[Figure]:
    """Let each writer commit a tenth of `size` messages."""
    return on_new_files(commit, WRITERS, plan)


def on_new_files(work: Work, writers: Iterable[int], plan: Plan) -> list[Figure]:
    """Run `work` with each number of writers, on a new database each."""
    figures: list[Figure] = []
    for each in writers:
        with tempfile.TemporaryDirectory() as folder:
            figures += trio.run(work, Path(folder) / "bench.db", each, plan)
    return figures


async def commit(path: Path, writers: int, plan: Plan) -> list[Figure]:
    """Let the writers work side by side on a new database."""
    body = plan.dice().randbytes(BODY_BYTES)
    share = plan.size // 10
    taken: list[int] = []
    store = await SqliteStore.open(SqliteFile(path))
    try:
        await write(store, body, "warm", max(1, share // 10), [])
        lap = Lap()
        async with trio.open_nursery() as nursery:
            for writer in range(writers):
                nursery.start_soon(write, store, body, str(writer), share, taken)
        acknowledged = lap.figures(len(taken), "commit", f", {writers}")
    finally:
        await store.aclose()
    return [*acknowledged, *spans(taken, f", {writers}")]


async def write(
    store: SqliteStore, body: bytes, writer: str, count: int, taken: list[int]
) -> None:
    """Commit messages one after the other, and note how long each took."""
    for number in range(count):
        name = f"{writer}-{number}"
        accept = Accept(
            id=name,
            connector="bench",
            platform_id=name,
            part=number % PARTS,
            stream=f"session/{writer}",
            body=body,
            at=float(number),
        )
        begin = now_ns()
        await store.commit(Commit(at=float(number), accepts=(accept,)))
        taken.append(now_ns() - begin)


BENCHMARK = Benchmark(
    name="commit",
    about="durable commits by 1, 10 and 100 writers",
    full=Plan(5_000, 1),
    quick=Plan(20, 1),
    measure=measure,
)
