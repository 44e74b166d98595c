"""The durable store on a PostgreSQL server; see `runtime.sql.store`.

`threads.py` has the two threads and the group commit, `session.py` and `server.py` the
connections.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from runtime.postgresql.server import PostgresqlServer
from runtime.postgresql.session import LOOKUP
from runtime.postgresql.threads import PostgresqlReader, PostgresqlWriter
from runtime.sql.store import SqlStore

if TYPE_CHECKING:
    from runtime.postgresql.session import Session


class PostgresqlStore(SqlStore[PostgresqlServer]):
    """Rows on a server; see `runtime.store.Store` for what may be relied on.

    When the server goes away, commits wait for some seconds
    (`PostgresqlOptions.away_for`) and are refused after that, until it is back.
    """

    writing = PostgresqlWriter
    reading = PostgresqlReader
    lookup = LOOKUP
    versions_at_writer = False
    reads_stop_commits = False  # a server goes away and comes back; a disk does not

    @staticmethod
    def greet(db: Session) -> int:
        """Read the version of the tables, so that a wrong database is found at once."""
        return int(db.execute("SELECT version FROM callboard_schema").get)

    @staticmethod
    def version(db: Session) -> int:
        """Give a number that grows when a program beside the server has written."""
        return int(db.execute("SELECT version FROM change WHERE topic = 'rows'").get)

    async def _write_something(self) -> None:
        # Each group writes who wrote it.
        await self._writer.jobs.call(self.greet)
