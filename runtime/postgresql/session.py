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
from types import TracebackType
from typing import Any

import msgspec
import psycopg
from psycopg.pq import TransactionStatus

from runtime.errors import StoreUnavailableError
from runtime.postgresql.server import Db
from runtime.sql import facts, write
from runtime.sql.facts import MOST_HITS, Lookup, marks
from runtime.sql.read import Db as SqlDb, Row
from runtime.sql.vectors import compare
from runtime.store.facts import FactSearch
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
    db: SqlDb, asked: FactSearch, there: list[int], besides: Collection[int]
) -> dict[int, float]:
    """Say how alike the question and vectors of its scopes are; see `Lookup`.

    Compared here, one after the other: a scope has hundreds of facts, not millions.
    Not done: pgvector, whose type a dump can only be restored with where it is
    installed, and which needs a second column beside the bytes.
    """
    rows = db.execute(
        f"""SELECT number, vector FROM fact_vector WHERE scope IN ({marks(there)})
        AND space = ? AND length(vector) = ?""",
        (*there, asked.space, len(asked.vector)),
    )
    found = compare(asked.vector, ((number, vector) for number, vector in rows))
    near = heapq.nsmallest(asked.limit, found, key=lambda each: (-found[each], each))
    return {each: found[each] for each in (*near, *besides) if each in found}


LOOKUP = Lookup(HITS, match, alike)
