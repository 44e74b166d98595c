"""A connection to a server that takes the statements of `runtime.sql`.

It behaves as apsw's does, and translates. While it is `is_sending`, no statement waits
for the answer of the one before: then what `changes` and `last_insert_rowid` give is a
promise, looked at when all have been answered (`check`, `settled`).
"""

from __future__ import annotations

import functools
import heapq
import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import suppress
from types import TracebackType
from typing import Any

import msgspec
import psycopg
from psycopg.pq import TransactionStatus

from runtime.errors import StoreError, StoreUnavailableError
from runtime.postgresql.migrations import HAS_DIRECTIONS
from runtime.postgresql.server import Db
from runtime.sql import facts, write
from runtime.sql.facts import MOST_HITS, Lookup, SqlFacts, marks, search_facts
from runtime.sql.read import Db as SqlDb, Row
from runtime.sql.vectors import compare
from runtime.store.facts import FactSearch, Found, refuse_search
from runtime.store.rows import Committed

OTHERWISE = {
    # A record that is replaced gets a new number: it is the one written last.
    write.RECORD: """INSERT INTO record(kind, id, owner, part, epoch, body, at)
        VALUES (?, ?, ?, ?, ?, ?, ?) ON CONFLICT(kind, id) DO UPDATE SET
        number = excluded.number, owner = excluded.owner, part = excluded.part,
        epoch = excluded.epoch, body = excluded.body, at = excluded.at""",
    facts.NEW_HOME: "INSERT INTO fact_scope(agent, scope, part) VALUES (?, ?, ?)",
    facts.VECTOR: """INSERT INTO fact_vector(part, scope, number, space, vector)
        SELECT part, given.* FROM (VALUES (?::bigint, ?::bigint, ?::text, ?::bytea))
            AS given(scope, number, space, vector) JOIN fact USING(number)
        ON CONFLICT(part, scope, number) DO UPDATE
        SET space = excluded.space, vector = excluded.vector""",
}
"""What PostgreSQL is told in place of a statement."""

NUMBERED = ("INSERT INTO inbox", "INSERT INTO outbox")
"""How statements begin whose row's number is asked for."""

HINT = re.compile(r"INDEXED BY \w+")
"""SQLite is told which index to use; PostgreSQL chooses."""


@functools.lru_cache(maxsize=1000)
def translated(sql: str) -> bytes:
    """Write a statement of SQLite's as PostgreSQL takes it."""
    sql = HINT.sub("", OTHERWISE.get(sql, sql)).replace("?", "%s")
    return f"{sql}{' RETURNING number' if sql.startswith(NUMBERED) else ''}".encode()


class Given:
    """The rows that a statement gives; they are waited for when they are looked at."""

    def __init__(self, cursor: psycopg.Cursor[Row]) -> None:
        self._cursor = cursor

    def __iter__(self) -> Iterator[Row]:
        """Give them, each once."""
        return iter(self._cursor.fetchall())

    @property
    def get(self) -> Any:  # noqa: ANN401  what it is, the statement says
        """The first row, its value alone if it has one column; None: there is none."""
        row = self._cursor.fetchone()
        if row is None:
            return None
        first, *others = row
        return row if others else first


