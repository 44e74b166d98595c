"""Proves that no store of facts takes what can never be stored, or never be asked."""

from __future__ import annotations

import pytest

from runtime.errors import MisuseError, StoreUnavailableError
from runtime.store.facts import FactChange, FactSearch, PutVector
from runtime.store.port import Store
from tests.support.store.rows import NOW, change_facts, fact_names, remembering

ANNA = "person:cli/anna"


@pytest.mark.parametrize(
    "bad",
    [
        remembering("f", words=("Tea",)),
        remembering("f", words=("two words",)),
        remembering("f", words=('"*',)),
        remembering("f", words=("",)),
        remembering("f", words=("x" * 65,)),
        remembering("f", words=("x",) * 2001),
        remembering("f", text="\ud800"),
        remembering("f", expires_at=float("nan")),
        remembering("f", part=256),
        PutVector(agent="bot", scope=ANNA, id="f", space="", vector=b"\x01"),
        PutVector(agent="bot", scope=ANNA, id="f", space="s", vector=b""),
        PutVector(agent="bot", scope=ANNA, id="f", space="s", vector=bytes(9000)),
    ],
)
async def test_what_can_never_be_stored_is_misuse(
    store: Store, bad: FactChange
) -> None:
    with pytest.raises(MisuseError):
        await change_facts(store, bad)
    assert await fact_names(store) == []


async def test_questions_are_bounded(store: Store) -> None:
    for limit, words in ((0, ()), (1001, ()), (1, ("w",) * 33), (1, ("a b",))):
        search = FactSearch(
            agent="bot",
            scopes=(ANNA,),
            kinds=("fact",),
            words=words,
            now=NOW,
            limit=limit,
        )
        with pytest.raises(MisuseError):
            await store.facts.search(search)
    with pytest.raises(MisuseError):
        await fact_names(store, limit=0)
    with pytest.raises(MisuseError):
        await fact_names(store, ids=tuple(map(str, range(1001))))
    with pytest.raises(MisuseError):
        await store.facts.prune(NOW, 0)


async def test_a_closed_store_remembers_nothing(store: Store) -> None:
    facts = store.facts
    await store.aclose()
    with pytest.raises(StoreUnavailableError):
        await facts.counts("bot")
