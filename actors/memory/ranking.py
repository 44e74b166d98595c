"""Which facts have to do with a question, and which of them a model is shown.

Pure. The store says which facts have words of the question and how near their vectors
are; here that becomes a score from 0 to 1: words by BM25, meaning by cosine, both
merged by weight, faded by age, cut off below a least score. Then a few
are chosen within limits, the best of each scope first.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Sequence

import msgspec

from actors.config.memory import MemoryConfig
from actors.rules.text.similarity import is_alike
from runtime.store.facts import Found, FoundFact, StoredFact, weight

DAY = 86_400.0

# Source: the usual constants of BM25.
SATURATION = 1.2
LENGTH_SHARE = 0.75

# Chosen: the score of one word that hardly any fact has is then 0.68, that of one
# that a third of them have 0.37, of one that most have 0.2: below what is recalled.
HALF = 2.0
"""The BM25 score that counts half."""

FEWEST = 100
"""Facts that there are taken to be at least: among three, no word is rare."""

# Chosen: equal words count, but an equal meaning in other words counts more.
NEAR_WEIGHT, WORDS_WEIGHT = 0.7, 0.3
"""How much likeness of meaning counts, and how much common words do."""

# Chosen: what was told lately fits more often, and nothing fades away for good.
FADING = 0.3
"""Part of a score that fades with age; sticky facts never fade."""

STICKY = "sticky"
"""What never expires and does not fade."""

UNWANTED = re.compile(r"\[IMAGE:|<tool_result\b", re.IGNORECASE)
"""What a model must not be shown again."""

HISTORY_KEY = "_history"


class RankedFact(msgspec.Struct, frozen=True):
    """A fact with its relevance to the question, from 0 to 1."""

    fact: StoredFact
    score: float


class RankingQuery(msgspec.Struct, frozen=True):
    """What ranking has to know of a question."""

    words: tuple[str, ...]
    scopes: tuple[str, ...]
    now: float
    """Unix seconds."""

    fresh_since: float = 0.0
    """When yesterday began, Unix seconds: entries of daily logs since then are in the
    prompt anyway."""


def chosen(
    found: Found, asked: RankingQuery, config: MemoryConfig
) -> tuple[RankedFact, ...]:
    """Choose what a model is shown, that which fits best first."""
    return injected(ranked(found, asked, config), asked.scopes, config)


def ranked(
    found: Found, asked: RankingQuery, config: MemoryConfig
) -> tuple[RankedFact, ...]:
    """Score what was found; give what fits well enough, the best first."""
    facts = [each for each in found.facts if is_wanted(each.fact, asked)]
    scores = keyword_scores(found, facts, asked.words)
    scored = [
        RankedFact(each.fact, faded(merged(each, score), each.fact, asked, config))
        for each, score in zip(facts, scores, strict=True)
    ]
    enough = [each for each in scored if each.score >= config.min_score]
    enough.sort(key=lambda each: (-each.score, -each.fact.number))
    return tuple(enough)


def is_wanted(fact: StoredFact, asked: RankingQuery) -> bool:
    """Whether a fact may be shown to a model at all."""
    is_shown_anyway = fact.kind == "log" and fact.created_at >= asked.fresh_since
    is_history = fact.key.endswith(HISTORY_KEY)
    return not (is_shown_anyway or is_history or UNWANTED.search(fact.text))


def keyword_scores(
    found: Found, facts: Sequence[FoundFact], words: tuple[str, ...]
) -> list[float]:
    """Say how much the words of each fact have to do with the question, 0 to 1.

    BM25 over the scopes asked for and no others, so that no score tells what somebody
    else has said.
    """
    total = max(found.total, FEWEST)
    weights = [weight(total, count) for count in found.counts]
    lengths = [len(each.fact.words) for each in facts]
    average = sum(lengths) / len(lengths) if lengths else 0.0
    scores: list[float] = []
    for each, length in zip(facts, lengths, strict=True):
        share = length / average if average else 1.0
        norm = SATURATION * (1 - LENGTH_SHARE + LENGTH_SHARE * share)
        score = 0.0
        for word, rare in zip(words, weights, strict=True):
            often = sum(own.startswith(word) for own in each.fact.words)
            score += rare * often * (SATURATION + 1) / (often + norm)
        scores.append(score / (score + HALF))
    return scores


def merged(each: FoundFact, keyword: float) -> float:
    """Merge both scores by weight.

    A fact without a vector, new or from before there was an embedder, is judged by its
    words alone: what is missing must not count against it.
    """
    if each.similarity is None:
        return keyword
    near = min(max(each.similarity, 0.0), 1.0)
    return NEAR_WEIGHT * near + WORDS_WEIGHT * keyword


def faded(
    score: float, fact: StoredFact, asked: RankingQuery, config: MemoryConfig
) -> float:
    """Have an old fact count less; what is sticky is always as good as new."""
    if fact.category == STICKY:
        return score
    age = max(asked.now - fact.created_at, 0.0) / DAY
    left = math.pow(0.5, age / config.half_life_days)
    return score * (1 - FADING + FADING * left)


def injected(
    scored: Iterable[RankedFact], scopes: tuple[str, ...], config: MemoryConfig
) -> tuple[RankedFact, ...]:
    """Take as many as there is room for, none twice and some of each scope."""
    recalled: list[RankedFact] = []
    room = dict.fromkeys(scopes, config.recall_limit)
    for each in scored:
        if room.get(each.fact.scope, 0) and not says_again(each, recalled):
            room[each.fact.scope] -= 1
            recalled.append(each)
    if config.mmr_lambda is not None:
        recalled = varied(recalled, config.mmr_lambda)
    return within(recalled, config)


def says_again(each: RankedFact, others: Sequence[RankedFact]) -> bool:
    """Whether one of the others says the same."""
    return any(is_alike(each.fact.text, other.fact.text) for other in others)


def within(
    scored: Iterable[RankedFact], config: MemoryConfig
) -> tuple[RankedFact, ...]:
    """Keep the first that fit into the budget; what is too long is left out."""
    taken: list[RankedFact] = []
    left = config.inject_chars
    for each in scored:
        if len(taken) == config.inject_limit:
            break
        cut = shortened(each, config.content_chars)
        if len(cut.fact.text) <= left:
            left -= len(cut.fact.text)
            taken.append(cut)
    return tuple(taken)


def shortened(each: RankedFact, most: int) -> RankedFact:
    """Cut a text that is longer than `most` characters, and say so."""
    text = each.fact.text
    if len(text) <= most:
        return each
    cut = f"{text[: most - 1]}…"
    return RankedFact(msgspec.structs.replace(each.fact, text=cut), each.score)


def varied(scored: Sequence[RankedFact], fit: float) -> list[RankedFact]:
    """Order facts so that what comes next fits, and is unlike what came before.

    Source: Carbonell and Goldstein 1998, maximal marginal relevance.

    Args:
        scored: the best first.
        fit: how much fitting counts against being unlike, 0 to 1.
    """
    left, taken = list(scored), list[RankedFact]()
    while left:
        best = max(
            left,
            key=lambda each: (
                fit * each.score
                - (1 - fit)
                * max((overlap(each, other) for other in taken), default=0.0)
            ),
        )
        left.remove(best)
        taken.append(best)
    return taken


def overlap(first: RankedFact, second: RankedFact) -> float:
    """Say how many of the words of two facts are common, 0 to 1."""
    left, right = frozenset(first.fact.words), frozenset(second.fact.words)
    return len(left & right) / len(left | right) if left or right else 0.0
