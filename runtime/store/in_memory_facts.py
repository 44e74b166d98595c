"""Facts in memory: how changes apply to them, and how a search finds them.

The twin of `runtime/sql/facts.py`, for tests in virtual time. Knows nothing of
tasks, faults or closing; see `in_memory.py`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable

import msgspec

from runtime.errors import DuplicateError
from runtime.store.facts import (
    FactChange,
    FactListing,
    FactLists,
    FactSearch,
    ForgetFacts,
    Found,
    FoundFact,
    PutVector,
    SaveFact,
    StoredFact,
    UseFacts,
    weight,
)
from runtime.store.vectors import cosine


class FactRows:
    """All facts; takes back a commit that fails half way.

    Args:
        undo: what a failing commit takes back, last first.
    """

    def __init__(self, undo: list[Callable[[], object]]) -> None:
        self._undo = undo
        self._facts: dict[str, StoredFact] = {}
        self._scopes: dict[tuple[str, str], dict[str, StoredFact]] = {}
        """The same, by agent and scope."""

        self._vectors: dict[str, tuple[str, bytes]] = {}
        self._wanting: set[str] = set()
        self._number = 0

    def apply(self, changes: Iterable[FactChange], epoch: int, at: float) -> None:
        """Take in changes, one after the other.

        Raises:
            DuplicateError: an id is another scope's.
        """
        for change in changes:
            match change:
                case SaveFact():
                    self._save(change, epoch, at)
                case ForgetFacts():
                    for fact in [f for f in self._of(change) if fits(f, change)]:
                        self._drop(fact)
                case UseFacts():
                    for fact in [f for f in self._of(change) if f.id in change.ids]:
                        self._put(msgspec.structs.replace(fact, used_at=at))
                case PutVector():
                    self._put_vector(change)

    def _of(self, change: ForgetFacts | UseFacts) -> list[StoredFact]:
        return self._in(change.agent, change.scopes)

    def _in(self, agent: str, scopes: tuple[str, ...]) -> list[StoredFact]:
        there = [self._scopes.get((agent, each), {}) for each in dict.fromkeys(scopes)]
        return [fact for facts in there for fact in facts.values()]

    def _save(self, row: SaveFact, epoch: int, at: float) -> None:
        for fact in self._in(row.agent, (row.scope,)):
            has_key = row.key and (fact.kind, fact.key) == (row.kind, row.key)
            if fact.id == row.id or has_key:
                self._drop(fact)
        if row.id in self._facts:
            raise DuplicateError(
                f"fact {row.id!r} is of another scope; nobody else may replace it"
            )
        self._number += 1
        fact = StoredFact(
            number=self._number,
            id=row.id,
            agent=row.agent,
            scope=row.scope,
            kind=row.kind,
            category=row.category,
            key=row.key,
            text=row.text,
            words=row.words,
            provenance=row.provenance,
            part=row.part,
            epoch=epoch,
            created_at=at,
            used_at=at,
            expires_at=row.expires_at,
        )
        self._put(fact)
        if row.wants_vector:
            self._wanting.add(row.id)
            self._undo.append(lambda: self._wanting.discard(row.id))

    def _put(self, fact: StoredFact) -> None:
        before = self._facts.get(fact.id)
        self._set(fact)
        if before is None:
            self._undo.append(lambda: self._unset(fact))
        else:
            self._undo.append(lambda: self._set(before))

    def _set(self, fact: StoredFact) -> None:
        self._facts[fact.id] = fact
        self._scopes.setdefault((fact.agent, fact.scope), {})[fact.id] = fact

    def _unset(self, fact: StoredFact) -> None:
        del self._facts[fact.id]
        del self._scopes[fact.agent, fact.scope][fact.id]

    def _drop(self, fact: StoredFact) -> None:
        vector = self._vectors.pop(fact.id, None)
        was_wanting = fact.id in self._wanting
        self._wanting.discard(fact.id)
        self._unset(fact)

        def back() -> None:
            self._set(fact)
            if vector is not None:
                self._vectors[fact.id] = vector
            if was_wanting:
                self._wanting.add(fact.id)

        self._undo.append(back)

    def _put_vector(self, row: PutVector) -> None:
        fact = self._facts.get(row.id)
        if fact is None or (fact.agent, fact.scope) != (row.agent, row.scope):
            return
        before = self._vectors.get(row.id)
        self._vectors[row.id] = (row.space, row.vector)
        if before is None:
            self._undo.append(lambda: self._vectors.pop(row.id))
        else:
            self._undo.append(lambda: self._vectors.update({row.id: before}))

    def search(self, search: FactSearch) -> Found:
        """Find facts; see `runtime.store.facts.Facts`."""
        here = self._in(search.agent, search.scopes)
        there = [fact for fact in here if fact.kind in search.kinds]
        now = [fact for fact in there if is_valid(fact, search.now)]
        counts = tuple(sum(has(fact, word) for fact in here) for word in search.words)
        weights = [weight(len(there), count) for count in counts]
        evidence: dict[str, float] = {}
        for fact in now:
            for word, heavy in zip(search.words, weights, strict=True):
                if has(fact, word):
                    evidence[fact.id] = evidence.get(fact.id, 0.0) + heavy
        likeness = {
            fact.id: alike
            for fact in now
            if (alike := self._similarity(fact, search)) is not None
        }
        wanted = dict.fromkeys(top(evidence, search.limit))
        wanted |= dict.fromkeys(top(likeness, search.limit))
        found = tuple(
            FoundFact(self._facts[name], likeness.get(name)) for name in wanted
        )
        return Found(found, len(there), counts)

    def _similarity(self, fact: StoredFact, search: FactSearch) -> float | None:
        space, vector = self._vectors.get(fact.id, ("", b""))
        is_alike = space == search.space and len(vector) == len(search.vector)
        return cosine(vector, search.vector) if vector and is_alike else None

    def listed(self, listing: FactListing) -> tuple[StoredFact, ...]:
        """List facts by kind, category and key; see `runtime.store.facts.Facts`."""
        found = [
            fact
            for fact in self._in(listing.agent, listing.scopes)
            if is_valid(fact, listing.now) and fits(fact, listing)
        ]
        if listing.is_least_used_first:
            found.sort(key=lambda fact: (fact.used_at, fact.number))
        else:
            found.sort(key=lambda fact: fact.number, reverse=True)
        return tuple(found[: listing.limit])

    def lists(self, listings: tuple[FactListing, ...]) -> FactLists:
        """Take several listings at once; see `runtime.store.facts.Facts`."""
        first = listings[0]
        is_blank = not self._in(first.agent, first.scopes)
        return FactLists(tuple(map(self.listed, listings)), is_blank=is_blank)

    def unembedded(
        self, agent: str, space: str, after: int, limit: int
    ) -> tuple[StoredFact, ...]:
        """Give facts without an embedding; see `runtime.store.facts.Facts`."""
        found = [
            fact
            for fact in self._facts.values()
            if fact.agent == agent
            and fact.number > after
            and fact.id in self._wanting
            and self._vectors.get(fact.id, ("", b""))[0] != space
        ]
        return tuple(sorted(found, key=lambda fact: fact.number)[:limit])

    def counts(self, agent: str) -> dict[tuple[str, str], int]:
        """Count an agent's facts by kind and category."""
        return dict(
            Counter(
                (fact.kind, fact.category)
                for fact in self._facts.values()
                if fact.agent == agent
            )
        )

    def prune(self, now: float, limit: int) -> int:
        """Forget expired facts, those that expired first first."""
        old = sorted(
            (fact.expires_at, fact.number, fact)
            for fact in self._facts.values()
            if not is_valid(fact, now)
        )[:limit]
        for _, _, fact in old:
            self._drop(fact)
        self._undo.clear()
        return len(old)


def is_valid(fact: StoredFact, now: float) -> bool:
    """Whether a fact has not expired."""
    return not fact.expires_at or fact.expires_at > now


def fits(fact: StoredFact, filters: ForgetFacts | FactListing) -> bool:
    """Whether a fact fits each filter that is not empty."""
    return (
        (not filters.ids or fact.id in filters.ids)
        and (not filters.kinds or fact.kind in filters.kinds)
        and (not filters.categories or fact.category in filters.categories)
        and (not filters.keys or fact.key in filters.keys)
    )


def has(fact: StoredFact, word: str) -> bool:
    """Whether a word of a fact begins with this one."""
    return any(own.startswith(word) for own in fact.words)


def top(evidence: dict[str, float], most: int) -> list[str]:
    """Give the names with the most evidence."""
    return sorted(evidence, key=lambda name: (-evidence[name], name))[:most]
