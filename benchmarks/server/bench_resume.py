"""Resume: `callboard serve` is killed with ten thousand messages unanswered.

Timed from the start of the next process, which is killed in turn as soon as it has
answered one, again and again, each time with all of them unanswered. That the
messages are all there is checked here; that none is lost or answered twice is for
the tests to prove.
"""

from __future__ import annotations

import asyncio
import shutil
import sqlite3
import tempfile
from contextlib import closing
from pathlib import Path
from time import sleep

from benchmarks.arithmetic import percentile
from benchmarks.figure import Benchmark, Figure, Plan
from benchmarks.stage.provider import provided
from benchmarks.stage.serving import AGENT, DATABASE, served, with_provider
from benchmarks.stage.visitors import Visit, place_of, request
from benchmarks.stopwatch import now

RESTARTS = 20
"""Most in one round."""

ROOMY = """
[limits]
max_open = 20_000
"""
"""Twice as many messages as are left may wait."""

AT_ONCE = 250
"""Connections; below what a server takes."""

NEVER = 3_600.0
LOOK_AGAIN = 0.002
"""Seconds between two looks into the database."""

PATIENCE = 60.0
"""Seconds after which a server that stores or answers nothing counts as broken."""


def measure(plan: Plan) -> list[Figure]:
    """Leave `size` messages unanswered, kill; start again and again."""
    ready: list[float] = []
    answered: list[float] = []
    with tempfile.TemporaryDirectory() as folder:
        left, home = Path(folder, "left"), Path(folder, "home")
        left.mkdir()
        with (
            provided(NEVER) as base_url,
            served(with_provider(base_url) + ROOMY, left) as server,
        ):
            asyncio.run(leave(server.address, left, plan.size))
        with provided(0.0) as base_url:
            for _ in range(min(RESTARTS, plan.size // 5)):
                shutil.copytree(left, home, ignore=shutil.ignore_patterns("*.socket"))
                one, other = resume(home, with_provider(base_url) + ROOMY)
                ready.append(one)
                answered.append(other)
                assert count_rows(home, "TRUE") == plan.size
                shutil.rmtree(home)
    return [
        Figure("ready, p50", percentile(ready, 0.5), "s"),
        Figure("ready, worst", max(ready), "s"),
        Figure("first answer, p50", percentile(answered, 0.5), "s"),
        Figure("first answer, worst", max(answered), "s"),
    ]


def resume(home: Path, settings: str) -> tuple[float, float]:
    """Start a server; give the seconds until it was ready, and until an answer."""
    begin = now()
    with served(settings, home) as server:
        wait_rows(home, "settled_at IS NOT NULL", 1)
        return server.seconds, now() - begin


async def leave(address: str, home: Path, size: int) -> None:
    """Write messages, each in a conversation of its own, and go when all are stored."""
    host, port = place_of(address)
    plan = Visit(address, AGENT, size, 1, "left", "")
    for first in range(0, size, AT_ONCE):
        numbers = range(first, min(first + AT_ONCE, size))
        writers: list[asyncio.StreamWriter] = []
        for number in numbers:
            _, writer = await asyncio.open_connection(host, port)
            writer.write(request(plan, number, 0))
            writers.append(writer)
        await asyncio.to_thread(wait_rows, home, "TRUE", numbers.stop)
        for writer in writers:
            writer.close()


def wait_rows(home: Path, which: str, count: int) -> None:
    """Wait until the inbox holds so many rows of a kind."""
    begin = now()
    while count_rows(home, which) < count:
        if now() - begin > PATIENCE:
            raise RuntimeError(f"no {count} messages {which} within {PATIENCE} s")
        sleep(LOOK_AGAIN)


def count_rows(home: Path, which: str) -> int:
    """Count rows of the inbox, as anybody can who reads the file."""
    address = f"file:{home / DATABASE}?mode=ro"
    with closing(sqlite3.connect(address, uri=True)) as db:
        count: int = db.execute(
            f"SELECT count(*) FROM inbox WHERE {which}"  # noqa: S608  words of ours
        ).fetchone()[0]
    return count


BENCHMARK = Benchmark(
    name="resume",
    about="kill -9 with 10,000 messages unanswered, until ready and the first answer",
    full=Plan(10_000, 1),
    quick=Plan(10, 1),
    measure=measure,
    warms_up=False,
)
