"""Proves what only the file can show: the index is right, what is forgotten is gone."""

# apsw's stubs name `collections.abc.Buffer`, which Python 3.11 has not got yet:
# pyright: reportUnknownMemberType=false

from __future__ import annotations

from pathlib import Path

import apsw
import pytest
from hypothesis import given, strategies as st

from runtime.sql import vectors as sql_vectors
from runtime.sqlite.database import backup, restore
from runtime.sqlite.file import SqliteFile
from runtime.sqlite.migrations import MIGRATIONS
from runtime.sqlite.store import SqliteStore
from runtime.store.facts import FactListing, FactSearch, ForgetFacts, PutVector
from runtime.store.rows import Commit
from runtime.store.vectors import cosine, pack
from tests.support.store.rows import NOW, remembering

ANNA = "person:cli/anna"
TOLD = "the safe is behind the mirror"
EVERYTHING = ForgetFacts(agent="bot", scopes=(ANNA,))


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "callboard.db"


async def fill(path: Path, count: int = 50) -> SqliteStore:
    """Make a database with facts, words and vectors."""
    store = await SqliteStore.open(SqliteFile(path))
    for number in range(count):
        name = f"f{number}"
        row = remembering(
            name,
            text=f"{TOLD} {number}" + "." * number * 50,
            words=("safe", "mirror", f"w{number}"),
            category="sticky" if number % 2 else "",
        )
        vector = pack((number, 1.0, 2.0))
        put = PutVector(agent="bot", scope=ANNA, id=name, space="s", vector=vector)
        await store.commit(Commit(at=NOW, facts=(row, put)))
    return store


# Files are so small here that a test may wait for them.
def content(path: Path) -> bytes:
    return path.read_bytes()


def check(path: Path) -> int:
    """Compare the index with the facts, and count what is in it."""
    db = apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READWRITE)
    try:
        db.execute(
            "INSERT INTO fact_words(fact_words, rank) VALUES ('integrity-check', 1)"
        )
        assert db.pragma("integrity_check") == "ok"
        count: int = db.execute(
            "SELECT count(*) FROM fact_words WHERE fact_words MATCH '\"1zsafe\"'"
        ).get
        vectors: int = db.execute("SELECT count(*) FROM fact_vector").get
        assert vectors == count
        return count
    finally:
        db.close()


async def test_the_index_follows_the_facts(path: Path) -> None:
    store = await fill(path)
    await store.aclose()
    assert check(path) == 50
    store = await SqliteStore.open(SqliteFile(path))
    forget = ForgetFacts(agent="bot", scopes=(ANNA,), categories=("sticky",))
    await store.commit(Commit(at=NOW, facts=(forget,)))
    await store.aclose()
    assert check(path) == 25


async def test_what_is_forgotten_is_not_in_the_file_any_more(path: Path) -> None:
    store = await fill(path)
    await store.aclose()
    assert b"mirror" in content(path)
    store = await SqliteStore.open(SqliteFile(path))
    await store.commit(Commit(at=NOW, facts=(EVERYTHING,)))
    await store.aclose()
    left = content(path)
    assert b"mirror" not in left
    assert b"safe" not in left
    assert ANNA.encode() not in left


async def test_what_has_expired_is_not_in_the_file_any_more(path: Path) -> None:
    store = await SqliteStore.open(SqliteFile(path))
    row = remembering("f1", text=TOLD, words=("mirror",), expires_at=NOW)
    await store.commit(Commit(at=NOW, facts=(row,)))
    assert await store.facts.prune(NOW) == 1
    await store.aclose()
    assert b"mirror" not in content(path)


async def test_copies_and_what_is_put_back_hold_the_facts(path: Path) -> None:
    store = await fill(path)
    copy = path.with_name("copy.db")
    backup(path, copy)
    await store.commit(Commit(at=NOW, facts=(EVERYTHING,)))
    await store.aclose()
    restore(copy, path)
    assert check(path) == 50
    store = await SqliteStore.open(SqliteFile(path))
    search = FactSearch(
        agent="bot", scopes=(ANNA,), kinds=("fact",), words=("w7",), now=NOW
    )
    assert [f.fact.id for f in (await store.facts.search(search)).facts] == ["f7"]
    await store.aclose()


