"""Recall: a whole chat message against 10,000, 100,000 and 1,000,000 facts.

A thousand people (a hundred of them with the smallest number) tell twelve words each
time, as often used as words are; then they ask forty words at a time, and each is
answered by what he told himself. `words` is the store's search by words, `both` with
vectors of 256 dimensions. What is measured is the await on the trio thread.
"""

from __future__ import annotations

import bisect
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import trio

from actors.rules.text.similarity import question_words, words_of
from benchmarks.figure import Benchmark, Figure, Plan
from benchmarks.stopwatch import now, now_ns, rate, spans
from runtime.sqlite.file import SqliteFile
from runtime.sqlite.store import SqliteStore
from runtime.store.facts import FactSearch, PutVector, SaveFact
from runtime.store.rows import Commit

if TYPE_CHECKING:
    import random

VOCABULARY = 30_000
FACT_WORDS = 12
QUESTION_WORDS = 40
DIMENSIONS = 256
AT_ONCE = 500
QUESTIONS = 300
RESTING = 3.0
"""Seconds for the database to take in what was written; people do not tell a million
things and then ask."""

PER_PERSON = 1_000
"""Facts of one person; at least ten people."""


class Talk:
    """Words as often as people use them: the n-th most common one 1/n as often.

    Args:
        dice: what decides.
    """

    def __init__(self, dice: random.Random) -> None:
        self._dice = dice
        self._names = [f"w{dice.randrange(16**5):05x}" for _ in range(VOCABULARY)]
        self._often: list[float] = []
        total = 0.0
        for rank in range(VOCABULARY):
            total += 1 / (rank + 2.7)
            self._often.append(total)

    def text(self, count: int) -> str:
        """Say so many words."""
        top = self._often[-1]
        chosen = (
            self._names[bisect.bisect(self._often, self._dice.random() * top)]
            for _ in range(count)
        )
        return " ".join(chosen)


def measure(plan: Plan) -> list[Figure]:
    """Ask over a hundredth, a tenth, and all of `size` facts."""
    figures: list[Figure] = []
    for size in (plan.size // 100, plan.size // 10, plan.size):
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "bench.db"
            figures += trio.run(recall, path, size, plan)
    return figures


async def recall(path: Path, size: int, plan: Plan) -> list[Figure]:
    """Fill a new database with so many facts, then ask."""
    dice = plan.dice()
    talk = Talk(dice)
    people = max(10, size // PER_PERSON)
    store = await SqliteStore.open(SqliteFile(path))
    try:
        begin = now()
        for first in range(0, size, AT_ONCE):
            await tell(
                store, talk, dice, range(first, min(size, first + AT_ONCE)), people
            )
        written = rate(size, begin, "facts", f"written, {size}")
        await trio.sleep(RESTING)
        by_words = [await ask(store, talk, dice, people, b"") for _ in range(QUESTIONS)]
        vector = dice.randbytes(DIMENSIONS)
        by_both = [
            await ask(store, talk, dice, people, vector) for _ in range(QUESTIONS)
        ]
    finally:
        await store.aclose()
    return [
        written,
        *spans(by_words, f", words, {size}"),
        *spans(by_both, f", both, {size}"),
    ]


async def tell(
    store: SqliteStore, talk: Talk, dice: random.Random, numbers: range, people: int
) -> None:
    """Store some facts and their vectors in one commit."""
    changes: list[SaveFact | PutVector] = []
    for number in numbers:
        scope, name = f"person:bench/{dice.randrange(people)}", f"f{number}"
        text = talk.text(FACT_WORDS)
        changes += (
            SaveFact(
                id=name,
                agent="bot",
                scope=scope,
                part=0,
                kind="fact",
                text=text,
                words=words_of(text),
                wants_vector=True,
            ),
            PutVector(
                agent="bot",
                scope=scope,
                id=name,
                space="bench",
                vector=dice.randbytes(DIMENSIONS),
            ),
        )
    await store.commit(Commit(at=float(numbers.start), facts=tuple(changes)))


async def ask(
    store: SqliteStore, talk: Talk, dice: random.Random, people: int, vector: bytes
) -> int:
    """Ask one question; give the nanoseconds it took."""
    text = talk.text(QUESTION_WORDS)
    begin = now_ns()
    search = FactSearch(
        agent="bot",
        scopes=(f"person:bench/{dice.randrange(people)}", "agent"),
        kinds=("fact", "summary", "log"),
        words=question_words(text),
        space="bench",
        vector=vector,
        now=0.0,
        limit=30,
    )
    await store.facts.search(search)
    return now_ns() - begin


BENCHMARK = Benchmark(
    name="recall",
    about="a message's words and vector against up to a million facts",
    full=Plan(1_000_000, 1),
    quick=Plan(2_000, 1),
    measure=measure,
    warms_up=False,
)
