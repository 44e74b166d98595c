"""What the kernel asks of a store of facts: one port; `fact_rows.py` has its shapes.

Changes to facts are part of a commit (`runtime.rows.Commit.facts`), so that they
become durable with what caused them. Here is what is read, and what is checked before
an engine is asked. There is no way to read one scope's facts by naming another.
"""

from __future__ import annotations

import math
import re
from typing import TYPE_CHECKING, Protocol

from runtime.errors import MisuseError
from runtime.fact_rows import (
    MAX_FACT_WORDS,
    MAX_QUESTION_WORDS,
    MAX_SCOPES,
    PutVector,
    SaveFact,
)
from runtime.texts import refuse_half_character

if TYPE_CHECKING:
    from collections.abc import Iterable

    from runtime.fact_rows import (
        FactChange,
        FactListing,
        FactLists,
        FactSearch,
        Found,
        StoredFact,
    )

MAX_FACT_ROWS = 1000
"""Most facts one reading call may ask for."""

MAX_DIMENSIONS = 8192
"""Most bytes of one vector."""

WORD = re.compile(r"[0-9a-z\x80-\U0010ffff]{1,64}")
"""One word of an index: what FTS5's tokenizer `ascii` takes for one."""


class Facts(Protocol):
    """Reads facts, and forgets those whose time is over.

    Implemented by `runtime/memory_facts.py` (start there) and
    `runtime/sqlite_facts.py`; both pass `tests/contracts/test_store_facts.py`. All
    calls raise `MisuseError` for no scope at all or too many, and for a limit outside
    1 to `MAX_FACT_ROWS`; `StoreUnavailableError` or `CorruptError` when the disk
    fails.
    """

    async def search(self, search: FactSearch) -> Found:
        """Find facts by their words and by their vectors."""
        ...

    async def listed(self, listing: FactListing) -> tuple[StoredFact, ...]:
        """Give facts by what they are called."""
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
        """Give facts of an agent that want a vector and have none of this space.

        For making vectors and nothing else: it is the one reading call that gives
        facts of all scopes.

        Args:
            agent: whose.
            space: which vectors are wanted.
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
    """Check what no engine needs to be asked for.

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


def refuse_nameless(agent: str, scopes: tuple[str, ...]) -> None:
    """Check that somebody's facts are meant.

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
            raise MisuseError(f"{word!a} is not a word; see `runtime.facts.WORD`")


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
    named = (*listing.kinds, *listing.categories, *listing.keys, *listing.ids)
    if len(named) > MAX_FACT_ROWS:
        raise MisuseError(f"{len(named)} filters are more than {MAX_FACT_ROWS}")
    refuse_half_character("".join((listing.agent, *listing.scopes, *named)))


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
    """Say how much a word says about what it is found in: rare ones say more.

    Args:
        total: how many there are.
        count: how many of them have it.

    Source: the inverse document frequency of BM25, kept above zero as in Lucene.
    """
    return math.log1p((max(total, count) - count + 0.5) / (count + 0.5))
