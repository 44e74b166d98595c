"""Facts as SQL for PostgreSQL: the changes of one commit, and the reading calls.

A word is indexed with the number of its scope before it (`17zkitchen`), as in SQLite:
so a question touches the words of its scopes and no others, also where a word is
matched by its beginning. Vectors are compared here, by our own arithmetic, those of the
question's scopes one after the other: a scope has hundreds of facts, not millions.

`PostgresqlFacts` implements the port `Facts` and hands the work to the store's threads.
"""

from __future__ import annotations

import heapq
from functools import partial
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from runtime.errors import DuplicateError
from runtime.postgresql.read import Rows, moment, rows_of, run
from runtime.store.facts import (
    FactLists,
    ForgetFacts,
    Found,
    FoundFact,
    PutVector,
    SaveFact,
    StoredFact,
    UseFacts,
    refuse_fact_limit,
    refuse_listing,
    refuse_listings,
    refuse_search,
    weight,
)
from runtime.store.text import refuse_half_character
from runtime.store.vectors import cosine

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from runtime.postgresql.server import Db
    from runtime.store.facts import FactChange, FactListing, FactSearch

MOST_HITS = 400
"""Facts looked at for one word of a question, the newest: if more have it, it says
little."""

SEPARATOR = "z"
"""Between the number of a scope and a word: the first one, for no number has one."""

FACT = """fact.number, fact.id, home.agent, home.scope, fact.kind, fact.category,
    fact.key, fact.text, fact.words, fact.provenance, fact.part, fact.epoch,
    fact.created_at, fact.used_at, coalesce(fact.expires_at, 0)"""
JOINED = "fact JOIN fact_scope AS home ON home.number = fact.scope"
VALID = "(fact.expires_at IS NULL OR fact.expires_at > %s)"

HOMES = """SELECT number FROM fact_scope
    WHERE agent = %s AND scope = ANY(%s::text[]) ORDER BY number"""
NEW_HOME = """INSERT INTO fact_scope(part, agent, scope) VALUES (%s, %s, %s)
    RETURNING number"""
EMPTY_HOMES = """DELETE FROM fact_scope WHERE number = ANY(%s::bigint[])
    AND NOT EXISTS (SELECT 1 FROM fact WHERE fact.scope = fact_scope.number)"""
REPLACED = """DELETE FROM fact WHERE scope = %s AND (id = %s
    OR (kind = %s AND key = %s AND key <> ''))"""
SAVE = """INSERT INTO fact(id, scope, kind, category, key, text, words, provenance,
    part, epoch, created_at, used_at, expires_at, space)
    VALUES (%s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s)
    ON CONFLICT DO NOTHING"""
USE = """UPDATE fact SET used_at = %s
    WHERE id = ANY(%s::text[]) AND scope = ANY(%s::bigint[])"""
FORGET = """DELETE FROM fact WHERE scope = ANY(%(homes)s::bigint[])"""
VECTOR = """INSERT INTO fact_vector(part, scope, number, space, vector)
    SELECT part, scope, number, %s, %s FROM fact WHERE id = %s AND scope = %s
    ON CONFLICT(part, scope, number) DO UPDATE
    SET space = excluded.space, vector = excluded.vector"""
HAS_VECTOR = "UPDATE fact SET space = %s WHERE id = %s AND scope = %s"

TOTAL = """SELECT count(*) FROM fact
    WHERE scope = ANY(%s::bigint[]) AND kind = ANY(%s::text[])"""
HITS = f"""SELECT number FROM fact WHERE lexemes @@ %s::tsquery
    ORDER BY number DESC LIMIT {MOST_HITS}"""
VECTORS = """SELECT number, vector FROM fact_vector
    WHERE scope = ANY(%s::bigint[]) AND space = %s AND length(vector) = %s"""
FOUND = f"""SELECT {FACT} FROM {JOINED} WHERE fact.number = ANY(%s::bigint[])
    AND fact.kind = ANY(%s::text[]) AND {VALID}"""
EXPIRED = """DELETE FROM fact WHERE number IN (SELECT number FROM fact
    WHERE expires_at <= %s ORDER BY expires_at, number LIMIT %s) RETURNING scope"""
UNEMBEDDED = f"""SELECT {FACT} FROM {JOINED}
    WHERE home.agent = %s AND fact.space <> %s
    AND fact.number > %s ORDER BY fact.number LIMIT %s"""
COUNTS = f"""SELECT fact.kind, fact.category, count(*) FROM {JOINED}
    WHERE home.agent = %s GROUP BY fact.kind, fact.category"""

FILTERS = ("id", "kind", "category", "key")
"""Columns that listings and forgetting choose by."""


