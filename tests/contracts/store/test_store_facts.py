"""Proves that every store keeps facts as `runtime.store.facts.Facts` promises."""

from __future__ import annotations

import pytest

from runtime.errors import DuplicateError, MisuseError
from runtime.store.facts import (
    FactListing,
    FactSearch,
    ForgetFacts,
    PutVector,
    StoredFact,
    UseFacts,
)
from runtime.store.port import Store
from runtime.store.rows import Commit, Settle
from runtime.store.vectors import pack
from tests.support.store.engines import Engine
from tests.support.store.rows import NOW, change_facts, fact_names, heard, remembering

ANNA, BEN = "person:cli/anna", "person:cli/ben"


async def found(
    store: Store, *words: str, scopes: tuple[str, ...] = (ANNA,), agent: str = "bot"
) -> list[str]:
    """Search for words and give the ids of what is found, in order of their numbers."""
    search = FactSearch(
        agent=agent, scopes=scopes, kinds=("fact",), words=words, now=NOW
    )
    rows = [each.fact for each in (await store.facts.search(search)).facts]
    return [row.id for row in sorted(rows, key=lambda row: row.number)]


async def test_a_fact_comes_back_whole(store: Store) -> None:
    row = remembering(
        "f1",
        words=("likes", "tea", "tea"),
        key="drink",
        category="user_preference",
        provenance='{"message": "m1"}',
        expires_at=NOW + 5,
    )
    await change_facts(store, row, at=NOW + 1)
    listing = FactListing(agent="bot", scopes=(ANNA,), now=NOW)
    assert await store.facts.listed(listing) == (
        StoredFact(
            number=1,
            id="f1",
            agent="bot",
            scope=ANNA,
            kind="fact",
            category="user_preference",
            key="drink",
            text="'f1'",
            words=("likes", "tea", "tea"),
            provenance='{"message": "m1"}',
            part=7,
            epoch=3,
            created_at=NOW + 1,
            used_at=NOW + 1,
            expires_at=NOW + 5,
        ),
    )


async def test_facts_are_found_by_the_beginnings_of_their_words(store: Store) -> None:
    await change_facts(
        store,
        remembering("f1", words=("kitchen", "blue")),
        remembering("f2", words=("kit", "café", "京都")),
        remembering("f3", words=("blu",)),
    )
    assert await found(store, "kit") == ["f1", "f2"]
    assert await found(store, "kitchen") == ["f1"]
    assert await found(store, "caf") == ["f2"]
    assert await found(store, "京") == ["f2"]
    assert await found(store, "blue", "nothing") == ["f1"]
    assert await found(store, "itchen") == []


async def test_a_search_counts_what_has_each_word(store: Store) -> None:
    rows = [remembering(f"f{n}", words=("tea", f"w{n}x")) for n in range(5)]
    await change_facts(store, *rows, remembering("other", scope=BEN, words=("tea",)))
    search = FactSearch(
        agent="bot", scopes=(ANNA,), kinds=("fact",), words=("tea", "w3", "no"), now=NOW
    )
    outcome = await store.facts.search(search)
    assert outcome.total == 5
    assert outcome.counts == (5, 1, 0)


async def test_what_one_scope_holds_is_never_seen_from_another(store: Store) -> None:
    await change_facts(
        store,
        remembering("a", words=("secret",), key="k"),
        remembering("b", scope=BEN, words=("secret",), key="k"),
        remembering("c", agent="other", words=("secret",), key="k"),
        remembering("d", scope=ANNA + "2", words=("secret",)),
    )
    assert await found(store, "secret") == ["a"]
    assert await found(store, "secret", scopes=(BEN,)) == ["b"]
    assert await found(store, "secret", scopes=(BEN, ANNA)) == ["a", "b"]
    assert await found(store, "secret", agent="other") == ["c"]
    assert await found(store, "secret", scopes=("person:",)) == []
    assert await fact_names(store) == ["a"]
    assert await fact_names(store, ANNA, BEN) == ["b", "a"]
    assert await fact_names(store, agent="nobody") == []


@pytest.mark.parametrize("scopes", [(), ("",), (ANNA, ""), tuple("abcdefghijklmnopq")])
async def test_nothing_is_read_or_changed_without_scopes(
    store: Store, scopes: tuple[str, ...]
) -> None:
    for agent in ("bot", ""):
        search = FactSearch(agent=agent, scopes=scopes, kinds=("fact",), now=NOW)
        with pytest.raises(MisuseError):
            await store.facts.search(search)
        with pytest.raises(MisuseError):
            await store.facts.listed(FactListing(agent=agent, scopes=scopes, now=NOW))
        with pytest.raises(MisuseError):
            await change_facts(store, ForgetFacts(agent=agent, scopes=scopes))
        with pytest.raises(MisuseError):
            await change_facts(store, UseFacts(agent=agent, scopes=scopes, ids=("a",)))
    with pytest.raises(MisuseError):
        await change_facts(store, remembering("a", scope=""))


