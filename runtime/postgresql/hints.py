"""Carries hints between the nodes of a company, by PostgreSQL's LISTEN and NOTIFY.

`HintListener` hears them on a connection of its own; trio waits for its socket, so no
thread stands by. While it is lost, hints are: nobody may depend on them. Those of rows
are sent by the transactions that write these (`threads.py`), all others by `HintSender`
on another connection, so that no commit waits for them.
"""

from __future__ import annotations

import contextlib
from collections import deque
from collections.abc import AsyncGenerator, Callable, Sequence

import psycopg
import trio
from psycopg.sql import SQL, Identifier

from runtime.errors import StoreError
from runtime.nodes.hints import Hint, Shown, pack, read
from runtime.nodes.statements import application_name
from runtime.postgresql.server import Db, PostgresqlServer
from runtime.telemetry.logs import EventLog

LOG = EventLog("nodes")

WITHIN = 5.0
"""Seconds that a statement may take, and its answer."""

AGAIN = 1.0
"""Seconds between two tries to connect."""

SHOW = """SELECT pg_notify(%s, %s) FROM node
    WHERE id = %s AND incarnation = %s AND state = 'up'"""
"""A node that was taken over from, and does not know it yet, shows nothing."""

# Chosen: seconds of a company that answers in a thousand chats at once.
MOST_WAITING = 5_000
"""Things to show that wait for the server; the oldest ones are left out."""


class HintListener:
    """Hands on what other nodes tell.

    Args:
        take: called with each hint of another node; it must not wait, nor raise.
    """

    def __init__(
        self, server: PostgresqlServer, node: str, take: Callable[[Hint], object]
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
            channel = Identifier(self._server.options.channel)
            db.execute(SQL("LISTEN {}").format(channel))
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


class HintSender:
    """Tells other nodes what they are to show, in order, as long as this node lives.

    Args:
        life: gives the number of its life (`Member.incarnation`); None: it has none.
    """

    def __init__(
        self, server: PostgresqlServer, node: str, life: Callable[[], int | None]
    ) -> None:
        self._server = server
        self._node = node
        self._life = life
        self._waiting: deque[Shown] = deque(maxlen=MOST_WAITING)
        self._has_some = trio.Event()
        self._db: Db | None = None

    def tell(self, shown: Shown) -> None:
        """Have something shown; it never waits."""
        self._waiting.append(shown)
        self._has_some.set()

    async def run(self) -> None:
        """Send until cancelled; what cannot be sent at once is lost."""
        try:
            while True:
                await self._has_some.wait()
                self._has_some = trio.Event()
                shown = [*self._waiting]
                self._waiting.clear()
                life = self._life()
                if shown and life is not None:
                    await self._send(shown, life)
        finally:
            self._drop()

    async def _send(self, shown: Sequence[Shown], life: int) -> None:
        texts = [*pack(self._node, shown)]
        try:
            await trio.to_thread.run_sync(self._notify, texts, life)
        except (StoreError, psycopg.Error, OSError) as error:
            LOG.info("nothing shown by way of other nodes for a while", why=str(error))
            self._drop()
            await trio.sleep(AGAIN)
            self._waiting.clear()

    def _notify(self, texts: Sequence[str], life: int) -> None:
        with self._server.told():
            if self._db is None:
                role = application_name(self._node, "shows")
                self._db = self._server.connect(role, WITHIN, WITHIN)
            for text in texts:
                channel = self._server.options.channel
                self._db.execute(SHOW, (channel, text, self._node, life))

    def _drop(self) -> None:
        if self._db is not None:
            self._db.close()
            self._db = None
