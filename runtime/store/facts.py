"""Facts that agents remember: their rows, the changes of a commit, the port that reads.

A fact belongs to one agent and one *scope* (a person, a chat, …); a call that does not
name both neither reads nor changes it. Kinds, categories, keys and the words by which a
fact is found mean something to the caller alone: the store knows no language. A commit
changes facts (`runtime.store.rows.Commit.facts`) together with the rows that caused
the change. A forgotten fact is gone for good. Every time is Unix seconds.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable
from typing import Protocol

import msgspec

from runtime.errors import MisuseError
from runtime.store.text import refuse_half_character

MAX_SCOPES = 16
"""Most scopes of one question: a person's accounts, their group, the agent's own."""

MAX_QUESTION_WORDS = 32
"""Most words of one question."""

MAX_FACT_WORDS = 2_000
"""Most words by which one fact is found."""


class SaveFact(msgspec.Struct, frozen=True, kw_only=True, tag="save"):
    """A fact to save.

    Replaces what has the same id in its scope, and what has the same agent, scope,
    kind and key unless the key is empty.
    """

    id: str
    """Unique over all nodes; refused when another scope has it."""

    agent: str
    scope: str
    part: int
    kind: str
    text: str
    category: str = ""
    key: str = ""
    words: tuple[str, ...] = ()
    """What it is found by, each once or more often: small ASCII letters, digits, and
    anything that is not ASCII."""

    provenance: str = ""
    """Where it comes from; JSON text made by the caller."""

    expires_at: float = 0.0
    """When it is forgotten by itself; 0: never."""

    wants_vector: bool = False
    """Whether `Facts.unembedded` is to list it until it has a vector."""


class ForgetFacts(msgspec.Struct, frozen=True, kw_only=True, tag="forget"):
    """Forget the facts in these scopes that fit each filter; empty ones fit all."""

    agent: str
    scopes: tuple[str, ...]
    ids: tuple[str, ...] = ()
    kinds: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()
    keys: tuple[str, ...] = ()


class UseFacts(msgspec.Struct, frozen=True, kw_only=True, tag="use"):
    """Note that facts were used at the commit's time; forgotten ones are skipped."""

    agent: str
    scopes: tuple[str, ...]
    ids: tuple[str, ...]


class PutVector(msgspec.Struct, frozen=True, kw_only=True, tag="vector"):
    """Save the embedding of a fact; skipped if the fact is forgotten."""

    agent: str
    scope: str
    id: str
    space: str
    """Who made the vector; those of two spaces are not compared. Not empty."""

    vector: bytes
    """One signed byte for each dimension; only its direction counts."""


FactChange = SaveFact | ForgetFacts | UseFacts | PutVector


class StoredFact(msgspec.Struct, frozen=True):
    """One fact; `number` grows with every saving."""

    number: int
    id: str
    agent: str
    scope: str
    kind: str
    category: str
    key: str
    text: str
    words: tuple[str, ...]
    provenance: str
    part: int
    epoch: int
    created_at: float
    used_at: float
    """When it was of use last, or was saved."""

    expires_at: float
    """0: never."""


class FactSearch(msgspec.Struct, frozen=True, kw_only=True):
    """A search for the facts that are relevant to a question."""

    agent: str
    scopes: tuple[str, ...]
    """Where to look; at least one."""

    kinds: tuple[str, ...]
    """Which kinds; at least one."""

    words: tuple[str, ...] = ()
    """A fact fits if a word of its own begins with one of them."""

    space: str = ""
    vector: bytes = b""
    """Facts also fit by their vectors; without this only by words."""

    now: float
    """What has expired by then is not given."""

    limit: int = 100
    """Most facts by words, and again by vectors."""


class FoundFact(msgspec.Struct, frozen=True):
    """A fact, and how relevant it is to the question."""

    fact: StoredFact
    similarity: float | None = None
    """Cosine of its vector and the question's; None: one of them is missing."""


class Found(msgspec.Struct, frozen=True):
    """The result of a search, in no particular order."""

    facts: tuple[FoundFact, ...] = ()
    total: int = 0
    """How many facts of these kinds there are in these scopes."""

    counts: tuple[int, ...] = ()
    """By word: how many facts in these scopes have it, also those of other kinds or
    expired; of very common ones not all are counted."""


