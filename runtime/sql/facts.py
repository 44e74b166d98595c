"""Facts as SQL: the changes of one commit, and the reading calls.

Why searching stays fast however many facts there are: a word is indexed with the
number of its scope before it (`17zkitchen`), so that each scope has posting lists of
its own. A question touches its scopes' lists and no others, also where a word is
matched by its beginning; and how rare a word is, is counted there, so that no answer
depends on what somebody else told. FTS5's own bm25() would count every word over
the whole table. Vectors lie in the order of their scopes for the same reason; sqlite-
vec's own table `vec0` keeps whole chunks for each partition, most of them empty.

How words are looked up, and vectors compared, each engine has its own way: `Lookup`.
`SqlFacts` implements the port `Facts` and hands the work to the store's two threads.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from functools import partial
from typing import Any, NamedTuple, Protocol, TypeVar

from runtime.errors import DuplicateError
from runtime.sql.read import Db, Row
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
    refuse_fact_limit,
    refuse_listing,
    refuse_listings,
    refuse_search,
    weight,
)
from runtime.store.text import refuse_half_character

MOST_HITS = 400
"""Facts looked at for one word of a question, the newest: if more have it, it says
little."""

SEPARATOR = "z"
"""Between the number of a scope and a word: the first one, for no number has one."""

FACT = """fact.number, fact.id, home.agent, home.scope, fact.kind, fact.category,
    fact.key, fact.text, fact.words, fact.provenance, fact.part, fact.epoch,
    fact.created_at, fact.used_at, coalesce(fact.expires_at, 0.0)"""
"""The columns of a fact, in the order of its Struct's fields."""

JOINED = "fact JOIN fact_scope AS home ON home.number = fact.scope"
VALID = "(fact.expires_at IS NULL OR fact.expires_at > ?)"

HOME = "SELECT number FROM fact_scope WHERE agent = ? AND scope = ?"
# SQLite keeps no part with a scope.
NEW_HOME = """INSERT INTO fact_scope(agent, scope)
    SELECT ?, ? WHERE ? IS NOT NULL"""
EMPTY_HOME = """DELETE FROM fact_scope WHERE number = ?
    AND NOT EXISTS (SELECT 1 FROM fact WHERE scope = ?)"""
REPLACED = """DELETE FROM fact WHERE scope = ? AND (id = ?
    OR (kind = ? AND key = ? AND key <> ''))"""
SAVE = """INSERT INTO fact(id, scope, kind, category, key, text, words, provenance,
    part, epoch, created_at, used_at, expires_at, space)
    VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING"""
USE = "UPDATE fact SET used_at = ? WHERE id = ? AND scope = ?"
OWN = "SELECT number FROM fact WHERE id = ? AND scope = ?"
VECTOR = """INSERT OR REPLACE INTO fact_vector(scope, number, space, vector)
    VALUES (?, ?, ?, ?)"""
HAS_VECTOR = "UPDATE fact SET space = ? WHERE number = ?"

EXPIRED = """SELECT number, scope FROM fact WHERE expires_at <= ?
    ORDER BY expires_at, number LIMIT ?"""
UNEMBEDDED = f"""SELECT {FACT} FROM {JOINED}
    WHERE home.agent = ? AND (fact.space < ? OR fact.space > ?)
    AND fact.number > ? ORDER BY fact.number LIMIT ?"""
COUNTS = f"""SELECT fact.kind, fact.category, count(*) FROM {JOINED}
    WHERE home.agent = ? GROUP BY fact.kind, fact.category"""


class Lookup(NamedTuple):
    """How an engine finds facts."""

    hits: str
    """Gives the numbers of the facts whose words match, the newest first."""

    match: Callable[[Iterable[str]], str]
    """Writes down what matches words that begin with one of these."""

    alike: Callable[[Db, FactSearch, list[int], Collection[int]], dict[int, float]]
    """Says how alike the question and vectors of its scopes are: for the `limit` facts
    that are most alike, and for the facts that are named besides."""


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
                given = [
                    (at, name, home)
                    for home in homes(db, change.agent, change.scopes)
                    for name in change.ids
                ]
                db.executemany(USE, given)
            case PutVector():
                put_vector(db, change)


def homes(db: Db, agent: str, scopes: Iterable[str]) -> list[int]:
    """Give the numbers of an agent's scopes; an unknown scope has none."""
    found = [db.execute(HOME, (agent, scope)).get for scope in dict.fromkeys(scopes)]
    return [number for number in found if number is not None]


