"""One recall: what is always known, and what has to do with the question."""

from __future__ import annotations

from typing import TYPE_CHECKING

import trio

from actors.errors import ModelError
from actors.remembering import Fact, Recalled
from actors.rules.index_words import question_words, without_speaker
from actors.rules.needs import needs
from actors.rules.recall import DAY, STICKY, Asked, chosen, ranked, shortened
from runtime.errors import StoreError
from runtime.fact_rows import FactListing, FactSearch, Found, StoredFact
from runtime.facts import refuse_nameless
from runtime.logs import EventLog, Quoted

if TYPE_CHECKING:
    from actors.memory_kit import MemoryKit
    from actors.notes import FactKind
    from actors.remembering import LookUp, Recall
    from actors.rules.needs import Need
    from actors.rules.recall import Scored
    from runtime.facts import Facts

LOG = EventLog("memory")

SEARCHED = ("fact", "summary", "log")
MOST_FOUND = 30
"""Facts looked at for one question, by words and again by meaning."""

MOST_PROFILE = 50
"""Facts of who somebody is that are shown."""

MOST_LOGS = 20
"""Entries of daily logs that are shown."""

EMBEDDING_SHARE = 0.5
"""Of the time there is, what the question's vector may take; then words must do."""


class Recalling:
    """Reads what one agent knows.

    Args:
        agent: which.
        facts: where it is kept.
        kit: settings and embedder.
    """

    def __init__(self, agent: str, facts: Facts, kit: MemoryKit) -> None:
        self._agent = agent
        self._facts = facts
        self._kit = kit
        self._missed: list[str] = []
        self.is_blank = False
        """Whether the last recall found that nothing is known at all."""

    async def recall(self, asked: Recall) -> tuple[Recalled, str]:
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
    def _whole(found: dict[str, tuple[Fact, ...]], missed: str) -> Recalled:
        shown = {
            fact.id for name in ("sticky", "profile") for fact in found.get(name, ())
        }
        shown |= {fact.id for fact in found.get("summaries", ())}
        relevant = found.get("relevant", ())
        found["relevant"] = tuple(fact for fact in relevant if fact.id not in shown)
        return Recalled(missed=missed, **found)

    async def look_up(self, asked: LookUp) -> tuple[Fact, ...]:
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
            ("lessons", config.lessons, "lesson", ""),
            ("logs", MOST_LOGS, "log", ""),
        ]
        if "outcomes" in wanted:
            lists.append(("outcomes", config.outcomes, "outcome", ""))
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
        if len(question) < config.min_question_chars:
            return
        rows, ranking = await self._search(question, asked.scopes, asked.now, within)
        scored = chosen(rows, ranking, config)
        found["relevant"] = tuple([fact_of(each) for each in scored])

    async def _search(
        self, text: str, scopes: tuple[str, ...], now: float, within: float
    ) -> tuple[Found, Asked]:
        words = question_words(without_speaker(text))
        asked = Asked(words, scopes, now, yesterday(now))
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


def plain(row: StoredFact) -> Fact:
    """Give a fact as it is told to others."""
    return Fact(
        id=row.id,
        scope=row.scope,
        kind=row.kind,
        category=row.category,
        key=row.key,
        text=row.text,
        created_at=row.created_at,
        provenance=row.provenance,
    )


def fact_of(each: Scored) -> Fact:
    """Give a fact with its score."""
    row = each.fact
    return Fact(
        id=row.id,
        scope=row.scope,
        kind=row.kind,
        category=row.category,
        key=row.key,
        text=row.text,
        score=each.score,
        created_at=row.created_at,
        provenance=row.provenance,
    )
