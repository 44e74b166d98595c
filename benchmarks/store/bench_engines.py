"""One company on SQLite and on PostgreSQL: the line of `bench_line`, taking turns.

The server is Debian's, on the same machine over a Unix socket, and syncs each commit,
as SQLite does. What it did it tells itself: `pg_stat_statements`, and where its log of
writes stands. Processor time is that of this process, and that of the server by itself.
"""

from __future__ import annotations

import os
import tempfile
from contextlib import closing
from functools import partial
from pathlib import Path
from time import process_time
from typing import TYPE_CHECKING, Any

import trio

from benchmarks.company.bench_line import converse
from benchmarks.figure import Benchmark, Figure, Plan
from runtime.sqlite.file import SqliteFile
from runtime.sqlite.store import SqliteStore
from runtime.telemetry.logs import writing

if TYPE_CHECKING:
    from collections.abc import Callable

    from benchmarks.company.bench_line import Opens
    from runtime.store.port import Store
    from tests.support.store.postgresql import ServerProcess

CHATS = (1, 16, 64)

EXTENSION = "pg_stat_statements"
LOOK = """SELECT (SELECT sum(calls) FROM pg_stat_statements),
    pg_wal_lsn_diff(pg_current_wal_insert_lsn(), '0/0'),
    (SELECT wal_sync FROM pg_stat_wal)"""


class Transactions:
    """Opens a store and counts its transactions.

    Args:
        inner: opens it.
    """

    def __init__(self, inner: Opens) -> None:
        self._inner = inner
        self.count = 0

    async def open(self, *, on_commit: Callable[[float, int, int], None]) -> Store:
        """Open it."""

        def counted(seconds: float, commits: int, wal_bytes: int) -> None:
            self.count += 1
            on_commit(seconds, commits, wal_bytes)

        return await self._inner(on_commit=counted)


def measure(plan: Plan) -> list[Figure]:
    """Let one, sixteen and sixty-four people write on each engine."""
    # Why here: only who measures this has the extra and a server.
    from runtime.postgresql.server import PostgresqlServer  # noqa: PLC0415
    from runtime.postgresql.store import PostgresqlStore  # noqa: PLC0415
    from tests.support.store.postgresql import ServerProcess  # noqa: PLC0415

    figures: list[Figure] = []
    preload = f"shared_preload_libraries={EXTENSION}"
    server = ServerProcess("fsync=on", "autovacuum=on", preload)
    whole = PostgresqlServer(server.dsn("postgres"))
    try:
        with closing(whole.connect("benchmark")) as db:
            db.execute(f"CREATE EXTENSION {EXTENSION}".encode())
            for chats in CHATS:
                share = max(1, plan.size // max(chats, 8))
                with tempfile.TemporaryDirectory() as folder:
                    file = SqliteFile(Path(folder) / "line.db")
                    opens = partial(SqliteStore.open, file)
                    figures += one(opens, chats, share, f"SQLite, {chats}")
                db.execute(f"CREATE DATABASE line_{chats}".encode())
                place = PostgresqlServer(server.dsn(f"line_{chats}"))
                before = look(server, db)
                on_server = partial(PostgresqlStore.open, place)
                figures += one(on_server, chats, share, f"PostgreSQL, {chats}")
                after = look(server, db)
                told = [
                    (b - a) / (chats * share)
                    for a, b in zip(before, after, strict=True)
                ]
                figures += [
                    Figure(f"server's {name}, {chats}", value, unit)
                    for (name, unit), value in zip(LOOKED_AT, told, strict=True)
                    if value  # a short run takes less time than the system counts by
                ]
    finally:
        server.end()
    return figures


LOOKED_AT = (
    ("statements", "per message"),
    ("log of writes", "bytes per message"),
    ("syncs", "per message"),
    ("processor time", "ms per message"),
)


def one(opens: Opens, chats: int, share: int, name: str) -> list[Figure]:
    """Run one company; give its figures."""
    counting = Transactions(opens)
    with (
        Path(os.devnull).open("w", encoding="utf-8") as nowhere,
        writing(stream=nowhere),
    ):
        begin = process_time()
        answered, *spans = trio.run(converse, counting.open, chats, share)
        spent = (process_time() - begin) / (chats * share)
    return [
        Figure(f"rate, {name}", answered.value, answered.unit),
        *(
            Figure(f"{each.name.rpartition(',')[0]}, {name}", each.value, each.unit)
            for each in spans
            if each.name.startswith("p50")
        ),
        Figure(f"processor time, {name}", spent * 1000, "ms per message"),
        Figure(
            f"transactions, {name}", counting.count / (chats * share), "per message"
        ),
    ]


def look(server: ServerProcess, db: Any) -> tuple[float, ...]:  # noqa: ANN401
    """Say what a server has done so far."""
    row = db.execute(LOOK).fetchone()
    return (*(float(each) for each in row), server_time(server) * 1000)


def server_time(server: ServerProcess) -> float:
    """Give the seconds of processor time of a server and its sessions."""
    ticks = 0
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = stat.read_text().rpartition(")")[2].split()
        except OSError:
            continue
        is_it = int(stat.parent.name) == server.pid
        if is_it or int(fields[1]) == server.pid:
            ticks += sum(map(int, fields[11 : 15 if is_it else 13]))
    return ticks / os.sysconf("SC_CLK_TCK")


BENCHMARK = Benchmark(
    name="engines",
    about="the line on SQLite and on PostgreSQL; 1, 16 and 64 chats",
    full=Plan(3_200, 1),
    quick=Plan(16, 1),
    measure=measure,
)