def save(db: Db, row: SaveFact, epoch: int, at: float) -> None:
    """Add a fact, in place of what it replaces."""
    home = db.execute(HOME, (row.agent, row.scope)).get
    if home is None:
        db.execute(NEW_HOME, (row.agent, row.scope, row.part))
        home = db.execute(HOME, (row.agent, row.scope)).get
    else:
        db.execute(REPLACED, (home, row.id, row.kind, row.key))
    words = " ".join([f"{home}{SEPARATOR}{word}" for word in row.words])
    told = (row.id, home, row.kind, row.category, row.key, row.text, words)
    kept = (row.provenance, row.part, epoch, at, at, row.expires_at or None)
    db.execute(SAVE, (*told, *kept, "" if row.wants_vector else None))
    if not db.changes():
        raise DuplicateError(
            f"fact {row.id!r} is of another scope; nobody else may replace it"
        )


def forget(db: Db, row: ForgetFacts) -> None:
    """Remove facts, and what is known of their scopes with the last one."""
    filters, given = where(row)
    for home in homes(db, row.agent, row.scopes):
        db.execute(f"DELETE FROM fact WHERE scope = ?{filters}", (home, *given))
        db.execute(EMPTY_HOME, (home, home))


def where(filters: ForgetFacts | FactListing) -> tuple[str, list[str]]:
    """Write filters as an SQL condition, and give its values."""
    sql, given = "", list[str]()
    for column, values in (
        ("id", filters.ids),
        ("kind", filters.kinds),
        ("category", filters.categories),
        ("key", filters.keys),
    ):
        if values:
            sql += f" AND fact.{column} IN ({marks(values)})"
            given += values
    return sql, given


def marks(values: Collection[object]) -> str:
    """Write one mark for each value, or what matches nothing if there is none."""
    return ", ".join("?" * len(values)) or "NULL"


def put_vector(db: Db, row: PutVector) -> None:
    """Keep the vector of a fact, if it is there still."""
    for home in homes(db, row.agent, (row.scope,)):
        number = db.execute(OWN, (row.id, home)).get
        if number is not None:
            db.execute(VECTOR, (home, number, row.space, row.vector))
            db.execute(HAS_VECTOR, (row.space, number))


def prune(db: Db, now: float, limit: int) -> int:
    """Forget expired facts."""
    old: list[tuple[int, int]] = list(db.execute(EXPIRED, (now, limit)))
    db.executemany("DELETE FROM fact WHERE number = ?", [(row[0],) for row in old])
    db.executemany(EMPTY_HOME, [(home, home) for home in {row[1] for row in old}])
    return len(old)


def search_facts(db: Db, asked: FactSearch, lookup: Lookup) -> Found:
    """Find facts by their words and their vectors, all as of one moment."""
    found = Found((), 0, (0,) * len(asked.words))
    with db:
        there = homes(db, asked.agent, asked.scopes)
        if there:
            found = search_in(db, asked, there, lookup)
    return found


def search_in(db: Db, asked: FactSearch, there: list[int], lookup: Lookup) -> Found:
    """Find facts in scopes that there are."""
    total: int = db.execute(
        f"SELECT count(*) FROM fact WHERE scope IN ({marks(there)})"
        f" AND kind IN ({marks(asked.kinds)})",
        (*there, *asked.kinds),
    ).get
    counts, evidence = hits(db, asked, there, total, lookup)
    told = heaviest(evidence, asked.limit)
    alike = lookup.alike(db, asked, there, told) if asked.vector else {}
    numbers = {*told, *alike}
    rows = db.execute(
        f"SELECT {FACT} FROM {JOINED} WHERE fact.number IN ({marks(numbers)})"
        f" AND fact.kind IN ({marks(asked.kinds)}) AND {VALID}",
        (*numbers, *asked.kinds, asked.now),
    )
    found = [FoundFact(fact_of(row), alike.get(row[0])) for row in rows]
    return Found(tuple(found), total, counts)


def hits(
    db: Db, asked: FactSearch, there: list[int], total: int, lookup: Lookup
) -> tuple[tuple[int, ...], dict[int, float]]:
    """Look each word up; give how many facts have it, and the score of each fact."""
    counts: list[int] = []
    evidence: dict[int, float] = {}
    for word in asked.words:
        match = lookup.match([f"{home}{SEPARATOR}{word}" for home in there])
        rows = list(db.execute(lookup.hits, (match,)))
        counts.append(len(rows))
        heavy = weight(total, len(rows))
        for (number,) in rows:
            evidence[number] = evidence.get(number, 0.0) + heavy
    return tuple(counts), evidence