class Session:
    """A connection as `runtime.sql` uses it; see `runtime.sql.read.Db`.

    Args:
        db: an open connection; to write, with a transaction under way.
        is_sending: whether statements are sent without waiting for answers.
    """

    def __init__(self, db: Db, *, is_sending: bool = False) -> None:
        self.db = db
        self._is_sending = is_sending
        self._last: psycopg.Cursor[Row] = db.cursor()
        self._checks: list[psycopg.Cursor[Row]] = []
        self._numbered: list[psycopg.Cursor[Row]] = []
        self._is_moment = False

    def execute(self, sql: str, given: Sequence[Any] = (), /) -> Given:
        """Run one statement, or send it."""
        self._last = self.db.execute(translated(sql), given, binary=True)
        return Given(self._last)

    def executemany(self, sql: str, given: Iterable[Sequence[Any]], /) -> list[Row]:
        """Run one statement once for each of the given, and give the rows of all."""
        sent: list[psycopg.Cursor[Row]] = []
        with self.db.pipeline():
            for each in given:
                self.execute(sql, each)
                sent.append(self._last)
        return [row for each in sent if each.description for row in each.fetchall()]

    def changes(self) -> int:
        """Whether the last statement changed rows; while sending, that it must have."""
        if not self._is_sending:
            return self._last.rowcount
        self._checks.append(self._last)
        return 1

    def last_insert_rowid(self) -> int:
        """Give the number of the row just added; while sending, one below 0 for it."""
        if not self._is_sending:
            return int(Given(self._last).get)
        self._numbered.append(self._last)
        return -len(self._numbered)

    def check(self) -> None:
        """Check what has been answered.

        Raises:
            StoreUnavailableError: a statement changed nothing. Why, only a session
                finds out that does not send.
        """
        if not all(cursor.rowcount for cursor in self._checks):
            raise StoreUnavailableError("a statement changed nothing")

    def settled(self, value: object) -> object:
        """Put the numbers into a result that has been answered."""
        if not (isinstance(value, Committed) and self._numbered):
            return value
        return msgspec.structs.replace(
            value,
            accepted=tuple([self._number(each) for each in value.accepted]),
            enqueued=tuple([self._number(each) for each in value.enqueued]),
        )

    def _number(self, given: int) -> int:
        return int(Given(self._numbered[-given - 1]).get)

    def __enter__(self) -> None:
        """Begin to read as of one moment, if that is not so already."""
        idle = TransactionStatus.IDLE
        self._is_moment = self.db.info.transaction_status == idle
        if self._is_moment:
            self.db.execute("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """End it."""
        if self._is_moment and not self.db.closed:
            self.db.rollback()
        self._is_moment = False


HITS = f"""SELECT number FROM fact WHERE lexemes @@ ?::tsquery
    ORDER BY number DESC LIMIT {MOST_HITS}"""


def match(beginnings: Iterable[str]) -> str:
    """Write down as a `tsquery` what matches words that begin with one of these."""
    return " | ".join([f"'{each}':*" for each in beginnings])


def alike(
    db: SqlDb,
    asked: FactSearch,
    there: list[int],
    besides: Collection[int],
    lacking: Lacking | None = None,
) -> dict[int, float]:
    """Say how alike the question and vectors of its scopes are; see `Lookup`.

    Where pgvector is installed it chooses those that are looked at here, which spares
    the way of all others: a scope may have thousands. It goes through all of a scope.
    Not done: one of its indexes for the nearest of a table. It would look over all
    scopes, and miss some of this one's.

    Args:
        lacking: is given the vectors of which pgvector does not know the direction.
    """
    found = compared(db, asked, there, besides, [] if lacking is None else lacking)
    near = heapq.nsmallest(asked.limit, found, key=lambda each: (-found[each], each))
    return {each: found[each] for each in (*near, *besides) if each in found}


VECTORS = """SELECT part, number, vector, false FROM fact_vector
    WHERE scope IN ({scopes}) AND space = ? AND length(vector) = ?"""

# By `CASE`, because vectors of unlike lengths cannot be compared at all.
NEAREST = """WITH compared AS MATERIALIZED (
    SELECT known.part, known.number,
        CASE WHEN made.space = known.space AND vector_dims(made.direction) = ?
        THEN coalesce(nullif(made.direction <=> ?::text::halfvec, 'NaN'), 1) END AS far
    FROM fact_vector AS known LEFT JOIN fact_direction AS made USING(part, number)
    WHERE known.scope IN ({scopes}) AND known.space = ? AND length(known.vector) = ?)
SELECT part, number, vector, is_new FROM fact_vector JOIN (
    SELECT part, number, far IS NULL AS is_new FROM compared
    WHERE far IS NULL OR number = ANY(?::bigint[])
    UNION
    (SELECT part, number, false FROM compared WHERE far IS NOT NULL
    ORDER BY far, number LIMIT ?)
) AS chosen USING(part, number)"""

KEEP_DIRECTION = """INSERT INTO fact_direction(part, number, space, direction)
    SELECT part, number, known.space, ?::text::halfvec
    FROM fact_vector AS known JOIN fact USING(part, number)
    WHERE part = ? AND number = ? AND vector = ? FOR KEY SHARE OF fact
    ON CONFLICT(part, number) DO UPDATE
    SET space = excluded.space, direction = excluded.direction"""

# Chosen: pgvector rounds to seven digits, and hardly as many are that close.
SPARE = 10
"""Vectors beyond those that are wanted whose order is looked at here, too."""

# Chosen: somebody waits for the search; 100 take some tenths of a second.
MOST_KEPT = 100
"""Directions that are stored after one search; the others are after the next."""

MOST_DIMENSIONS = 16_000
"""What pgvector's `halfvec` holds."""

Lacking = list[tuple[int, int, bytes]]
"""Part, number and vector of what pgvector could not compare."""


def compared(
    db: SqlDb,
    asked: FactSearch,
    there: list[int],
    besides: Collection[int],
    lacking: Lacking,
) -> dict[int, float]:
    """Compare the vectors that may be the nearest, and those that are named besides.

    Args:
        lacking: is given those of which pgvector does not know the direction.
    """
    size, scopes = len(asked.vector), marks(there)
    may_be = size <= MOST_DIMENSIONS
    if may_be and list(db.execute(HAS_DIRECTIONS)) == [(True, True)]:
        told = (size, written(asked.vector), *there, asked.space, size)
        given = (*told, list(besides), asked.limit + SPARE)
        rows = list(db.execute(NEAREST.format(scopes=scopes), given))
    else:
        given = (*there, asked.space, size)
        rows = list(db.execute(VECTORS.format(scopes=scopes), given))
    lacking += [
        (part, number, vector) for part, number, vector, is_new in rows if is_new
    ]
    return compare(asked.vector, ((number, vector) for _, number, vector, _ in rows))


def written(vector: bytes) -> str:
    """Write a vector as pgvector reads it."""
    return f"[{','.join(map(str, memoryview(vector).cast('b')))}]"


def keep_directions(db: SqlDb, lacking: Lacking) -> None:
    """Store directions for pgvector, of those vectors that are still the same.

    In the same order at all nodes, so that they never wait for each other.
    """
    given = [
        (written(vector), part, number, vector)
        for part, number, vector in sorted(lacking)[:MOST_KEPT]
    ]
    db.executemany(KEEP_DIRECTION, given)


def searched(db: SqlDb, asked: FactSearch) -> tuple[Found, Lacking]:
    """Find facts, and what pgvector could not compare."""
    lacking: Lacking = []
    noting = LOOKUP._replace(alike=functools.partial(alike, lacking=lacking))
    return search_facts(db, asked, noting), lacking


class PostgresqlFacts(SqlFacts):
    """Facts on a server: what pgvector could not compare in a search, it can later."""

    async def search(self, search: FactSearch) -> Found:
        """Find facts; see the port."""
        refuse_search(search)
        found, lacking = await self._reading.call(
            functools.partial(searched, asked=search)
        )
        if lacking:
            with suppress(StoreError):  # by the next search
                await self._writing.call(
                    functools.partial(keep_directions, lacking=lacking)
                )
        return found


LOOKUP = Lookup(HITS, match, alike)
