"""SQLite by apsw alone: the rows that `commit` stores, one of each writer in a group.

One loop of transactions, with no thread, no queue and nobody who waits. Nothing that
stores these rows for tasks can be faster on the same disk.
"""

# apsw's stubs name `collections.abc.Buffer`, which Python 3.11 has not got yet:
# pyright: reportUnknownMemberType=false

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

from benchmarks.stopwatch import Lap
from benchmarks.store.bench_commit import BODY_BYTES, WRITERS
from runtime.sql.write import ACCEPT
from runtime.sqlite.file import SqliteFile
from runtime.store.rows import PARTS

if TYPE_CHECKING:
    from collections.abc import Iterable

    import apsw

    from benchmarks.figure import Figure, Plan, Round

SHARE = 1.0

Row = tuple[Any, ...]


def row(writer: int, number: int, body: bytes) -> Row:
    """Give the row that `commit` stores."""
    name = f"{writer}-{number}"
    key = (name, "bench", name, number % PARTS, 0, f"session/{writer}")
    return (*key, body, float(number), 5)


def store(db: apsw.Connection, rows: Iterable[Row]) -> None:
    """Store rows in one transaction."""
    db.execute("BEGIN IMMEDIATE")
    for each in rows:
        db.execute(ACCEPT, each)
    db.execute("COMMIT")


def commit(plan: Plan) -> list[Figure]:
    """Store a tenth of `size` messages of each writer."""
    return [figure for writers in WRITERS for figure in of(writers, plan)]


def of(writers: int, plan: Plan) -> list[Figure]:
    """Store the messages of so many writers."""
    body, share = plan.dice().randbytes(BODY_BYTES), plan.size // 10
    with tempfile.TemporaryDirectory() as folder:
        db = SqliteFile(Path(folder) / "bench.db").open_writer()
        lap = Lap()
        for number in range(share):
            store(db, [row(writer, number, body) for writer in range(writers)])
        stored = lap.figures(share * writers, "commit", f", {writers}")
        db.close()
    return stored


ROUNDS: dict[str, Round] = {"commit": commit}
