"""Proves that every store takes several listings of facts at once."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from pathlib import Path

import pytest

from runtime.errors import MisuseError
from runtime.store.facts import FactChange, FactListing, FactLists, ForgetFacts
from runtime.store.port import Store
from runtime.store.rows import Commit
from tests.support.store.engines import NAMES, make_engine
from tests.support.store.rows import NOW, remembering

ANNA, BEN = "person:cli/anna", "person:cli/ben"


@pytest.fixture(params=NAMES)
async def store(
    request: pytest.FixtureRequest, tmp_path: Path
) -> AsyncGenerator[Store]:
    store = await make_engine(request.param, tmp_path).open()
    yield store
    await store.aclose()


async def keep(store: Store, *changes: FactChange) -> None:
    await store.commit(Commit(at=NOW, facts=changes))


async def test_several_listings_are_taken_at_once(store: Store) -> None:
    def listing(*kinds: str, scope: str = ANNA, limit: int = 9) -> FactListing:
        return FactListing(
            agent="bot", scopes=(scope, "agent"), kinds=kinds, now=NOW, limit=limit
        )

    several = (listing("fact"), listing("fact", limit=1), listing("state"))
    assert await store.facts.lists(several) == FactLists(((), (), ()), is_blank=True)
    rows = [remembering(name) for name in ("f1", "f2")]
    await keep(store, *rows, remembering("f3", scope=BEN))
    found = await store.facts.lists(several)
    assert [[row.id for row in rows] for rows in found.lists] == [
        ["f2", "f1"],
        ["f2"],
        [],
    ]
    assert not found.is_blank
    for bad in ((), (listing("fact"), listing("fact", scope=BEN))):
        with pytest.raises(MisuseError, match="the same scopes"):
            await store.facts.lists(bad)
    for limit in (0, 1001):
        with pytest.raises(MisuseError, match="limit"):
            await store.facts.lists((listing("fact"), listing("fact", limit=limit)))


async def test_only_what_is_gone_altogether_is_blank(store: Store) -> None:
    several = (FactListing(agent="bot", scopes=(ANNA,), now=NOW + 9),)
    await keep(store, remembering("f1", expires_at=NOW + 5))
    assert await store.facts.lists(several) == FactLists(((),))
    await keep(store, ForgetFacts(agent="bot", scopes=(ANNA,)))
    assert (await store.facts.lists(several)).is_blank