class FactLists(msgspec.Struct, frozen=True):
    """The results of several listings of the same scopes, as of one moment."""

    lists: tuple[tuple[StoredFact, ...], ...] = ()
    """One for each listing, in order."""

    is_blank: bool = False
    """Whether these scopes hold nothing at all, nor anything expired: only saving a
    fact changes that."""


class FactListing(msgspec.Struct, frozen=True, kw_only=True):
    """A listing of facts by kind, category and key; the last saved first."""

    agent: str
    scopes: tuple[str, ...]
    """Where to look; at least one."""

    kinds: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()
    keys: tuple[str, ...] = ()
    ids: tuple[str, ...] = ()
    """All filters that are not empty must fit."""

    now: float
    """What has expired by then is not given."""

    limit: int = 1000
    is_least_used_first: bool = False
    """Whether those come first that were of no use for longest."""


MAX_FACT_ROWS = 1000
"""Most facts one reading call may ask for."""

MAX_DIMENSIONS = 8192
"""Most bytes of one vector."""

WORD = re.compile(r"[0-9a-z\x80-\U0010ffff]{1,64}")
"""One word of an index: what FTS5's tokenizer `ascii` takes for one."""


class Facts(Protocol):
    """Reads facts, and forgets expired ones.

    Implemented by `tests/fakes/store/in_memory.py` (start there) and
    `runtime/sql/facts.py`; both pass `tests/contracts/store/test_store_facts.py`.
    All calls raise `MisuseError` for no scope at all or too many, and for a limit
    outside 1 to `MAX_FACT_ROWS`; `StoreUnavailableError` or `CorruptError` when the
    disk fails.
    """

    async def search(self, search: FactSearch) -> Found:
        """Find facts by their words and by their vectors."""
        ...

    async def listed(self, listing: FactListing) -> tuple[StoredFact, ...]:
        """List facts by kind, category and key."""
        ...

    async def lists(self, listings: tuple[FactListing, ...]) -> FactLists:
        """Take several listings at once, all as of one moment.

        Args:
            listings: at least one, all of the same agent and scopes; `MisuseError` if
                they are not.
        """
        ...

    async def unembedded(
        self, agent: str, space: str, after: int = 0, limit: int = 100
    ) -> tuple[StoredFact, ...]:
        """Give facts of an agent that have no embedding in this space yet.

        For making vectors and nothing else: it is the one reading call that gives
        facts of all scopes.

        Args:
            after: number of the last one seen; 0 from the first.
            limit: most rows to give.
        """
        ...

    async def counts(self, agent: str) -> dict[tuple[str, str], int]:
        """Count an agent's facts by kind and category, over all scopes."""
        ...

    async def prune(self, now: float, limit: int = 1000) -> int:
        """Forget what has expired by `now`, first what expired first.

        Returns:
            How many; call again while it equals the limit.
        """
        ...


def refuse_fact_misuse(changes: Iterable[FactChange]) -> None:
    """Refuse changes that no engine could store.

    Raises:
        MisuseError: a change names no scope, or what it brings can never be stored.
    """
    for change in changes:
        if isinstance(change, SaveFact):
            refuse_words(change.words, MAX_FACT_WORDS)
            refuse_nameless(change.agent, (change.scope,))
            if not math.isfinite(change.expires_at):
                raise MisuseError(f"{change.expires_at} is not a time; give seconds")
        elif isinstance(change, PutVector):
            refuse_nameless(change.agent, (change.scope,))
            refuse_vector(change.space, change.vector)
        else:
            refuse_nameless(change.agent, change.scopes)
            if isinstance(change, ForgetFacts):
                refuse_filters(change)


def refuse_filters(filters: ForgetFacts | FactListing) -> None:
    """Refuse more filters than an engine takes, and texts that it cannot store.

    Raises:
        MisuseError: they are more than `MAX_FACT_ROWS`, or hold half a character.
    """
    named = (*filters.ids, *filters.kinds, *filters.categories, *filters.keys)
    if len(named) > MAX_FACT_ROWS:
        raise MisuseError(f"{len(named)} filters are more than {MAX_FACT_ROWS}")
    refuse_half_character("".join((filters.agent, *filters.scopes, *named)))


