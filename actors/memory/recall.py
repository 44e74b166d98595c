"""The recall worker: reads what is always known, and which facts fit the question.

One thing that a memory is asked, done while others are. The store says which facts
have words of the question and how near their vectors are; ranking, which is pure, makes
a score from 0 to 1 of it: words by BM25, meaning by cosine, both merged by weight,
faded by age, cut off below a least score. Then a few are chosen within limits, the best
of each scope first.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Sequence
from typing import ClassVar

import msgspec
import trio

from actors import names
from actors.config.memory import MemoryConfig
from actors.errors import ModelError
from actors.memory.forgetting import mark_of
from actors.memory.kit import MemoryKit
from actors.memory.messages import (
    Fact,
    FactKind,
    Need,
    Recall,
    RecalledFacts,
    ReviewedNotes,
    ReviewNotes,
    SearchMemory,
    needs,
)
from actors.memory.review import NoteReview
from actors.rules.text.similarity import is_alike, question_words, without_speaker
from actors.services import Services
from runtime.actor.actor import Actor
from runtime.actor.reply import Reply
from runtime.errors import MisuseError, StoreError
from runtime.store.facts import (
    FactListing,
    Facts,
    FactSearch,
    Found,
    FoundFact,
    StoredFact,
    refuse_nameless,
    weight,
)
from runtime.telemetry.logs import EventLog, Quoted

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


LOG = EventLog("memory")

SEARCHED = ("fact", "summary", "log")
MOST_FOUND = 30
"""Facts looked at for one question, by words and again by meaning."""

MOST_PROFILE = 50
"""Facts of who somebody is that are shown."""

MOST_LOGS = 20
"""Entries of daily logs that are shown."""

MOST_LESSONS = 20
"""Lessons that are shown, the newest."""

MOST_OUTCOMES = 15
"""Rewards that are shown, the newest."""

LEAST_QUESTION = 8
"""Characters from which on a message is worth a search: "ok" asks for nothing."""

EMBEDDING_SHARE = 0.5
"""Of the time there is, what the question's vector may take; then words must do."""