def change_facts(db: Db, changes: Iterable[FactChange], epoch: int, at: float) -> None:
    """Write the changes of facts of one commit, one after the other.

    Raises:
        DuplicateError: an id is another scope's.
    """
    for change in changes:
        match change:
            case SaveFact():
                save(db, change, epoch, at)
            case ForgetFacts():
                forget(db, change)
            case UseFacts():
                there = homes(db, change.agent, change.scopes)
                run(db, USE, (at, list(change.ids), there))
            case PutVector():
                put_vector(db, change)


def homes(db: Db, agent: str, scopes: Iterable[str]) -> list[int]:
    """Give the numbers of an agent's scopes; an unknown scope has none."""
    return [row[0] for row in rows_of(db, HOMES, (agent, list(scopes)))]


def save(db: Db, row: SaveFact, epoch: int, at: float) -> None:
    """Add a fact, in place of what it replaces."""
    there = homes(db, row.agent, (row.scope,))
    if there:
        home = there[0]
        run(db, REPLACED, (home, row.id, row.kind, row.key))
    else:
        home = rows_of(db, NEW_HOME, (row.part, row.agent, row.scope))[0][0]
    words = " ".join([f"{home}{SEPARATOR}{word}" for word in row.words])
    told = (row.id, home, row.kind, row.category, row.key, row.text, words)
    kept = (row.provenance, row.part, epoch, at, at, row.expires_at or None)
    if not run(db, SAVE, (*told, *kept, "" if row.wants_vector else None)):
        raise DuplicateError(
            f"fact {row.id!r} is of another scope; nobody else may replace it"
        )


def forget(db: Db, row: ForgetFacts) -> None:
    """Remove facts, and what is known of their scopes with the last one."""
    there = homes(db, row.agent, row.scopes)
    if there:
        filters, given = where(row)
        run(db, FORGET + filters, {"homes": there, **given})
        run(db, EMPTY_HOMES, (there,))


def where(filters: ForgetFacts | FactListing) -> tuple[str, dict[str, object]]:
    """Write filters as an SQL condition, and give its values."""
    sql, given = "", dict[str, object]()
    chosen = (filters.ids, filters.kinds, filters.categories, filters.keys)
    for column, values in zip(FILTERS, chosen, strict=True):
        if values:
            sql += f" AND fact.{column} = ANY(%({column})s::text[])"
            given[column] = list(values)
    return sql, given


def put_vector(db: Db, row: PutVector) -> None:
    """Keep the vector of a fact, if it is there still."""
    for home in homes(db, row.agent, (row.scope,)):
        if run(db, VECTOR, (row.space, row.vector, row.id, home)):
            run(db, HAS_VECTOR, (row.space, row.id, home))


def prune(db: Db, now: float, limit: int) -> int:
    """Forget expired facts."""
    gone = [row[0] for row in rows_of(db, EXPIRED, (now, limit))]
    if gone:
        run(db, EMPTY_HOMES, (sorted(set(gone)),))
    return len(gone)


def search_facts(db: Db, asked: FactSearch) -> Found:
    """Find facts by their words and their vectors, all as of one moment."""
    with moment(db):
        there = homes(db, asked.agent, asked.scopes)
        if there:
            return search_in(db, asked, there)
    return Found((), 0, (0,) * len(asked.words))


def search_in(db: Db, asked: FactSearch, there: list[int]) -> Found:
    """Find facts in scopes that there are."""
    kinds = list(asked.kinds)
    total: int = rows_of(db, TOTAL, (there, kinds))[0][0]
    counts, evidence = hits(db, asked, there, total)
    alike = likeness(db, asked, there)
    near = heapq.nsmallest(
        asked.limit, alike, key=lambda number: (-alike[number], number)
    )
    numbers = sorted({*heaviest(evidence, asked.limit), *near})
    rows = rows_of(db, FOUND, (numbers, kinds, asked.now))
    found = [FoundFact(fact_of(row), alike.get(row[0])) for row in rows]
    return Found(tuple(found), total, counts)


def hits(
    db: Db, asked: FactSearch, there: list[int], total: int
) -> tuple[tuple[int, ...], dict[int, float]]:
    """Look each word up; give how many facts have it, and the score of each fact."""
    counts: list[int] = []
    evidence: dict[int, float] = {}
    for word in asked.words:
        match = " | ".join([f"'{home}{SEPARATOR}{word}':*" for home in there])
        rows = rows_of(db, HITS, (match,))
        counts.append(len(rows))
        heavy = weight(total, len(rows))
        for (number,) in rows:
            evidence[number] = evidence.get(number, 0.0) + heavy
    return tuple(counts), evidence


def heaviest(evidence: dict[int, float], most: int) -> list[int]:
    """Give the numbers with the highest scores; of equal scores the newer first."""
    return sorted(evidence, key=lambda number: (-evidence[number], -number))[:most]


