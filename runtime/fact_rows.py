"""What is remembered, as rows: facts, the changes a commit makes to them, questions.

Shapes only; `facts.py` says what may be done with them. A fact belongs to one agent
and one *scope* (a person, a chat, …), and nothing reads or changes it that does not
name both. Kinds, categories and keys mean something to the caller alone, as do the
words that a fact is found by: the store knows no language. Unlike the journal, facts
are plain rows: what is forgotten is gone. Every time is Unix seconds.
"""

from __future__ import annotations

import msgspec

MAX_SCOPES = 16
"""Most scopes of one question: a person's accounts, their group, the agent's own."""

MAX_QUESTION_WORDS = 32
"""Most words of one question."""

MAX_FACT_WORDS = 2_000
"""Most words by which one fact is found."""


class SaveFact(msgspec.Struct, frozen=True, kw_only=True):
    """Something to remember.

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


class ForgetFacts(msgspec.Struct, frozen=True, kw_only=True):
    """All facts in these scopes that fit each filter which is not empty."""

    agent: str
    scopes: tuple[str, ...]
    ids: tuple[str, ...] = ()
    kinds: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()
    keys: tuple[str, ...] = ()


class UseFacts(msgspec.Struct, frozen=True, kw_only=True):
    """Facts that were of use, at the commit's time; those that are gone stay gone."""

    agent: str
    scopes: tuple[str, ...]
    ids: tuple[str, ...]


class PutVector(msgspec.Struct, frozen=True, kw_only=True):
    """Where a fact lies among others by its meaning; nothing if it is gone."""

    agent: str
    scope: str
    id: str
    space: str
    """Who made the vector; those of two spaces are not compared. Not empty."""

    vector: bytes
    """One signed byte for each dimension; only its direction counts."""


FactChange = SaveFact | ForgetFacts | UseFacts | PutVector


class StoredFact(msgspec.Struct, frozen=True, kw_only=True):
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
    """A question: which facts have something to do with it?"""

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
    """A fact, and what it has to do with the question."""

    fact: StoredFact
    similarity: float | None = None
    """Cosine of its vector and the question's; None: one of them is missing."""


class Found(msgspec.Struct, frozen=True):
    """What a search gave, in no particular order."""

    facts: tuple[FoundFact, ...] = ()
    total: int = 0
    """How many facts of these kinds there are in these scopes."""

    counts: tuple[int, ...] = ()
    """By word: how many facts in these scopes have it, also those of other kinds or
    expired; of very common ones not all are counted."""


class FactLists(msgspec.Struct, frozen=True):
    """What several listings of the same scopes gave, all as of one moment."""

    lists: tuple[tuple[StoredFact, ...], ...] = ()
    """One for each listing, in order."""

    is_blank: bool = False
    """Whether these scopes hold nothing at all, nor anything expired: only saving a
    fact changes that."""


class FactListing(msgspec.Struct, frozen=True, kw_only=True):
    """Facts by what they are called, not by what they say; those saved last first."""

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
