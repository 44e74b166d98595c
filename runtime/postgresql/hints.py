"""Carries hints between the nodes of a company, by PostgreSQL's NOTIFY.

One connection of its own, which listens and sends; trio waits for its socket, so no
thread stands by. While it is lost, hints are: nobody may depend on them.
"""

from __future__ import annotations

import contextlib
from collections.abc import AsyncGenerator
from functools import partial

import psycopg
import trio

from runtime.errors import StoreError
from runtime.nodes.hints import HintBoard
from runtime.nodes.statements import application_name
from runtime.postgresql.server import Db, PostgresqlServer, rows_of
from runtime.telemetry.logs import EventLog

LOG = EventLog("nodes")

CHANNEL = "callboard"
NOTIFY = f"SELECT pg_notify('{CHANNEL}', %s)"
"""In a transaction it is sent with the COMMIT."""

WITHIN = 5.0
"""Seconds that a statement may take, and its answer."""

AGAIN = 1.0
"""Seconds between two tries to connect."""

GATHER = 0.01
"""Seconds in which what is sent goes together: a NOTIFY takes a lock of the server."""


class HintCarrier:
    """Sends and receives the hints of a board.

    Args:
        server: whose database the nodes share.
        node: id of this node.
        board: its hints.
    """

    def __init__(self, server: PostgresqlServer, node: str, board: HintBoard) -> None:
        self._server = server
        self._role = application_name(node, "hints")
        self._board = board
        self._is_told = trio.Event()
        self._heard: list[str] = []
        self._one_by_one = trio.Lock()
        board.wake = self._wake

    async def run(
        self, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED
    ) -> None:
        """Send and receive until cancelled; connects again when the server was away.

        `task_status` is told when it has tried to connect for the first time.
        """
        has_begun, is_away = False, False
        while True:
            try:
                async with self._connected() as db, trio.open_nursery() as nursery:
                    if is_away:
                        LOG.info("hints between nodes go on")
                    is_away = False
                    if not has_begun:
                        task_status.started()
                        has_begun = True
                    nursery.start_soon(self._hear, db)
                    await self._send(db)
            except* (StoreError, psycopg.Error, OSError) as errors:
                if not is_away:
                    why = str(errors.exceptions[0])
                    LOG.info("no hints between nodes for a while", why=why)
                is_away = True
            if not has_begun:
                task_status.started()
                has_begun = True
            await trio.sleep(AGAIN)

    @contextlib.asynccontextmanager
    async def _connected(self) -> AsyncGenerator[Db]:
        db = await trio.to_thread.run_sync(self._open)
        try:
            yield db
        finally:
            db.close()

    def _open(self) -> Db:
        db = self._server.connect(self._role, WITHIN, WITHIN)
        with contextlib.ExitStack() as undo, self._server.told():
            undo.callback(db.close)
            # Those that come with the answer to a statement.
            db.add_notify_handler(lambda hint: self._heard.append(hint.payload))
            db.execute(f"LISTEN {CHANNEL}")
            undo.pop_all()
        return db

    async def _hear(self, db: Db) -> None:
        while True:
            await trio.lowlevel.wait_readable(db.fileno())
            async with self._one_by_one:
                self._take(db)

    def _take(self, db: Db) -> None:
        """Hand on what has come; it waits for nothing."""
        db.pgconn.consume_input()
        while (hint := db.pgconn.notifies()) is not None:
            self._heard.append(hint.extra.decode(errors="replace"))
        heard, self._heard = self._heard, []
        for text in heard:
            self._board.arrive(text)

    async def _send(self, db: Db) -> None:
        while True:
            await self._is_told.wait()
            await trio.sleep(GATHER)
            self._is_told = trio.Event()
            if texts := self._board.unsent():
                async with self._one_by_one:
                    await trio.to_thread.run_sync(partial(self._notify, db, texts))
                    self._take(db)

    def _notify(self, db: Db, texts: list[str]) -> None:
        with self._server.told():
            for text in texts:
                rows_of(db, NOTIFY, (text,))

    def _wake(self) -> None:
        self._is_told.set()