class FactReader:
    """Reads the facts of one agent."""

    def __init__(self, agent: str, facts: Facts, kit: MemoryKit) -> None:
        self._agent = agent
        self._facts = facts
        self._kit = kit
        self._missed: list[str] = []
        self.is_blank = False
        """Whether the last recall found that nothing is known at all."""

    async def recall(self, asked: Recall) -> tuple[RecalledFacts, str]:
        """Answer in time, with what there is by then.

        Returns:
            The answer, and one bounded word: `ok`, `late` or `failed`.

        Raises:
            MisuseError: it is not said whose memory is meant.
        """
        refuse_nameless(self._agent, asked.scopes)
        config = self._kit.config
        within = asked.within or config.recall_timeout
        wanted = asked.needs
        if wanted is None:
            wanted = needs(asked.question, is_gated=config.keyword_gates)
        found: dict[str, tuple[Fact, ...]] = {}
        outcome = "ok"
        with trio.move_on_after(within) as scope:
            try:
                await self._read(asked, wanted, found, within)
            except StoreError as error:
                outcome = "failed"
                self._missed.append(str(error))
        if scope.cancelled_caught:
            outcome = "late"
            self._missed.append(f"not all was read within {within:g} s")
        missed = "; ".join(self._missed)
        if missed:
            LOG.warning("recall incomplete", agent=self._agent, why=Quoted(missed))
        return self._whole(found, missed), outcome

    @staticmethod
    def _whole(found: dict[str, tuple[Fact, ...]], missed: str) -> RecalledFacts:
        shown = {
            fact.id for name in ("sticky", "profile") for fact in found.get(name, ())
        }
        shown |= {fact.id for fact in found.get("summaries", ())}
        relevant = found.get("relevant", ())
        found["relevant"] = tuple(fact for fact in relevant if fact.id not in shown)
        return RecalledFacts(missed=missed, **found)

    async def look_up(self, asked: SearchMemory) -> tuple[Fact, ...]:
        """Give what has to do with a question, the best first."""
        found, question = await self._search(
            asked.question, asked.scopes, asked.now, self._kit.config.recall_timeout
        )
        scored = ranked(found, question, self._kit.config)[: asked.limit]
        most = self._kit.config.content_chars
        return tuple([fact_of(shortened(each, most)) for each in scored])

    async def _read(
        self,
        asked: Recall,
        wanted: frozenset[Need],
        found: dict[str, tuple[Fact, ...]],
        within: float,
    ) -> None:
        """Read all that is listed in one go, then what the question is about."""
        listings = self._listings(asked, wanted)
        gave = await self._facts.lists(tuple(listings.values()))
        self.is_blank = gave.is_blank
        for name, rows in zip(listings, gave.lists, strict=True):
            found[name] = tuple([plain(row) for row in rows])
        since = yesterday(asked.now)
        logs = found["logs"][::-1]
        found["logs"] = tuple([log for log in logs if log.created_at >= since])
        if "recall" in wanted and self._kit.config.inject_limit and not self.is_blank:
            await self._relevant(asked, found, within)

    def _listings(
        self, asked: Recall, wanted: frozenset[Need]
    ) -> dict[str, FactListing]:
        """Say what needs no question, by its name in the answer."""
        config = self._kit.config
        lists: list[tuple[str, int, FactKind, str]] = [
            ("sticky", config.sticky, "fact", STICKY),
            ("profile", MOST_PROFILE, "fact", "profile"),
            ("states", config.states, "state", ""),
            ("lessons", MOST_LESSONS, "lesson", ""),
            ("logs", MOST_LOGS, "log", ""),
        ]
        if "outcomes" in wanted:
            lists.append(("outcomes", MOST_OUTCOMES, "outcome", ""))
        if "summaries" in wanted:
            lists.append(("summaries", config.summaries, "summary", ""))
        return {
            name: FactListing(
                agent=self._agent,
                scopes=asked.scopes,
                kinds=(kind,),
                categories=(category,) if category else (),
                now=asked.now,
                limit=limit,
            )
            for name, limit, kind, category in lists
            if limit
        }

    async def _relevant(
        self, asked: Recall, found: dict[str, tuple[Fact, ...]], within: float
    ) -> None:
        config = self._kit.config
        question = without_speaker(asked.question).strip()
        if len(question) < LEAST_QUESTION:
            return
        rows, ranking = await self._search(question, asked.scopes, asked.now, within)
        scored = chosen(rows, ranking, config)
        found["relevant"] = tuple([fact_of(each) for each in scored])

    async def _search(
        self, text: str, scopes: tuple[str, ...], now: float, within: float
    ) -> tuple[Found, RankingQuery]:
        words = question_words(without_speaker(text))
        asked = RankingQuery(words, scopes, now, yesterday(now))
        vector = await self._vector(text, within * EMBEDDING_SHARE)
        if not (words or vector):
            return Found((), 0, ()), asked
        embedder = self._kit.embedder
        search = FactSearch(
            agent=self._agent,
            scopes=scopes,
            kinds=SEARCHED,
            words=words,
            space=embedder.space if embedder is not None else "",
            vector=vector,
            now=now,
            limit=MOST_FOUND,
        )
        return await self._facts.search(search), asked

    async def _vector(self, text: str, within: float) -> bytes:
        """Give the vector of a question; none if it is not to be had in time."""
        embedder = self._kit.embedder
        if embedder is None:
            return b""
        try:
            with trio.move_on_after(within):
                (vector,) = await embedder.embed((text,))
                return vector if any(vector) else b""
        except ModelError as error:
            self._missed.append(f"searched by words only: {error}")
        else:
            self._missed.append(f"searched by words only: no vector in {within:g} s")
        return b""


def yesterday(now: float) -> float:
    """Give the Unix seconds at which yesterday began, in UTC."""
    return now - now % DAY - DAY


