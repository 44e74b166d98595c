"""The port `Facts` on the SQLite engine: hands the work to its two threads."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Protocol, TypeVar

from runtime import sqlite_facts
from runtime.facts import (
    refuse_fact_limit,
    refuse_listing,
    refuse_listings,
    refuse_search,
)
from runtime.texts import refuse_half_character

if TYPE_CHECKING:
    from collections.abc import Callable

    import apsw

    from runtime.fact_rows import FactListing, FactLists, FactSearch, Found, StoredFact

T = TypeVar("T")


class Jobs(Protocol):
    """Has work done on a connection: `sqlite_jobs.JobQueue` in a thread of its own."""

    async def call(self, work: Callable[[apsw.Connection], T], size: int = 0) -> T:
        """Have it done, and give what it gives."""
        ...


class SqliteFacts:
    """Facts in a file; see `runtime.facts.Facts` for what may be relied on.

    Args:
        reading: who has it read.
        writing: who has it written.
    """

    def __init__(self, reading: Jobs, writing: Jobs) -> None:
        self._reading = reading
        self._writing = writing

    async def search(self, search: FactSearch) -> Found:
        """Find facts; see the port."""
        refuse_search(search)
        return await self._reading.call(partial(sqlite_facts.search, asked=search))

    async def listed(self, listing: FactListing) -> tuple[StoredFact, ...]:
        """Give facts by what they are called; see the port."""
        refuse_listing(listing)
        return await self._reading.call(partial(sqlite_facts.listed, listing=listing))

    async def lists(self, listings: tuple[FactListing, ...]) -> FactLists:
        """Take several listings at once; see the port."""
        refuse_listings(listings)
        return await self._reading.call(partial(sqlite_facts.lists, listings=listings))

    async def unembedded(
        self, agent: str, space: str, after: int = 0, limit: int = 100
    ) -> tuple[StoredFact, ...]:
        """Give facts that want a vector; see the port."""
        refuse_fact_limit(limit)
        refuse_half_character(agent + space)
        return await self._reading.call(
            partial(
                sqlite_facts.unembedded,
                agent=agent,
                space=space,
                after=after,
                limit=limit,
            )
        )

    async def counts(self, agent: str) -> dict[tuple[str, str], int]:
        """Count an agent's facts; see the port."""
        refuse_half_character(agent)
        return await self._reading.call(partial(sqlite_facts.counts, agent=agent))

    async def prune(self, now: float, limit: int = 1000) -> int:
        """Forget what has expired; see the port."""
        refuse_fact_limit(limit)
        return await self._writing.call(
            partial(sqlite_facts.prune, now=now, limit=limit)
        )
