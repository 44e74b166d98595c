"""Hears the hints of other nodes of a company, by PostgreSQL's LISTEN.

One connection of its own; trio waits for its socket, so no thread stands by. While it
is lost, hints are: nobody may depend on them. They are sent by the transactions that
write the rows (`threads.py`).
"""

from __future__ import annotations

import contextlib
from collections.abc import AsyncGenerator, Callable

import psycopg
import trio

from runtime.errors import StoreError
from runtime.nodes.hints import RowsWritten, read
from runtime.nodes.statements import application_name
from runtime.postgresql.server import Db, PostgresqlServer
from runtime.telemetry.logs import EventLog

LOG = EventLog("nodes")

CHANNEL = "callboard"
NOTIFY = f"SELECT pg_notify('{CHANNEL}', %s)"
"""In a transaction it is sent with the COMMIT."""

WITHIN = 5.0
"""Seconds that a statement may take, and its answer."""

AGAIN = 1.0
"""Seconds between two tries to connect."""


class HintListener:
    """Hands on what other nodes tell.

    Args:
        take: called with each hint of another node; it must not wait, nor raise.
    """

    def __init__(
        self, server: PostgresqlServer, node: str, take: Callable[[RowsWritten], object]
    ) -> None:
        self._server = server
        self._node = node
        self._take = take

    async def run(
        self, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED
    ) -> None:
        """Listen until cancelled; connects again when the server was away.

        `task_status` is told when it listens for the first time.
        """
        has_begun, is_away = False, False
        while True:
            try:
                async with self._connected() as db:
                    if is_away:
                        LOG.info("hints between nodes go on")
                    is_away = False
                    if not has_begun:
                        task_status.started()
                        has_begun = True
                    await self._hear(db)
            except (StoreError, psycopg.Error, OSError) as error:
                if not is_away:
                    why = str(error)
                    LOG.info("no hints between nodes for a while", why=why)
                is_away = True
            await trio.sleep(AGAIN)

    @contextlib.asynccontextmanager
    async def _connected(self) -> AsyncGenerator[Db]:
        db = await trio.to_thread.run_sync(self._open)
        try:
            yield db
        finally:
            db.close()

    def _open(self) -> Db:
        role = application_name(self._node, "hints")
        db = self._server.connect(role, WITHIN, WITHIN)
        with contextlib.ExitStack() as undo, self._server.told():
            undo.callback(db.close)
            db.execute(f"LISTEN {CHANNEL}")
            undo.pop_all()
        return db

    async def _hear(self, db: Db) -> None:
        while True:
            await trio.lowlevel.wait_readable(db.fileno())
            db.pgconn.consume_input()
            while (told := db.pgconn.notifies()) is not None:
                hint = read(told.extra.decode(errors="replace"), self._node)
                if hint is not None:
                    self._take(hint)
