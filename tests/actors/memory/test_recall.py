"""Proves that what a model is shown fits, is within bounds, and comes best first."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given, strategies as st

from actors.config.memory import MemoryConfig
from actors.memory.recall import (
    DAY,
    RankedFact,
    RankingQuery,
    chosen,
    injected,
    is_wanted,
    keyword_scores,
    ranked,
    varied,
)
from actors.rules.text.similarity import question_words, words_of
from runtime.store.facts import Found, FoundFact, StoredFact

NOW = 1_700_000_000.0
SCOPES = ("a", "b")
WORDS = ("tea", "cat", "house", "monday", "green")


def stored(number: int, text: str, /, **fields: object) -> StoredFact:
    row = StoredFact(
        number=number,
        id=f"f{number}",
        agent="bot",
        scope="a",
        kind="fact",
        category="user_preference",
        key="",
        text=text,
        words=words_of(text),
        provenance="",
        part=0,
        epoch=0,
        created_at=NOW,
        used_at=NOW,
        expires_at=0.0,
    )
    return msgspec.structs.replace(row, **fields)


def found_of(*facts: FoundFact, words: tuple[str, ...] = WORDS) -> Found:
    counts = tuple(
        sum(any(own.startswith(word) for own in f.fact.words) for f in facts)
        for word in words
    )
    return Found(facts, len(facts), counts)


texts = st.lists(st.sampled_from([*WORDS, "plain", "other", "x" * 300]), max_size=8)


@st.composite
def found_facts(draw: st.DrawFn, number: int = 0) -> FoundFact:
    """Make a fact of some words, scope and age, with a vector or without."""
    fact = stored(
        number,
        " ".join(draw(texts)) or "-",
        scope=draw(st.sampled_from([*SCOPES, "c"])),
        created_at=NOW - draw(st.floats(0, 400)) * DAY,
    )
    return FoundFact(fact, draw(st.none() | st.floats(-1, 1)))


founds = st.integers(0, 12).flatmap(
    lambda count: st.tuples(*(found_facts(number) for number in range(count))).map(
        lambda facts: found_of(*facts)
    )
)
configs = st.builds(
    MemoryConfig,
    recall_limit=st.integers(1, 6),
    inject_limit=st.integers(0, 6),
    inject_chars=st.integers(1, 2_000),
    content_chars=st.integers(1, 500),
    min_score=st.floats(0, 1),
    mmr_lambda=st.none() | st.floats(0, 1),
)
ASKED = RankingQuery(WORDS, SCOPES, NOW)


@given(found=founds, config=configs)
def test_what_is_shown_is_within_all_bounds(found: Found, config: MemoryConfig) -> None:
    shown = chosen(found, ASKED, config)
    assert len(shown) <= config.inject_limit
    assert sum(len(each.fact.text) for each in shown) <= config.inject_chars
    assert all(len(each.fact.text) <= config.content_chars for each in shown)
    assert all(config.min_score <= each.score <= 1.0 for each in shown)
    assert {each.fact.scope for each in shown} <= set(SCOPES)
    assert len({each.fact.id for each in shown}) == len(shown)
    for scope in SCOPES:
        own = [each for each in shown if each.fact.scope == scope]
        assert len(own) <= config.recall_limit


@given(found=founds, config=configs)
def test_the_best_comes_first(found: Found, config: MemoryConfig) -> None:
    scores = [each.score for each in ranked(found, ASKED, config)]
    assert scores == sorted(scores, reverse=True)
    config = msgspec.structs.replace(config, mmr_lambda=1.0)
    scores = [each.score for each in chosen(found, ASKED, config)]
    assert scores == sorted(scores, reverse=True)


@given(found=founds)
def test_words_score_between_nothing_and_all(found: Found) -> None:
    scores = keyword_scores(found, found.facts, WORDS)
    for each, score in zip(found.facts, scores, strict=True):
        has_any = any(own.startswith(w) for own in each.fact.words for w in WORDS)
        assert 0.0 <= score < 1.0
        assert (score > 0.0) == has_any


def score_of(text: str, question: str, among: tuple[str, ...] = ()) -> float:
    words = question_words(question)
    facts = [FoundFact(stored(n, each)) for n, each in enumerate((text, *among))]
    return keyword_scores(found_of(*facts, words=words), facts, words)[0]


def test_a_rare_word_counts_more_than_a_common_one() -> None:
    others = tuple(f"likes {what}" for what in ("tea", "milk", "juice", "water") * 20)
    rare = score_of("has a violin", "violin", others)
    common = score_of("likes plain tea", "likes", others)
    assert rare > 0.6
    assert common < 0.25


def test_one_fact_alone_is_found_by_one_word() -> None:
    assert score_of("My cat is called Luna", "what is my cat called?") > 0.6


@pytest.mark.parametrize(
    ("similarity", "score"), [(1.0, 0.7), (0.5, 0.35), (0.0, 0.0), (-1.0, 0.0)]
)
def test_meaning_and_words_are_merged_by_weight(
    similarity: float, score: float
) -> None:
    each = FoundFact(stored(1, "nothing in common"), similarity)
    config = MemoryConfig(min_score=0.0)
    (scored,) = ranked(found_of(each), ASKED, config)
    assert scored.score == pytest.approx(score)


def test_three_tenths_of_a_score_fade_by_half_in_a_month_but_not_of_what_sticks() -> (
    None
):
    old = {"created_at": NOW - 30 * DAY}
    facts = (
        FoundFact(stored(1, "a"), 1.0),
        FoundFact(stored(2, "b", **old), 1.0),
        FoundFact(stored(3, "c", category="sticky", **old), 1.0),
    )
    scores = {
        each.fact.id: each.score
        for each in ranked(found_of(*facts), ASKED, MemoryConfig())
    }
    assert scores["f2"] == pytest.approx(0.85 * scores["f1"])
    assert scores["f3"] == scores["f1"]


@pytest.mark.parametrize(
    ("fields", "wanted"),
    [
        ({}, True),
        ({"text": "see [IMAGE:/a.png]"}, False),
        ({"text": "<tool_result>42</tool_result>"}, False),
        ({"key": "chat_history"}, False),
        ({"kind": "log"}, False),
        ({"kind": "log", "created_at": NOW - 3 * DAY}, True),
    ],
)
def test_what_a_model_must_not_see_again_is_left_out(
    fields: dict[str, object], wanted: object
) -> None:
    asked = RankingQuery(WORDS, SCOPES, NOW, fresh_since=NOW - DAY)
    assert is_wanted(stored(1, "text", **fields), asked) == wanted


def test_what_is_too_long_is_skipped_for_what_fits() -> None:
    rows = [
        RankedFact(stored(n, "x" * size), 0.9) for n, size in enumerate((50, 80, 20))
    ]
    rows = [
        RankedFact(msgspec.structs.replace(r.fact, words=(str(n),)), 0.9 - n / 10)
        for n, r in enumerate(rows)
    ]
    config = MemoryConfig(inject_chars=75)
    shown = injected(rows, SCOPES, config)
    assert [each.fact.id for each in shown] == ["f0", "f2"]


def test_variety_puts_what_is_new_before_what_says_nearly_the_same() -> None:
    rows = [
        RankedFact(stored(1, "green tea with honey"), 0.9),
        RankedFact(stored(2, "green tea with lemon"), 0.88),
        RankedFact(stored(3, "two black cats"), 0.7),
    ]
    assert [each.fact.id for each in varied(rows, 0.7)] == ["f1", "f3", "f2"]
    assert [each.fact.id for each in varied(rows, 1.0)] == ["f1", "f2", "f3"]
