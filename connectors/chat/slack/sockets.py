"""Follows the connections of Socket Mode, one after the other.

Source: docs.slack.dev, "Using Socket Mode": a `disconnect` asks to open another one
before this one is closed; what is not acknowledged is sent again, on any of them.
"""

from __future__ import annotations

from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Protocol

import trio

from connectors.chat.faults import BusyError, LostError, PlatformError, RefusedError
from connectors.chat.loose_json import Json, table, text
from connectors.chat.slack.errors import GoneError
from connectors.chat.slack.patience import patiently
from connectors.chat.waits import LONGEST_WAIT, Waits
from runtime.logs import EventLog

if TYPE_CHECKING:
    from collections.abc import Callable

    from connectors.chat.slack.account import SlackAccount
    from connectors.chat.slack.arrivals import Arrivals
    from connectors.chat.slack.shared import Shared
    from connectors.chat.slack.wire import Connection

LOG = EventLog("slack")

HELLO_WITHIN = 30.0
"""Seconds in which a new connection must say something."""

OVERLAP = 30.0
"""Seconds that a connection which Slack is about to close is listened to."""


class Health(Protocol):
    """Who is told how the app is."""

    def heard(self) -> None:
        """Learn that it hears Slack."""
        ...

    def note(self, error: PlatformError) -> None:
        """Learn of trouble."""
        ...


class Ending:
    """How one connection comes to its end."""

    def __init__(self) -> None:
        self.is_near = trio.Event()
        """Set when another connection is to be opened."""

        self.has_begun = False
        """Whether Slack greeted us."""

        self.is_asked = False
        """Whether Slack asked for another one; nothing is lost then."""

        self.error: PlatformError | None = None


class Sockets:
    """The connections of one app.

    Args:
        account: which one.
        shared: what all apps share.
        arrivals: takes what comes.
        health: learns how it goes.
    """

    def __init__(
        self,
        account: SlackAccount,
        shared: Shared,
        arrivals: Arrivals,
        health: Health,
    ) -> None:
        self._account = account
        self._shared = shared
        self._arrivals = arrivals
        self._health = health

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
            connection = await patiently(self._connect, self._health.note)
            ending = Ending()
            nursery.start_soon(self._read, connection, ending)
            await ending.is_near.wait()
            if ending.has_begun:
                waits = Waits()
            figures = self._shared.figures
            figures.reconnected(self._account.agent, is_asked=ending.is_asked)
            if ending.is_asked and ending.has_begun:
                continue
            await self._recover(ending, waits)
            on_gap()

    async def _recover(self, ending: Ending, waits: Waits) -> None:
        """Wait after a connection that was lost, and see whether we are let in."""
        error = ending.error or LostError("Slack closed the connection")
        if isinstance(error, GoneError):
            raise error
        self._health.note(error)
        await trio.sleep(waits.next())

    async def _connect(self) -> Connection:
        try:
            return await self._account.connect()
        except RefusedError as error:
            # Why not given up: Socket Mode may be switched on meanwhile.
            raise BusyError(f"no connection: {error}", LONGEST_WAIT) from error

    async def _read(self, connection: Connection, ending: Ending) -> None:
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
        self, connection: Connection, ending: Ending, scope: trio.CancelScope
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

    def _take(self, said: Json, connection: Connection) -> None:
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


async def acknowledge(connection: Connection, envelope: str) -> None:
    """Tell Slack that an envelope was taken.

    If that is lost, it comes again, and is known.
    """
    with suppress(LostError):
        await connection.send({"envelope_id": envelope})