def plain(row: StoredFact, score: float = 0.0) -> Fact:
    """Give a fact as it is told to others."""
    return Fact(
        id=row.id,
        scope=row.scope,
        kind=row.kind,
        category=row.category,
        key=row.key,
        text=row.text,
        score=score,
        created_at=row.created_at,
        provenance=row.provenance,
    )


def fact_of(each: RankedFact) -> Fact:
    """Give a fact with its score."""
    return plain(each.fact, each.score)


PRUNE_LIMIT = 1000
"""Facts forgotten at once because their time is over."""


class ForgetExpired(msgspec.Struct, frozen=True):
    """A note of a memory to itself: forget expired facts and count the others."""


class StartWork(msgspec.Struct, frozen=True):
    """To a new recall worker: do this, and answer."""

    key: str
    asked: Recall | ReviewNotes | SearchMemory | ForgetExpired
    reply: Reply | None = None


class WorkDone(msgspec.Struct, frozen=True):
    """To a memory: this recall worker has ended."""

    key: str
    blank: tuple[str, ...] = ()
    """Scopes in which it found nothing at all."""


class Recollection(Actor):
    """A recall worker: does one thing for an agent's memory, then ends.

    Takes: `StartWork`, once.
    Sends: the answer; `WorkDone` to the memory.
    Keeps: nothing.
    Fails: on a bug; the memory answers in its place.
    Ends: with its answer.
    """

    deadline: ClassVar[float | None] = 120.0

    def __init__(self, agent: str, kit: MemoryKit, services: Services) -> None:
        super().__init__()
        self._agent = agent
        self._kit = kit
        self._services = services
        self._blank: tuple[str, ...] = ()

    async def on_receive(self, message: object) -> None:
        """Do it."""
        if not isinstance(message, StartWork):
            super().on_receive(message)
            return
        reply = message.reply or Reply()
        try:
            reply.offer(await self._answer(message.asked))
        except (StoreError, MisuseError) as error:
            reply.offer_error(error)
            LOG.warning("memory cannot be read", agent=self._agent, why=str(error))
        self.tell(names.memory(self._agent), WorkDone(message.key, self._blank))
        self.stop()

    async def _answer(
        self, asked: Recall | ReviewNotes | SearchMemory | ForgetExpired
    ) -> object:
        recalling = FactReader(self._agent, self._services.store.facts, self._kit)
        match asked:
            case Recall():
                clock = self._services.clock
                began = clock.monotonic()
                recalled, outcome = await recalling.recall(asked)
                took = clock.monotonic() - began
                self._kit.metrics.recalls.observe(took, self._agent, outcome)
                if recalling.is_blank:
                    self._blank = asked.scopes
                return recalled
            case SearchMemory():
                return await recalling.look_up(asked)
            case ReviewNotes():
                return await self._consider(asked)
            case ForgetExpired():
                await self._sweep()
                return None

    async def _consider(self, asked: ReviewNotes) -> ReviewedNotes:
        services = self._services
        considering = NoteReview(
            self._agent,
            services.store.facts,
            self._kit.config,
            services.ids,
            services.redact,
        )
        source = asked.source
        mark = ""
        if source.as_of:
            whose = (source.scope, *source.readable)
            mark = await mark_of(services.store, self._agent, whose)
        considered = await considering.consider(asked, mark)
        for note, result in zip(asked.notes, considered.results, strict=True):
            outcome = f"refused:{result.reason}" if result.reason else result.outcome
            self._kit.metrics.notes.add(1, self._agent, type(note).__name__, outcome)
        return considered

    async def _sweep(self) -> None:
        services = self._services
        facts, now = services.store.facts, services.sure_clock.wall()
        while pruned := await facts.prune(now, PRUNE_LIMIT):
            self._kit.metrics.expired.add(pruned)
        counted: dict[tuple[str, str], int] = {}
        for (kind, category), count in (await facts.counts(self._agent)).items():
            # Domains of lessons and outcomes are anybody's words: no label.
            label = (kind, category if kind == "fact" else "")
            counted[label] = counted.get(label, 0) + count
        for (kind, category), count in counted.items():
            self._kit.metrics.facts.set(count, self._agent, kind, category)
