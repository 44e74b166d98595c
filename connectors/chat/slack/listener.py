"""Keeps one app in step with Slack: the listener of that app.

Source: docs.slack.dev, "Using Socket Mode": a `disconnect` asks to open another one
before this one is closed; what is not acknowledged is sent again, on any of them.
"""

from __future__ import annotations

from contextlib import contextmanager, suppress
from functools import partial
from typing import TYPE_CHECKING

import trio

from connectors.chat.accounts import AccountHealth, BackgroundTyping
from connectors.chat.bookmarks import read_bookmark
from connectors.chat.errors import (
    BusyError,
    GoneError,
    LostError,
    PlatformError,
    RefusedError,
    ShutOutError,
)
from connectors.chat.lenient_json import Json, table, text
from connectors.chat.requests import LONGEST_WAIT, Waits, until_answered
from connectors.chat.slack.backfill import CatchingUp
from connectors.chat.slack.events import Mark, at
from connectors.chat.slack.inbound import SlackArrivals
from connectors.chat.slack.webhooks import SlackWebhooks
from runtime.errors import StoreError
from runtime.telemetry.logs import EventLog

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Generator

    from actors.transport import Ingress
    from connectors.chat.slack.account import SlackAccount
    from connectors.chat.slack.api import SlackConnection
    from connectors.chat.slack.shared import SlackShared

LOG = EventLog("slack")

HELLO_WITHIN = 30.0
"""Seconds in which a new connection must say something."""

OVERLAP = 30.0
"""Seconds that a connection which Slack is about to close is listened to."""


class ConnectionEnd:
    """How one connection comes to its end."""

    def __init__(self) -> None:
        self.is_near = trio.Event()
        """Set when another connection is to be opened."""

        self.has_begun = False
        """Whether Slack greeted us."""

        self.is_asked = False
        """Whether Slack asked for another one; nothing is lost then."""

        self.error: PlatformError | None = None


class SocketMode:
    """The connections of one app."""

    def __init__(
        self,
        account: SlackAccount,
        shared: SlackShared,
        arrivals: SlackArrivals,
        health: AccountHealth,
        note: Callable[[PlatformError], object],
    ) -> None:
        self._account = account
        self._shared = shared
        self._arrivals = arrivals
        self._health = health
        self._note = note

    async def follow(self, on_gap: Callable[[], object], nursery: trio.Nursery) -> None:
        """Keep a connection open.

        Args:
            on_gap: called when something may have been missed.
            nursery: where connections are read.

        Raises:
            GoneError: the way to Slack has ended.
            ShutOutError: the app is not let in.
        """
        waits = Waits()
        while True:
            connection = await until_answered(self._connect, self._note)
            ending = ConnectionEnd()
            nursery.start_soon(self._read, connection, ending)
            await ending.is_near.wait()
            if ending.has_begun:
                waits = Waits()
            metrics = self._shared.metrics
            why = "asked" if ending.is_asked else "trouble"
            metrics.count("reconnects", self._account.agent, why)
            if ending.is_asked and ending.has_begun:
                continue
            await self._recover(ending, waits)
            on_gap()

    async def _recover(self, ending: ConnectionEnd, waits: Waits) -> None:
        """Wait after a connection that was lost, and see whether we are let in."""
        error = ending.error or LostError("Slack closed the connection")
        if isinstance(error, GoneError):
            raise error
        self._note(error)
        await trio.sleep(waits.next())

    async def _connect(self) -> SlackConnection:
        try:
            return await self._account.connect()
        except RefusedError as error:
            # Why not given up: Socket Mode may be switched on meanwhile.
            raise BusyError(f"no connection: {error}", LONGEST_WAIT) from error

    async def _read(self, connection: SlackConnection, ending: ConnectionEnd) -> None:
        try:
            with trio.CancelScope() as scope:
                scope.deadline = trio.current_time() + HELLO_WITHIN
                await self._take_all(connection, ending, scope)
        except PlatformError as error:
            ending.error = error
        finally:
            ending.is_near.set()
            with trio.CancelScope(shield=True):
                await connection.close()

    async def _take_all(
        self,
        connection: SlackConnection,
        ending: ConnectionEnd,
        scope: trio.CancelScope,
    ) -> None:
        """Take what comes until the connection ends, or is left."""
        while True:
            said = await connection.receive()
            if not ending.has_begun:
                ending.has_begun = True
                scope.deadline = float("inf")
            self._health.heard()
            if said.get("type") == "disconnect":
                LOG.info(
                    "slack asks for another connection",
                    account=self._account.agent,
                    reason=text(said.get("reason")),
                )
                if said.get("reason") == "link_disabled":
                    raise LostError(
                        "Socket Mode was switched off in the app's settings"
                    )
                ending.is_asked = True
                ending.is_near.set()
                scope.deadline = trio.current_time() + OVERLAP
            else:
                self._take(said, connection)

    def _take(self, said: Json, connection: SlackConnection) -> None:
        """Take one envelope."""
        envelope, payload = text(said.get("envelope_id")), table(said.get("payload"))
        done = partial(acknowledge, connection, envelope)
        match said.get("type"):
            case "hello":
                pass
            case "events_api" if envelope:
                self._arrivals.take_event(table(payload.get("event")), done)
            case "slash_commands" if envelope:
                self._arrivals.take_command(payload, done)
            case "interactive" if envelope:
                self._arrivals.take_press(payload, done)
            case str() if envelope:
                # What nobody here understands is not to come again.
                self._arrivals.take_event({"type": "unknown"}, done)
            case _:
                self._arrivals.count("malformed")


