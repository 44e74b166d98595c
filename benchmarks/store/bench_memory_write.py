"""Memory write: facts with their words, each acknowledged when it is on the disk.

One and a hundred writers, each keeping one fact of twelve words and waiting for its
acknowledgement, as an answer's commit does; then all are forgotten, one by one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import trio

from actors.rules.text.similarity import words_of
from benchmarks.figure import Benchmark, Figure, Plan
from benchmarks.stopwatch import now, now_ns, rate, spans
from benchmarks.store.bench_commit import on_new_files
from benchmarks.store.bench_recall import FACT_WORDS, Talk
from runtime.sqlite.file import SqliteFile
from runtime.sqlite.store import SqliteStore
from runtime.store.facts import ForgetFacts, SaveFact
from runtime.store.rows import Commit

if TYPE_CHECKING:
    from pathlib import Path

WRITERS = (1, 100)


def measure(plan: Plan) -> list[Figure]:
    """Let the writers keep `size` facts together, on a new database each."""
    return on_new_files(write, WRITERS, plan)


async def write(path: Path, writers: int, plan: Plan) -> list[Figure]:
    """Keep facts, then forget them."""
    share = max(1, plan.size // writers // (10 if writers == 1 else 1))
    talk = Talk(plan.dice())
    taken: list[int] = []
    store = await SqliteStore.open(SqliteFile(path))
    try:
        begin = now()
        async with trio.open_nursery() as nursery:
            for writer in range(writers):
                nursery.start_soon(keep, store, talk, writer, share, taken)
        kept = rate(len(taken), begin, "facts", f"kept, {writers}")
        begin = now()
        async with trio.open_nursery() as nursery:
            for writer in range(writers):
                nursery.start_soon(forget, store, writer, share)
        gone = rate(share * writers, begin, "facts", f"forgotten, {writers}")
    finally:
        await store.aclose()
    return [kept, *spans(taken, f", {writers}"), gone]


async def keep(
    store: SqliteStore, talk: Talk, writer: int, count: int, taken: list[int]
) -> None:
    """Keep facts one after the other, and note how long each took."""
    for number in range(count):
        text = talk.text(FACT_WORDS)
        begin = now_ns()
        fact = SaveFact(
            id=f"{writer}-{number}",
            agent="bot",
            scope=f"person:bench/{writer}",
            part=0,
            kind="fact",
            text=text,
            words=words_of(text),
            wants_vector=True,
        )
        await store.commit(Commit(at=float(number), facts=(fact,)))
        taken.append(now_ns() - begin)


async def forget(store: SqliteStore, writer: int, count: int) -> None:
    """Forget facts one after the other."""
    for number in range(count):
        gone = ForgetFacts(
            agent="bot",
            scopes=(f"person:bench/{writer}",),
            ids=(f"{writer}-{number}",),
        )
        await store.commit(Commit(at=0.0, facts=(gone,)))


BENCHMARK = Benchmark(
    name="memory_write",
    about="durable facts by 1 and 100 writers, kept and forgotten",
    full=Plan(5_000, 1),
    quick=Plan(200, 1),
    measure=measure,
)
