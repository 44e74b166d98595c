"""Resume: `callboard serve` is killed with a thousand messages unanswered.

Timed from the start of the next process. That the messages are all there is checked
here; that none is lost or answered twice is for the tests to prove.
"""

from __future__ import annotations

import asyncio
import sqlite3
import tempfile
from contextlib import closing
from pathlib import Path
from time import sleep

from benchmarks.figure import Benchmark, Figure, Plan
from benchmarks.provider import provided
from benchmarks.serving import AGENT, DATABASE, served, with_provider
from benchmarks.stopwatch import now
from benchmarks.visitors import Visit, place_of, request

AT_ONCE = 250
"""Connections; below what a server takes."""

NEVER = 3_600.0
LOOK_AGAIN = 0.002
"""Seconds between two looks into the database."""

PATIENCE = 60.0
"""Seconds after which a server that stores or answers nothing counts as broken."""


def measure(plan: Plan) -> list[Figure]:
    """Leave `size` messages unanswered, kill, start again, wait for an answer."""
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder)
        with (
            provided(NEVER) as base_url,
            served(with_provider(base_url), home) as server,
        ):
            asyncio.run(leave(server.address, home, plan.size))
        with provided(0.0) as base_url:
            begin = now()
            with served(with_provider(base_url), home) as server:
                wait_rows(home, "settled_at IS NOT NULL", 1)
                answered = now() - begin
            assert count_rows(home, "TRUE") == plan.size
    return [
        Figure("ready", server.seconds, "s"),
        Figure("first answer", answered, "s"),
    ]


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
    about="kill -9 with 1,000 messages unanswered, until ready and the first answer",
    full=Plan(1_000, 1),
    quick=Plan(10, 1),
    measure=measure,
    warms_up=False,
)