def likeness(db: Db, asked: FactSearch, there: list[int]) -> dict[int, float]:
    """Say how alike the question and the vectors of all facts in its scopes are."""
    if not asked.vector:
        return {}
    rows = rows_of(db, VECTORS, (there, asked.space, len(asked.vector)))
    return {number: cosine(asked.vector, vector) for number, vector in rows}


def listed(db: Db, listing: FactListing) -> tuple[StoredFact, ...]:
    """List facts by kind, category and key."""
    there = homes(db, listing.agent, listing.scopes)
    return listed_in(db, listing, there) if there else ()


def lists(db: Db, listings: tuple[FactListing, ...]) -> FactLists:
    """Take several listings of the same scopes, all as of one moment."""
    with moment(db):
        there = homes(db, listings[0].agent, listings[0].scopes)
        if there:
            return FactLists(tuple([listed_in(db, each, there) for each in listings]))
    return FactLists(((),) * len(listings), is_blank=True)


def listed_in(db: Db, listing: FactListing, there: list[int]) -> tuple[StoredFact, ...]:
    """Give facts of scopes that there are."""
    filters, given = where(listing)
    order = "used_at, fact.number" if listing.is_least_used_first else "number DESC"
    sql = f"""SELECT {FACT} FROM {JOINED} WHERE fact.scope = ANY(%(homes)s::bigint[])
        AND (fact.expires_at IS NULL OR fact.expires_at > %(now)s){filters}
        ORDER BY fact.{order} LIMIT %(limit)s"""
    chosen = {"homes": there, "now": listing.now, "limit": listing.limit, **given}
    rows: Rows = db.execute(sql.encode(), chosen, binary=True).fetchall()
    return tuple([fact_of(row) for row in rows])


def unembedded(
    db: Db, agent: str, space: str, after: int, limit: int
) -> tuple[StoredFact, ...]:
    """Give facts without an embedding in this space."""
    rows = rows_of(db, UNEMBEDDED, (agent, space, after, limit))
    return tuple([fact_of(row) for row in rows])


def counts(db: Db, agent: str) -> dict[tuple[str, str], int]:
    """Count an agent's facts by kind and category."""
    rows = rows_of(db, COUNTS, (agent,))
    return {(kind, category): count for kind, category, count in rows}


def fact_of(row: tuple[Any, ...]) -> StoredFact:
    """Make a fact of a row that was selected by `FACT`."""
    words = tuple([word.partition(SEPARATOR)[2] for word in row[8].split(" ") if word])
    return StoredFact(
        number=row[0],
        id=row[1],
        agent=row[2],
        scope=row[3],
        kind=row[4],
        category=row[5],
        key=row[6],
        text=row[7],
        words=words,
        provenance=row[9],
        part=row[10],
        epoch=row[11],
        created_at=row[12],
        used_at=row[13],
        expires_at=row[14],
    )


T = TypeVar("T")


class Asks(Protocol):
    """Has something read by a connection, in a thread of its own or at once."""

    async def __call__(self, work: Callable[[Db], T]) -> T:
        """Have it done, and give what it gives."""
        ...


class PostgresqlFacts:
    """Facts on a server; see `runtime.store.facts.Facts` for what may be relied on.

    Args:
        read: who has it read.
        write: who has it written.
    """

    def __init__(self, read: Asks, write: Asks) -> None:
        self._read = read
        self._write = write

    async def search(self, search: FactSearch) -> Found:
        """Find facts; see the port."""
        refuse_search(search)
        return await self._read(partial(search_facts, asked=search))

    async def listed(self, listing: FactListing) -> tuple[StoredFact, ...]:
        """Give facts by what they are called; see the port."""
        refuse_listing(listing)
        return await self._read(partial(listed, listing=listing))

    async def lists(self, listings: tuple[FactListing, ...]) -> FactLists:
        """Take several listings at once; see the port."""
        refuse_listings(listings)
        return await self._read(partial(lists, listings=listings))

    async def unembedded(
        self, agent: str, space: str, after: int = 0, limit: int = 100
    ) -> tuple[StoredFact, ...]:
        """Give facts that want a vector; see the port."""
        refuse_fact_limit(limit)
        refuse_half_character(agent + space)
        return await self._read(
            partial(unembedded, agent=agent, space=space, after=after, limit=limit)
        )

    async def counts(self, agent: str) -> dict[tuple[str, str], int]:
        """Count an agent's facts; see the port."""
        refuse_half_character(agent)
        return await self._read(partial(counts, agent=agent))

    async def prune(self, now: float, limit: int = 1000) -> int:
        """Forget expired facts; see the port."""
        refuse_fact_limit(limit)
        return await self._write(partial(prune, now=now, limit=limit))
