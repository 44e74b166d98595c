"""Proves that all stores find, list and forget the same facts, whatever is done.

And that whatever is done, no scope's fact is ever given to another.
"""

from __future__ import annotations

import tempfile
from pathlib import Path

import trio
from hypothesis import given, settings, strategies as st

from runtime.errors import DuplicateError
from runtime.postgresql.store import PostgresqlStore
from runtime.sqlite.file import SqliteFile
from runtime.sqlite.store import SqliteStore
from runtime.store.facts import (
    FactChange,
    FactListing,
    FactSearch,
    ForgetFacts,
    PutVector,
    UseFacts,
)
from runtime.store.port import Store
from runtime.store.rows import Commit
from tests.fakes.store.in_memory import MemoryStore
from tests.support.store.postgresql import emptied
from tests.support.store.rows import remembering
from tests.support.tiers import examples

AGENTS = st.sampled_from(["bot", "cat"])
SCOPES = st.sampled_from(["a", "aa", "b"])
IDS = st.sampled_from(["f1", "f2", "f3", "f4", "f5"])
WORDS = st.sampled_from(["te", "tea", "team", "tee", "1", "1z1", "zz", "é"])
VECTORS = st.binary(min_size=2, max_size=2)
SPACES = st.sampled_from(["s", "t"])


def some(strategy: st.SearchStrategy[str]) -> st.SearchStrategy[tuple[str, ...]]:
    return st.lists(strategy, max_size=2).map(tuple)


def many(strategy: st.SearchStrategy[str]) -> st.SearchStrategy[tuple[str, ...]]:
    return st.lists(strategy, min_size=1, max_size=3).map(tuple)


SAVES = st.builds(
    remembering,
    IDS,
    agent=AGENTS,
    scope=SCOPES,
    kind=st.sampled_from(["fact", "state"]),
    key=st.sampled_from(["", "", "k"]),
    words=st.lists(WORDS, max_size=4).map(tuple),
    expires_at=st.sampled_from([0.0, 5.0]),
    wants_vector=st.booleans(),
)
CHANGES: st.SearchStrategy[FactChange] = st.one_of(
    SAVES,
    SAVES,
    st.builds(
        ForgetFacts, agent=AGENTS, scopes=many(SCOPES), ids=some(IDS), keys=some(IDS)
    ),
    st.builds(UseFacts, agent=AGENTS, scopes=many(SCOPES), ids=some(IDS)),
    st.builds(
        PutVector, agent=AGENTS, scope=SCOPES, id=IDS, space=SPACES, vector=VECTORS
    ),
)
SEARCHES = st.builds(
    FactSearch,
    agent=AGENTS,
    scopes=many(SCOPES),
    kinds=st.just(("fact",)),
    words=some(WORDS),
    space=SPACES,
    vector=VECTORS,
    now=st.sampled_from([4.0, 5.0]),
)


async def seen(store: Store, search: FactSearch) -> list[object]:
    """Ask all there is to ask; answers that may differ in order are sorted."""
    found = await store.facts.search(search)
    for each in found.facts:
        assert each.fact.agent == search.agent
        assert each.fact.scope in search.scopes
    listing = FactListing(agent=search.agent, scopes=search.scopes, now=search.now)
    listed = await store.facts.listed(listing)
    assert {row.scope for row in listed} <= set(search.scopes)
    alike = [(e.fact.id, round(e.similarity or 0.0, 6)) for e in found.facts]
    return [
        sorted(alike),
        found.total,
        found.counts,
        [(row.id, row.used_at, row.key, row.words) for row in listed],
        [row.id for row in await store.facts.unembedded(search.agent, search.space)],
        await store.facts.counts(search.agent),
    ]


async def done(store: Store, commits: list[Commit], search: FactSearch) -> list[object]:
    try:
        answers: list[object] = []
        for commit in commits:
            try:
                await store.commit(commit)
                answers.append("stored")
            except DuplicateError:
                answers.append("refused")
        answers += await seen(store, search)
        answers.append(await store.facts.prune(5.0))
        return [*answers, *await seen(store, search)]
    finally:
        with trio.CancelScope(shield=True):
            await store.aclose()


COMMITS = st.lists(
    st.builds(
        Commit,
        at=st.integers(0, 3).map(float),
        facts=st.lists(CHANGES, max_size=4).map(tuple),
    ),
    max_size=5,
)


@settings(max_examples=examples(60))
@given(commits=COMMITS, search=SEARCHES)
async def test_both_stores_do_the_same(
    commits: list[Commit], search: FactSearch
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        store = await SqliteStore.open(SqliteFile(Path(folder) / "facts.db"))
        on_disk = await done(store, commits, search)
        assert on_disk == await done(MemoryStore(), commits, search)


@settings(max_examples=examples(15), deadline=None)
@given(commits=COMMITS, search=SEARCHES)
async def test_a_server_does_the_same(
    commits: list[Commit], search: FactSearch
) -> None:
    store = await PostgresqlStore.open(emptied())
    on_server = await done(store, commits, search)
    assert on_server == await done(MemoryStore(), commits, search)
