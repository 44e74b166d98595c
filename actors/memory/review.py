"""Reviews notes: redacts, bounds and compares them with what is known.

Writes nothing: the caller commits what this gives, together with what it is about.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

import msgspec

from actors.config.memory import MemoryConfig
from actors.memory import note_rules as rules
from actors.memory.forgetting import is_forgotten, marked
from actors.memory.messages import (
    Forget,
    KeepFact,
    Note,
    NoteResult,
    NoteSource,
    ReviewedNotes,
    ReviewNotes,
)
from actors.memory.scopes import is_persons
from actors.rules.text.secrets import redacted
from actors.rules.text.similarity import question_words
from runtime.ids import IdSource
from runtime.store.facts import (
    MAX_FACT_ROWS,
    FactChange,
    FactListing,
    Facts,
    FactSearch,
    ForgetFacts,
    SaveFact,
    StoredFact,
)
from runtime.store.rows import Entry

COMPARED = 30
"""Facts that a new one is compared with: those with most of its words."""

MOST_NOTES = 32
"""Notes that one answer may hold."""

MOST_OF_KIND = 500
"""Summaries, outcomes, lessons and logs that are kept of one scope; the oldest go."""

MOST_ROOM = 100
"""Facts looked at to find one that may go."""

FORGOTTEN = "what was said before is to stay forgotten"

LASTING = ("sticky", "profile")
"""Categories that never give way."""


class NoteReview:
    """Reviews the notes of one answer for one agent.

    Args:
        redact: takes the values of the settings' secrets out of a text.
    """

    def __init__(
        self,
        agent: str,
        facts: Facts,
        config: MemoryConfig,
        ids: IdSource,
        redact: Callable[[str], str],
    ) -> None:
        self._agent = agent
        self._facts = facts
        self._config = config
        self._ids = ids
        self._redact = redact
        self._changes: list[FactChange] = []
        self._entries: list[Entry] = []
        self._making_room: Counter[tuple[str, str]] = Counter()
        self._going: set[str] = set()
        """Ids of what this answer has forgotten, or has give way."""

    async def consider(self, asked: ReviewNotes, mark: str = "") -> ReviewedNotes:
        """Go through the notes in their order.

        Args:
            mark: of the last forgetting in that scope; empty: there was none.

        Raises:
            runtime.errors.StoreError: what is known cannot be read.
        """
        results: list[NoteResult] = []
        is_over = is_forgotten(asked.source.as_of, mark)
        for number, note in enumerate(asked.notes):
            if number >= MOST_NOTES:
                text = f"one answer may hold {MOST_NOTES} notes"
                results.append(refused(rules.NoteRefusal("too_many", text)))
            elif is_over and not isinstance(note, Forget):
                results.append(refused(rules.NoteRefusal("forgotten", FORGOTTEN)))
            else:
                results.append(await self._judge(note, asked.source, asked.now))
        return ReviewedNotes(
            changes=tuple(self._changes),
            entries=tuple(self._entries),
            results=tuple(results),
        )

    async def _judge(self, note: Note, source: NoteSource, now: float) -> NoteResult:
        if isinstance(note, Forget):
            return await self._forget(note, source, now)
        found = rules.written(note, self._clean)
        refusal = rules.out_of_place(note, source.scope, is_owner=source.is_owner)
        refusal = refusal or rules.refusal(found, self._config)
        if refusal is not None:
            return refused(refusal)
        place = rules.NotePlace(
            agent=self._agent,
            scope=(note.scope if isinstance(note, KeepFact) else "") or source.scope,
            provenance=provenance(source),
            now=now,
        )
        return await self._keep(found, place)

    def _clean(self, text: str) -> str:
        # Half a character, which a model's JSON may hold, could not be stored.
        whole = text.encode("utf-8", "replace").decode()
        return redacted(self._redact(whole)).strip()

    async def _keep(self, found: rules.NoteRow, place: rules.NotePlace) -> NoteResult:
        if any(is_said(row, found) for row in self._new(found, place)):
            return NoteResult(outcome="known", text=found.text)
        like = await self._like(found, place)
        same = rules.known(found, [fact for fact in like if fact.id not in self._going])
        if same is not None and found.kind != "lesson":
            self._changes.append(rules.said_again(same, place, self._config))
            return NoteResult(outcome="known", text=same.text, ids=(same.id,))
        if same is None and not await self._make_room(found, place):
            full = "all that is remembered here is to stay, and there is no more room"
            return refused(rules.NoteRefusal("full", full))
        # A lesson told anew takes the place of its older wording.
        row_id = self._ids.new() if same is None else same.id
        row = rules.row_of(found, place, row_id, self._config)
        self._changes.append(row)
        return NoteResult(outcome="saved", text=row.text, ids=(row.id,))

    def _new(self, found: rules.NoteRow, place: rules.NotePlace) -> list[SaveFact]:
        """Give what this answer adds of the same kind, in the same scope."""
        return [
            row
            for row in self._changes
            if isinstance(row, SaveFact)
            and (row.kind, row.scope) == (found.kind, place.scope)
        ]

    async def _like(
        self, found: rules.NoteRow, place: rules.NotePlace
    ) -> tuple[StoredFact, ...]:
        """Give what a note may say again."""
        if found.is_event:
            return ()
        if found.key or found.kind == "lesson":
            return await self._facts.listed(
                FactListing(
                    agent=self._agent,
                    scopes=(place.scope,),
                    kinds=(found.kind,),
                    categories=(found.category,) if found.kind == "lesson" else (),
                    keys=(found.key,) if found.key else (),
                    now=place.now,
                    limit=MOST_OF_KIND,
                )
            )
        search = self._search(found, place, question_words(found.text))
        return tuple([each.fact for each in (await self._facts.search(search)).facts])

    def _search(
        self, found: rules.NoteRow, place: rules.NotePlace, words: tuple[str, ...] = ()
    ) -> FactSearch:
        return FactSearch(
            agent=self._agent,
            scopes=(place.scope,),
            kinds=(found.kind,),
            words=words,
            now=place.now,
            limit=COMPARED,
        )

    async def _make_room(self, found: rules.NoteRow, place: rules.NotePlace) -> bool:
        """Have what was of no use for longest give way; False: nothing may go."""
        config = self._config
        limits = {"fact": config.max_facts, "state": max(config.states, 1)}
        total = (await self._facts.search(self._search(found, place))).total
        total += (
            len(self._new(found, place)) - self._making_room[place.scope, found.kind]
        )
        if total < limits.get(found.kind, MOST_OF_KIND):
            return True
        listing = FactListing(
            agent=self._agent,
            scopes=(place.scope,),
            kinds=(found.kind,),
            now=place.now,
            limit=MOST_ROOM,
            is_least_used_first=True,
        )
        for fact in await self._facts.listed(listing):
            if fact.category not in LASTING and fact.id not in self._going:
                self._going.add(fact.id)
                self._making_room[place.scope, found.kind] += 1
                forget = ForgetFacts(
                    agent=self._agent, scopes=(place.scope,), ids=(fact.id,)
                )
                self._changes.append(forget)
                return True
        return False

    async def _forget(self, note: Forget, source: NoteSource, now: float) -> NoteResult:
        scopes = note.scopes or (source.scope,)
        if not set(scopes) <= {source.scope, *source.readable}:
            other = "only what is known here can be forgotten from here"
            return refused(rules.NoteRefusal("other_scope", other))
        if not source.is_owner and not all(map(is_persons, scopes)):
            owner = "only an owner may have forgotten what others know, too"
            return refused(rules.NoteRefusal("not_owner", owner))
        listing = FactListing(
            agent=self._agent,
            scopes=scopes,
            ids=note.ids,
            kinds=note.kinds,
            categories=note.categories,
            keys=note.keys,
            now=now,
            limit=MAX_FACT_ROWS,
        )
        there = await self._facts.listed(listing)
        self._changes.append(
            ForgetFacts(
                agent=self._agent,
                scopes=scopes,
                ids=note.ids,
                kinds=note.kinds,
                categories=note.categories,
                keys=note.keys,
            )
        )
        if note.is_asked:
            mark = source.as_of or self._ids.new()
            self._entries += marked(self._agent, scopes, mark)
        ids = tuple([fact.id for fact in there])
        self._going.update(ids)
        return NoteResult(outcome="forgotten", ids=ids, count=len(ids))


def is_said(row: SaveFact, found: rules.NoteRow) -> bool:
    """Whether a row of this very answer says the same as a note."""
    is_same = (row.category, row.key) == (found.category, found.key)
    return is_same and not found.is_event and row.text == found.text.strip()


def refused(why: rules.NoteRefusal) -> NoteResult:
    """Tell that nothing is kept."""
    return NoteResult(outcome="refused", text=why.text, reason=why.reason)


def provenance(source: NoteSource) -> str:
    """Write down where something comes from."""
    told = {
        "by": source.by,
        "connector": source.connector,
        "chat": source.chat,
        "sender": source.sender_id,
        "message": source.message_id,
    }
    return msgspec.json.encode(
        {key: value for key, value in told.items() if value}
    ).decode()
