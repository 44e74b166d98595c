"""Proves that pgvector changes nothing but the time that a search takes."""

from __future__ import annotations

import heapq
from collections.abc import AsyncGenerator, Generator
from contextlib import asynccontextmanager
from hashlib import shake_128

import psycopg
import pytest
import trio
from hypothesis import given, settings, strategies as st

from runtime.postgresql.database import PostgresqlDatabase
from runtime.postgresql.server import PostgresqlServer
from runtime.postgresql.store import PostgresqlStore
from runtime.sql.vectors import compare
from runtime.store.facts import FactChange, FactSearch, PutVector
from runtime.store.rows import Commit
from tests.support.store.postgresql import ServerProcess, is_pgvector_here
from tests.support.store.rows import remembering
from tests.support.tiers import examples

pytestmark = pytest.mark.live

SIZE = 24
MANY = 60
CLOSE = 1e-6
"""What pgvector may round off."""

WITH = "CREATE EXTENSION IF NOT EXISTS vector"
WITHOUT = "DROP EXTENSION IF EXISTS vector CASCADE"
KNOWN = "SELECT count(*) FROM fact_direction WHERE direction IS NOT NULL"
FILE = "SELECT pg_relation_filenode('fact_direction')"
COLUMNS = """SELECT count(*) FROM pg_attribute
    WHERE attname = 'direction' AND NOT attisdropped"""

VECTORS = [
    bytes(SIZE),  # without a direction
    bytes([1] * (SIZE - 1)),  # of another length
    *(shake_128(bytes([number])).digest(SIZE) for number in range(MANY - 2)),
]
FACTS = [
    remembering(f"{n}", agent="bot", scope="ab"[n % 2], kind="fact", part=n % 2)
    for n in range(MANY)
]


@pytest.fixture(scope="module")
def process() -> Generator[ServerProcess]:
    """Run a server with facts, at which pgvector may be installed."""
    if not is_pgvector_here():
        pytest.skip("no server with pgvector is here: tests/live/setup.sh gets it")
    found = ServerProcess(has_pgvector=True)

    async def fill() -> None:
        async with opened(found) as store:
            rows = (*FACTS, *vectors_of("s", VECTORS))
            await store.commit(Commit(at=1.0, facts=rows))

    trio.run(fill)
    yield found
    found.end()


def on(process: ServerProcess, statement: str) -> int:
    """Run a statement, and give the number that it answers."""
    with psycopg.connect(process.dsn("postgres"), autocommit=True) as db:
        cursor = db.execute(statement.encode())
        row = cursor.fetchone() if cursor.description else None
        return 0 if row is None else int(row[0])


@asynccontextmanager
async def opened(process: ServerProcess) -> AsyncGenerator[PostgresqlStore]:
    """Open the store, as a process does that starts."""
    store = await PostgresqlStore.open(PostgresqlServer(process.dsn("postgres")))
    try:
        yield store
    finally:
        await store.aclose()


def vectors_of(space: str, vectors: list[bytes]) -> list[FactChange]:
    """Give all facts their vectors in a space."""
    return [
        PutVector(agent="bot", scope="ab"[n % 2], id=f"{n}", space=space, vector=each)
        for n, each in enumerate(vectors)
    ]


async def check(
    store: PostgresqlStore,
    vector: bytes,
    limit: int = 5,
    space: str = "s",
    vectors: list[bytes] = VECTORS,
) -> None:
    """Compare a search with our own arithmetic over all facts."""
    asked = FactSearch(
        agent="bot",
        scopes=("a", "b"),
        kinds=("fact",),
        space=space,
        vector=vector,
        now=1.0,
        limit=limit,
    )
    alike = [(n, each) for n, each in enumerate(vectors) if len(each) == len(vector)]
    expected = compare(vector, alike)
    facts = (await store.facts.search(asked)).facts
    found = {int(each.fact.id): each.similarity or 0.0 for each in facts}
    assert all(expected[number] == similar for number, similar in found.items())
    nearest = heapq.nlargest(limit, expected.values())
    assert sorted(found.values(), reverse=True) == pytest.approx(nearest, abs=CLOSE)


async def test_pgvector_may_come_and_go(process: ServerProcess) -> None:
    on(process, WITHOUT)
    async with opened(process) as store:
        await check(store, VECTORS[5])
        assert on(process, COLUMNS) == 0
    on(process, WITH)
    async with opened(process) as store:
        assert on(process, KNOWN) == 0
        for _ in range(2):
            await check(store, VECTORS[5])
            assert on(process, KNOWN) == MANY - 1  # one has another length
        on(process, WITHOUT)
        await check(store, VECTORS[5])  # a process that runs
    on(process, WITH)
    async with opened(process) as store:
        await check(store, VECTORS[5])
        assert on(process, KNOWN) == MANY - 1


async def test_a_vector_that_is_replaced_is_not_taken_for_the_former_one(
    process: ServerProcess,
) -> None:
    on(process, WITH)
    others = VECTORS[::-1]
    async with opened(process) as store:
        await check(store, VECTORS[5])
        for space, vectors in (("t", others), ("s", VECTORS)):
            await store.commit(Commit(at=1.0, facts=tuple(vectors_of(space, vectors))))
            for _ in range(2):
                await check(store, VECTORS[9], 1, space, vectors)


async def test_what_is_forgotten_has_no_direction(process: ServerProcess) -> None:
    on(process, WITH)
    async with opened(process) as store:
        await check(store, VECTORS[5])
        before = on(process, KNOWN)
        on(process, "DELETE FROM fact WHERE id = '7'")
        assert on(process, KNOWN) == before - 1
        file = on(process, FILE)
        PostgresqlDatabase(PostgresqlServer(process.dsn("postgres"))).overwrite()
        assert on(process, FILE) != file  # a new one, with nothing left over
        rows = (FACTS[7], vectors_of("s", VECTORS)[7])
        await store.commit(Commit(at=1.0, facts=rows))


@settings(max_examples=examples(20))
@given(
    vector=st.binary(min_size=SIZE, max_size=SIZE) | st.sampled_from(VECTORS),
    limit=st.integers(1, MANY),
)
def test_the_nearest_are_those_of_our_own_arithmetic(
    process: ServerProcess, vector: bytes, limit: int
) -> None:
    async def ask() -> None:
        async with opened(process) as store:
            await check(store, vector, limit)

    on(process, WITH)
    trio.run(ask)