async def acknowledge(connection: SlackConnection, envelope: str) -> None:
    """Tell Slack that an envelope was taken.

    If that is lost, it comes again, and is known.
    """
    with suppress(LostError):
        await connection.send({"envelope_id": envelope})


CURE = (
    "install the app again, put its tokens where {place} takes them from, and start"
    " again"
)


class SlackListener:
    """Listens to one app by Socket Mode or by webhooks.

    Args:
        account: which one.
        typing: shows that it is writing; runs as long as it listens.
        shared: what all apps share.
    """

    def __init__(
        self,
        account: SlackAccount,
        typing: BackgroundTyping[tuple[str, str]],
        shared: SlackShared,
    ) -> None:
        self._account = account
        self._typing = typing
        self._shared = shared
        self._health = AccountHealth(account, shared.metrics, shared.clock, LOG)

    async def listen(self, ingress: Ingress) -> None:
        """Follow the app until cancelled.

        Raises:
            PlatformError: the way to Slack has ended; begin anew.
        """
        await self._health.keep_listening(partial(self._listen, ingress))

    async def _listen(self, ingress: Ingress) -> None:
        with self._opened():
            async with self._shared.wire.open() as line, trio.open_nursery() as nursery:
                self._account.use(line)
                nursery.start_soon(self._typing.run)
                try:
                    await self._follow(ingress, nursery)
                except ShutOutError as error:
                    self._health.shut_out(error, self._shared.connector, CURE)
                nursery.cancel_scope.cancel()

    @contextmanager
    def _opened(self) -> Generator[None]:
        with self._health.listening():
            try:
                yield
            finally:
                self._account.use(None)
                self._account.introduced.set()
                self._account.placed.set()

    async def _follow(self, ingress: Ingress, nursery: trio.Nursery) -> None:
        account = self._account
        await self._introduce()
        mark = Mark(await read_bookmark(self._bookmark, LOG))
        arrivals = SlackArrivals(account, self._shared, mark, ingress, nursery)
        catching_up = CatchingUp(account, self._shared, mark, arrivals, self._note)
        arrivals.on_overflow = catching_up.want
        account.is_open = True
        LOG.info("app listens", account=account.agent, user=account.user)
        nursery.start_soon(self._keep, mark, arrivals)
        catching_up.want()
        nursery.start_soon(catching_up.run)
        await self._shared.wait_all_placed()
        if account.uses_socket:
            sockets = SocketMode(
                account, self._shared, arrivals, self._health, self._note
            )
            await sockets.follow(catching_up.want, nursery)
        else:
            await self._be_called(arrivals)

    async def _introduce(self) -> None:
        """Learn who the app is; then wait until the others did."""
        account = self._account
        try:
            await until_answered(lazily(account.open), self._note)
        finally:
            account.introduced.set()
        await self._shared.wait_all_introduced()

    async def _be_called(self, arrivals: SlackArrivals) -> None:
        """Take what Slack sends to the HTTP server."""
        calls = SlackWebhooks(self._account, self._shared, arrivals)
        place = self._shared.connector, self._account.agent
        try:
            with self._shared.gates.opened(place, calls):
                self._health.heard()
                await trio.sleep_forever()
        finally:
            calls.end()

    async def _bookmark(self) -> str:
        """Return the moment up to which all is in; at first, that is now."""
        found = await self._shared.bookmarks.read(self._key)
        if not found:
            # What was said before the first start is not answered.
            found = at(self._shared.clock.wall())
            await self._shared.bookmarks.write(self._key, found)
        return found

    async def _keep(self, mark: Mark, arrivals: SlackArrivals) -> None:
        """Store the mark as it moves; the newest counts."""
        kept = mark.ts
        while True:
            await arrivals.moved.wait()
            arrivals.moved = trio.Event()
            if mark.ts == kept:
                continue
            kept = mark.ts
            try:
                await self._shared.bookmarks.write(self._key, kept)
            except StoreError as error:
                # After a restart more is read again, and known to the database.
                LOG.warning("place not kept", why=str(error))

    @property
    def _key(self) -> str:
        return f"{self._account.team}-{self._account.user}"

    def _note(self, error: PlatformError) -> None:
        """Note trouble; other apps need not wait for this one."""
        self._account.introduced.set()
        self._account.placed.set()
        self._health.note(error)


def lazily(ask: Callable[[], Awaitable[None]]) -> Callable[[], Awaitable[None]]:
    """Make of a refusal something that is tried again, but seldom.

    Why not given up: the operator changes the app's settings at Slack meanwhile.
    """
    return partial(_lazily, ask)


async def _lazily(ask: Callable[[], Awaitable[None]]) -> None:
    try:
        await ask()
    except RefusedError as error:
        raise BusyError(str(error), LONGEST_WAIT) from error