async def test_a_key_has_one_value_in_its_scope(store: Store) -> None:
    await change_facts(store, remembering("f1", key="mood", words=("glad",)))
    await change_facts(store, remembering("f2", key="mood", words=("sad",)))
    await change_facts(store, remembering("f3", key="mood", scope=BEN))
    await change_facts(store, remembering("f4", key="mood", kind="state"))
    await change_facts(store, remembering("f5"), remembering("f6"))
    assert await fact_names(store) == ["f6", "f5", "f4", "f2"]
    assert await found(store, "glad") == []
    assert await fact_names(store, keys=("mood",), kinds=("fact",)) == ["f2"]
    assert await fact_names(store, BEN) == ["f3"]


async def test_a_fact_saved_again_is_replaced_but_by_nobody_else(store: Store) -> None:
    await change_facts(store, remembering("f1", words=("old",)))
    await change_facts(store, remembering("f1", words=("new",)))
    assert await found(store, "old") == []
    assert await found(store, "new") == ["f1"]
    with pytest.raises(DuplicateError, match="f1"):
        await change_facts(store, remembering("f1", scope=BEN))
    with pytest.raises(DuplicateError, match="f1"):
        await change_facts(store, remembering("f1", agent="other"))
    assert await fact_names(store, BEN) == []


async def test_what_is_forgotten_is_gone_for_words_vectors_and_lists(
    store: Store,
) -> None:
    vector = pack((1.0, 0.0))
    await change_facts(
        store,
        remembering("f1", words=("tea",), wants_vector=True),
        remembering("f2", words=("tea",), category="sticky", key="k"),
        remembering("f3", scope=BEN, words=("tea",)),
        PutVector(agent="bot", scope=ANNA, id="f1", space="s", vector=vector),
    )
    await change_facts(
        store, ForgetFacts(agent="bot", scopes=(ANNA,), ids=("f1", "f3"))
    )
    assert await found(store, "tea") == ["f2"]
    search = FactSearch(
        agent="bot", scopes=(ANNA,), kinds=("fact",), space="s", vector=vector, now=NOW
    )
    assert (await store.facts.search(search)).facts == ()
    assert await store.facts.unembedded("bot", "s") == ()
    await change_facts(store, ForgetFacts(agent="bot", scopes=(ANNA,), keys=("other",)))
    assert await fact_names(store, ANNA, BEN) == ["f3", "f2"]
    await change_facts(
        store, ForgetFacts(agent="bot", scopes=(ANNA,), categories=("sticky",))
    )
    await change_facts(store, ForgetFacts(agent="bot", scopes=(BEN,)))
    assert await fact_names(store, ANNA, BEN) == []


async def test_facts_are_found_by_vectors_of_the_same_space(store: Store) -> None:
    vectors = {"f1": (1.0, 0.0, 0.0), "f2": (0.6, 0.8, 0.0), "f3": (-1.0, 0.0, 0.0)}
    for name, vector in vectors.items():
        put = PutVector(
            agent="bot", scope=ANNA, id=name, space="s", vector=pack(vector)
        )
        await change_facts(store, remembering(name, words=(name,)), put)
    alike: dict[str, float | None] = {}
    for space, question in (("s", (1, 0, 0)), ("t", (1, 0, 0)), ("s", (1, 0))):
        search = FactSearch(
            agent="bot",
            scopes=(ANNA,),
            kinds=("fact",),
            words=("f3",),
            space=space,
            vector=pack(question),
            now=NOW,
            limit=2,
        )
        rows = (await store.facts.search(search)).facts
        alike |= {f"{space}{len(question)}{e.fact.id}": e.similarity for e in rows}
    assert alike.pop("t3f3") is None
    assert alike.pop("s2f3") is None
    assert {name: round(each or 0.0, 2) for name, each in alike.items()} == {
        "s3f1": 1.0,
        "s3f2": 0.6,
        "s3f3": -1.0,
    }