async def test_a_database_of_version_4_learns_to_remember(path: Path) -> None:
    SqliteFile(path, migrations=MIGRATIONS[:4]).open_writer().close()
    store = await SqliteStore.open(SqliteFile(path))
    await store.commit(Commit(at=NOW, facts=(remembering("f1"),)))
    listing = FactListing(agent="bot", scopes=(ANNA,), now=NOW)
    assert len(await store.facts.listed(listing)) == 1
    await store.aclose()
    assert b"inbox" in content(path.with_name("callboard.db.backup-v4"))


async def test_people_see_what_is_remembered(path: Path) -> None:
    store = await fill(path, 1)
    await store.aclose()
    db = apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READONLY)
    (row,) = db.execute("SELECT agent, scope, text FROM remembered")
    db.close()
    assert row == ("bot", ANNA, f"{TOLD} 0")


numbers = st.floats(-1e6, 1e6).map(lambda number: round(number, 3))
vectors = st.lists(numbers, min_size=1, max_size=20).map(pack)


def taught(library: Path | None) -> apsw.Connection:
    db = apsw.Connection(":memory:")
    sql_vectors.teach(db, library)
    return db


@given(first=vectors, second=vectors)
def test_distances_are_the_same_with_and_without_the_library(
    first: bytes, second: bytes
) -> None:
    size = min(len(first), len(second))
    pair = (first[:size], second[:size])
    question = "SELECT vec_distance_cosine(vec_int8(?), vec_int8(?))"
    library = sql_vectors.extension()
    assert library is not None
    fast, slow = taught(library), taught(None)
    found = fast.execute(question, pair).get
    if found is None:  # a vector without a direction
        assert cosine(*pair) == 0.0
    else:
        assert found == pytest.approx(slow.execute(question, pair).get, abs=1e-5)
        assert found == pytest.approx(1.0 - cosine(*pair), abs=1e-5)
    fast.close()
    slow.close()


@given(asked=vectors, others=st.lists(vectors, max_size=5))
def test_vectors_of_another_database_are_compared_alike(
    asked: bytes, others: list[bytes]
) -> None:
    fitting = [each for each in others if len(each) == len(asked)]
    numbered = list(enumerate([*fitting, asked, bytes(len(asked))], 7))
    found = sql_vectors.compare(asked, numbered)
    assert [*found] == [number for number, _ in numbered]
    for number, vector in numbered:
        assert found[number] == pytest.approx(cosine(asked, vector), abs=1e-5)


def test_a_library_that_cannot_be_loaded_is_done_without(tmp_path: Path) -> None:
    db = apsw.Connection(":memory:")
    assert not sql_vectors.teach(db, tmp_path / "vec0")
    assert db.execute("SELECT vec_distance_cosine(x'01', x'01')").get == 0.0
    with pytest.raises(apsw.ExtensionLoadingError):
        db.load_extension(str(sql_vectors.extension()))
    db.close()


@given(st.lists(numbers, min_size=1, max_size=20), st.floats(0.001, 1000))
def test_only_the_direction_of_a_vector_counts(vector: list[float], by: float) -> None:
    packed = pack(vector)
    assert len(packed) == len(vector)
    if any(vector):
        longer = pack([number * by for number in vector])
        assert cosine(packed, longer) == pytest.approx(1.0, abs=1e-4)
        assert cosine(packed, pack([-n for n in vector])) == pytest.approx(-1.0)


@pytest.mark.parametrize("bad", [float("nan"), float("inf"), float("-inf")])
def test_a_vector_has_finite_numbers(bad: float) -> None:
    with pytest.raises(ValueError, match="finite"):
        pack([1.0, bad])


def test_vectors_of_different_length_have_nothing_in_common() -> None:
    assert cosine(b"\x01", b"\x01\x01") == 0.0
    assert pack([0.0, 0.0]) == b"\x00\x00"
    assert pack([]) == b""