def heaviest(evidence: dict[int, float], most: int) -> list[int]:
    """Give the numbers with the highest scores; of equal scores the newer first."""
    return sorted(evidence, key=lambda number: (-evidence[number], -number))[:most]


def listed(db: Db, listing: FactListing) -> tuple[StoredFact, ...]:
    """List facts by kind, category and key."""
    there = homes(db, listing.agent, listing.scopes)
    return listed_in(db, listing, there) if there else ()


def lists(db: Db, listings: tuple[FactListing, ...]) -> FactLists:
    """Take several listings of the same scopes, all as of one moment."""
    found = FactLists(((),) * len(listings), is_blank=True)
    with db:
        there = homes(db, listings[0].agent, listings[0].scopes)
        if there:
            found = FactLists(tuple([listed_in(db, each, there) for each in listings]))
    return found


def listed_in(db: Db, listing: FactListing, there: list[int]) -> tuple[StoredFact, ...]:
    """Give facts of scopes that there are."""
    filters, given = where(listing)
    order = "used_at, fact.number" if listing.is_least_used_first else "number DESC"
    rows = db.execute(
        f"SELECT {FACT} FROM {JOINED} WHERE fact.scope IN ({marks(there)})"
        f" AND {VALID}{filters} ORDER BY fact.{order} LIMIT ?",
        (*there, listing.now, *given, listing.limit),
    )
    return tuple([fact_of(row) for row in rows])


def unembedded(
    db: Db, agent: str, space: str, after: int, limit: int
) -> tuple[StoredFact, ...]:
    """Give facts without an embedding in this space."""
    rows = db.execute(UNEMBEDDED, (agent, space, space, after, limit))
    return tuple([fact_of(row) for row in rows])


def counts(db: Db, agent: str) -> dict[tuple[str, str], int]:
    """Count an agent's facts by kind and category."""
    rows = db.execute(COUNTS, (agent,))
    return {(kind, category): count for kind, category, count in rows}


def fact_of(row: Row) -> StoredFact:
    """Make a fact of a row that was selected by `FACT`."""
    told = list(row)
    words = [word.partition(SEPARATOR)[2] for word in row[8].split(" ") if word]
    told[8] = tuple(words)
    return StoredFact(*told)


T = TypeVar("T")


class Jobs(Protocol):
    """Has work done on a connection: `JobQueue`, in a thread of its own."""

    async def call(self, work: Callable[[Any], T], size: int = 0) -> T:
        """Have it done, and give what it gives."""
        ...


class SqlFacts:
    """Facts in SQL; see `runtime.store.facts.Facts` for what may be relied on."""

    def __init__(self, reading: Jobs, writing: Jobs, lookup: Lookup) -> None:
        self._reading = reading
        self._writing = writing
        self._lookup = lookup

    async def search(self, search: FactSearch) -> Found:
        """Find facts; see the port."""
        refuse_search(search)
        return await self._reading.call(
            partial(search_facts, asked=search, lookup=self._lookup)
        )

    async def listed(self, listing: FactListing) -> tuple[StoredFact, ...]:
        """Give facts by what they are called; see the port."""
        refuse_listing(listing)
        return await self._reading.call(partial(listed, listing=listing))

    async def lists(self, listings: tuple[FactListing, ...]) -> FactLists:
        """Take several listings at once; see the port."""
        refuse_listings(listings)
        return await self._reading.call(partial(lists, listings=listings))

    async def unembedded(
        self, agent: str, space: str, after: int = 0, limit: int = 100
    ) -> tuple[StoredFact, ...]:
        """Give facts that want a vector; see the port."""
        refuse_fact_limit(limit)
        refuse_half_character(agent + space)
        return await self._reading.call(
            partial(
                unembedded,
                agent=agent,
                space=space,
                after=after,
                limit=limit,
            )
        )

    async def counts(self, agent: str) -> dict[tuple[str, str], int]:
        """Count an agent's facts; see the port."""
        refuse_half_character(agent)
        return await self._reading.call(partial(counts, agent=agent))

    async def prune(self, now: float, limit: int = 1000) -> int:
        """Forget what has expired; see the port."""
        refuse_fact_limit(limit)
        return await self._writing.call(partial(prune, now=now, limit=limit))