async def test_vectors_are_wanted_until_there_is_one_of_the_space(store: Store) -> None:
    await change_facts(
        store,
        remembering("f1", wants_vector=True),
        remembering("f2"),
        remembering("f3", scope=BEN, wants_vector=True),
        remembering("f4", agent="other", wants_vector=True),
    )
    wanting = await store.facts.unembedded("bot", "s")
    assert [row.id for row in wanting] == ["f1", "f3"]
    assert [r.id for r in await store.facts.unembedded("bot", "s", 1, 1)] == ["f3"]
    await change_facts(
        store,
        PutVector(agent="bot", scope=ANNA, id="f1", space="s", vector=b"\x01"),
        PutVector(agent="bot", scope=ANNA, id="f3", space="s", vector=b"\x01"),
        PutVector(agent="bot", scope=ANNA, id="gone", space="s", vector=b"\x01"),
    )
    assert [row.id for row in await store.facts.unembedded("bot", "s")] == ["f3"]
    assert [row.id for row in await store.facts.unembedded("bot", "t")] == ["f1", "f3"]
    await change_facts(store, remembering("f1", wants_vector=True))
    assert len(await store.facts.unembedded("bot", "s")) == 2


async def test_what_has_expired_is_not_given_and_then_forgotten(store: Store) -> None:
    await change_facts(
        store,
        remembering("f1", words=("tea",), expires_at=NOW),
        remembering("f2", words=("tea",), expires_at=NOW - 1),
        remembering("f3", words=("tea",), expires_at=NOW + 1),
        remembering("f4", words=("tea",)),
    )
    assert await fact_names(store) == ["f4", "f3"]
    assert await found(store, "tea") == ["f3", "f4"]
    assert await store.facts.prune(NOW, 1) == 1
    assert await store.facts.counts("bot") == {("fact", ""): 3}
    assert await store.facts.prune(NOW) == 1
    assert await store.facts.prune(NOW) == 0
    assert await store.facts.counts("bot") == {("fact", ""): 2}


async def test_facts_of_no_use_come_first_where_that_is_asked(store: Store) -> None:
    await change_facts(store, *(remembering(f"f{number}") for number in range(4)))
    use = UseFacts(agent="bot", scopes=(ANNA,), ids=("f0", "f2", "gone"))
    await change_facts(store, use, at=NOW + 9)
    foreign = UseFacts(agent="bot", scopes=(BEN,), ids=("f1",))
    await change_facts(store, foreign, at=NOW + 9)
    unused = await fact_names(store, is_least_used_first=True)
    assert unused == ["f1", "f3", "f0", "f2"]
    assert await fact_names(store, is_least_used_first=True, limit=1) == ["f1"]


async def test_facts_are_counted_by_kind_and_category(store: Store) -> None:
    await change_facts(
        store,
        remembering("f1", category="sticky"),
        remembering("f2", category="sticky", scope=BEN),
        remembering("f3", kind="state", key="k"),
        remembering("f4", agent="other"),
    )
    assert await store.facts.counts("bot") == {
        ("fact", "sticky"): 2,
        ("state", ""): 1,
    }


async def test_a_commit_that_fails_remembers_and_forgets_nothing(store: Store) -> None:
    await change_facts(store, remembering("f1", words=("tea",), key="k"))
    vector = PutVector(agent="bot", scope=ANNA, id="f1", space="s", vector=b"\x01")
    with pytest.raises(DuplicateError):
        await change_facts(
            store,
            remembering("f2", words=("tea",), key="k", wants_vector=True),
            UseFacts(agent="bot", scopes=(ANNA,), ids=("f2",)),
            vector,
            ForgetFacts(agent="bot", scopes=(ANNA,)),
            remembering("f3", scope=BEN),
            remembering("f3", words=("tea",)),
        )
    spoilt = Commit(
        at=NOW, settles=(Settle("none", "dead"),), facts=(remembering("f5"),)
    )
    with pytest.raises(MisuseError):
        await store.commit(spoilt)
    assert await found(store, "tea") == ["f1"]
    assert await fact_names(store, ANNA, BEN) == ["f1"]
    assert await store.facts.unembedded("bot", "s") == ()


async def test_facts_are_stored_with_the_rest_of_their_commit(
    engine: Engine, store: Store
) -> None:
    row = remembering("f1", words=("tea",), wants_vector=True)
    await store.commit(Commit(at=NOW, accepts=(heard("m1"),), facts=(row,)))
    store = await engine.reopen(store)
    try:
        assert await found(store, "tea") == ["f1"]
        assert [row.id for row in await store.unsettled()] == ["m1"]
        assert len(await store.facts.unembedded("bot", "s")) == 1
    finally:
        await store.aclose()
