"""Commit: messages stored in SQLite, each acknowledged when it is on the disk.

One, ten and a hundred writers, each waiting for its acknowledgement before it
writes again. `synchronous` is `full`. The disk is the one of the temporary folder:
set `TMPDIR` to measure another.
"""

from __future__ import annotations

import tempfile
from pathlib import Path
from time import process_time

import trio

from benchmarks.figure import Benchmark, Figure, Plan
from benchmarks.stopwatch import now, now_ns, rate, spans, spent
from runtime.sqlite.file import SqliteFile
from runtime.sqlite.store import SqliteStore
from runtime.store.rows import PARTS, Accept, Commit

WRITERS = (1, 10, 100)
BODY_BYTES = 300


def measure(plan: Plan) -> list[Figure]:
    """Let each writer commit a tenth of `size` messages."""
    figures: list[Figure] = []
    for writers in WRITERS:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "bench.db"
            figures += trio.run(commit, path, writers, plan)
    return figures


async def commit(path: Path, writers: int, plan: Plan) -> list[Figure]:
    """Let the writers work side by side on a new database."""
    body = plan.dice().randbytes(BODY_BYTES)
    share = plan.size // 10
    taken: list[int] = []
    store = await SqliteStore.open(SqliteFile(path))
    try:
        await write(store, body, "warm", max(1, share // 10), [])
        begin, used = now(), process_time()
        async with trio.open_nursery() as nursery:
            for writer in range(writers):
                nursery.start_soon(write, store, body, str(writer), share, taken)
        acknowledged = rate(len(taken), begin, "commits", f"rate, {writers}")
        used = process_time() - used
    finally:
        await store.aclose()
    processor = spent(used, len(taken), "commit", f", {writers}")
    return [acknowledged, processor, *spans(taken, f", {writers}")]


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