def refuse_nameless(agent: str, scopes: tuple[str, ...]) -> None:
    """Refuse a call that names no agent or no scope.

    Raises:
        MisuseError: no agent or no scope is named, or too many are.
    """
    if not agent or not scopes or not all(scopes):
        raise MisuseError(
            "facts are of an agent and of scopes; name the agent and each"
        )
    if len(scopes) > MAX_SCOPES:
        raise MisuseError(f"{len(scopes)} scopes are more than {MAX_SCOPES} at once")


def refuse_vector(space: str, vector: bytes) -> None:
    """Check a vector.

    Raises:
        MisuseError: it is of no space, empty or too long.
    """
    if not space or not 1 <= len(vector) <= MAX_DIMENSIONS:
        raise MisuseError(
            f"a vector of {len(vector)} bytes in space {space!r} cannot be kept; it"
            f" needs a space and 1 to {MAX_DIMENSIONS} bytes"
        )


def refuse_words(words: tuple[str, ...], most: int) -> None:
    """Check words of a fact or a question.

    Raises:
        MisuseError: there are too many, or one of them is none.
    """
    if len(words) > most:
        raise MisuseError(f"{len(words)} words are more than {most}")
    for word in words:
        if WORD.fullmatch(word) is None:
            raise MisuseError(f"{word!a} is not a word; see `runtime.store.facts.WORD`")


def refuse_search(search: FactSearch) -> None:
    """Check a question.

    Raises:
        MisuseError: see `Facts`.
    """
    refuse_nameless(search.agent, search.scopes)
    refuse_fact_limit(search.limit)
    refuse_words(search.words, MAX_QUESTION_WORDS)
    refuse_half_character(
        "".join((search.agent, *search.scopes, *search.kinds, *search.words))
    )
    if search.vector:
        refuse_vector(search.space, search.vector)


def refuse_listing(listing: FactListing) -> None:
    """Check a listing.

    Raises:
        MisuseError: see `Facts`.
    """
    refuse_nameless(listing.agent, listing.scopes)
    refuse_fact_limit(listing.limit)
    refuse_filters(listing)


def refuse_listings(listings: tuple[FactListing, ...]) -> None:
    """Check listings that are taken at once.

    Raises:
        MisuseError: see `Facts`.
    """
    if len({(each.agent, each.scopes) for each in listings}) != 1:
        raise MisuseError(
            "listings taken at once are of one agent and the same scopes, and one at"
            " least"
        )
    for each in listings:
        refuse_listing(each)


def refuse_fact_limit(limit: int) -> None:
    """Check a row limit.

    Raises:
        MisuseError: it is outside 1 to `MAX_FACT_ROWS`.
    """
    if not 1 <= limit <= MAX_FACT_ROWS:
        raise MisuseError(f"limit {limit} is not in 1 to {MAX_FACT_ROWS}")


def fact_texts(changes: Iterable[FactChange]) -> list[str]:
    """All text of changes, which must be Unicode to be stored."""
    found: list[str] = []
    for change in changes:
        found.append(change.agent)
        if isinstance(change, SaveFact):
            found += (change.id, change.scope, change.kind, change.category, change.key)
            found += (change.text, change.provenance, *change.words)
        elif isinstance(change, PutVector):
            found += (change.scope, change.id, change.space)
        else:
            found += (*change.scopes, *change.ids)
    return found


def fact_bytes(changes: Iterable[FactChange]) -> int:
    """About how many bytes changes hold."""
    return sum(
        len(change.text) + len(change.provenance)
        if isinstance(change, SaveFact)
        else len(change.vector)
        if isinstance(change, PutVector)
        else 0
        for change in changes
    )


def weight(total: int, count: int) -> float:
    """Give the weight of a word in a search; rare words weigh more.

    Args:
        count: how many of them have it.

    Source: the inverse document frequency of BM25, kept above zero as in Lucene.
    """
    return math.log1p((max(total, count) - count + 0.5) / (count + 0.5))
