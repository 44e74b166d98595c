"""The durable store on a PostgreSQL server; see `runtime.sql.store`.

`threads.py` has the two threads and the group commit, `session.py` and `server.py` the
connections.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import msgspec

from runtime.errors import DuplicateError, MisuseError, SequenceConflictError
from runtime.postgresql.server import PostgresqlServer
from runtime.postgresql.session import LOOKUP, PostgresqlFacts, Session
from runtime.postgresql.threads import NODE, PostgresqlReader, PostgresqlWriter
from runtime.sql import write as rows
from runtime.sql.read import Db, Row
from runtime.sql.store import SqlStore
from runtime.store.port import refuse_limit
from runtime.store.rows import ANY_KIND, Commit, Committed, kinds_of
from runtime.telemetry.logs import EventLog

LOG = EventLog("store")

WAITING = """SELECT number, part, key, body FROM handover
    WHERE part = ANY(?::smallint[]) ORDER BY number LIMIT ?"""
ALL_WAITING = "SELECT number, part, key, body FROM handover ORDER BY number LIMIT ?"
VERSIONS = "SELECT topic, sum(version)::bigint FROM change WHERE node <> ? GROUP BY 1"

BY_TOOLS = "rows"
"""The topic of what programs beside the servers change."""

EMPTY = Commit(at=0.0)


class PostgresqlStore(SqlStore[PostgresqlServer]):
    """Rows on a server; see `runtime.store.Store` for what may be relied on.

    When the server goes away, commits wait for some seconds
    (`PostgresqlOptions.away_for`) and are refused after that, until it is back.
    """

    writing = PostgresqlWriter
    reading = PostgresqlReader
    lookup = LOOKUP
    remembering = PostgresqlFacts
    versions_at_writer = False
    reads_stop_commits = False  # a server goes away and comes back; a disk does not

    may_be_handed = True  # by nodes that have ended, too

    parts: frozenset[int] | None = None
    """What is handed over to these parts is stored at once; None: to any. Whoever has
    leases of parts keeps it up to date."""

    @staticmethod
    def greet(db: Session) -> int:
        """Read the version of the tables, so that a wrong database is found at once."""
        return int(db.execute("SELECT version FROM callboard_schema").get)

    def versions(self, db: Session) -> dict[str, int]:
        """Give numbers that grow when other nodes, or other programs, have written."""
        seat = self._place.options.seat
        node = NODE if seat is None else seat.node
        found: dict[str, int] = dict(db.execute(VERSIONS, (node,)))
        found[ANY_KIND] = found.pop(BY_TOOLS, 0)
        return found

    def _handing(self, commit: Commit) -> Callable[[Any], Committed]:
        """Give the job that stores a unit with what it hands over."""
        parts = self.parts
        return partial(rows.write, commit=commit, epoch=self._epoch, parts=parts)

    async def take_over(self, limit: int = 1000) -> frozenset[str]:
        """Store what was handed over to our parts; see the port."""
        refuse_limit(limit)
        read = partial(waiting, parts=self.parts, limit=limit)
        found = await self._reader.jobs.call(read)
        kinds: set[str] = set()
        for number, part, key, body in found:
            handed = msgspec.msgpack.decode(body, type=Commit)
            kinds |= await self._take(number, f"{part}:{key}", handed)
        return frozenset(kinds)

    async def _take(self, number: int, name: str, handed: Commit) -> set[str]:
        """Store one unit that was handed over, unless it cannot be any more."""
        take = partial(rows.take_over, number=number, epoch=self._epoch)
        try:
            if await self._writer.jobs.call(partial(take, commit=handed)):
                return kinds_of(handed)
        except (DuplicateError, MisuseError, SequenceConflictError) as error:
            if not isinstance(error, DuplicateError):  # that one: done before
                LOG.fault("what was handed over could not be stored", error, key=name)
            await self._writer.jobs.call(partial(take, commit=EMPTY))
        return set()

    async def _write_something(self) -> None:
        # Each group writes who wrote it.
        await self._writer.jobs.call(self.greet)


def waiting(db: Db, parts: frozenset[int] | None, limit: int) -> list[Row]:
    """Give what waits for these parts, the oldest first."""
    if parts is None:
        return list(db.execute(ALL_WAITING, (limit,)))
    return list(db.execute(WAITING, (sorted(parts), limit)))
