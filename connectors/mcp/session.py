"""The actor that speaks to one server of tools for as long as it answers."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, ClassVar, cast

import msgspec
import trio

from actors.errors import ToolError
from connectors.mcp.connection import Connect, ServerConnection, ServerEnd
from connectors.mcp.messages import (
    McpError,
    ServerAnswerError,
    ServerLostError,
    SessionEnded,
    SessionOpened,
    ToolsListed,
)
from connectors.mcp.results import result_of
from runtime.actor.actor import Actor

if TYPE_CHECKING:
    from connectors.config.mcp import McpServerConfig
    from connectors.mcp.metrics import McpFigures
    from connectors.mcp.pending import CallQueue, PendingCall

# Chosen: seconds between two looks at a server's list, however often it says that the
# list has changed.
RELIST_PACE = 1.0

# Chosen: seconds a server that did not answer a call may take to answer at all.
PATIENCE = 5.0


class Speak(msgspec.Struct, frozen=True):
    """A note to itself: begin."""


class McpSession(Actor):
    """One connection to a server of tools, from its start to its end.

    Takes: nothing; calls come by the link.
    Sends: `SessionOpened`, `ToolsListed` and `SessionEnded` to its server's actor.
    Keeps: the connection, and the calls that run on it.
    Fails: never by what a server does.
    Ends: when the server does not start, ends, hangs or sends what no server may; it
        is started again after a while, unless the settings say otherwise.
    """

    deadline: ClassVar[float | None] = None
    ends_by_interrupt: ClassVar[bool] = True

    def __init__(
        self,
        name: str,
        config: McpServerConfig,
        connect: Connect,
        link: CallQueue,
        figures: McpFigures,
    ) -> None:
        super().__init__()
        self._name = name
        self._config = config
        self._connect = connect
        self._link = link
        self._figures = figures

    def on_start(self) -> None:
        """Begin to speak."""
        self.note(Speak())

    async def on_receive(self, message: object) -> None:
        """Speak to the server until the end, which is told in any case."""
        if not isinstance(message, Speak):
            super().on_receive(message)
            return
        end = await self._speak()
        when = self._config.restart
        is_final = when == "never" or (when == "failed" and end.is_clean)
        self._tell(SessionEnded(end.reason, is_final, end.complaints.last))
        self._link.fail_all(f"the server {self._name} was lost ({end.reason})")
        if not is_final:
            # Why no failure: what a server does is nobody's mistake here. Ended for
            # good, the actor stays, with nothing to do.
            self.stop()

    def on_failure(self, *_args: object, **_kwargs: object) -> None:
        """Let nobody wait, whatever went wrong."""
        self._link.fail_all(f"the server {self._name} was lost")

    def on_stop(self) -> None:
        """Let nobody wait."""
        self._link.fail_all(f"the server {self._name} has been stopped")

    def _tell(self, message: object) -> None:
        self.tell(f"{self.actor_urn.rpartition('/')[0]}/server", message)

    async def _speak(self) -> ServerEnd:
        """Speak to the server; give why that ended, and whether as it should."""
        config, end = self._config, ServerEnd()
        with trio.CancelScope() as starting:
            starting.deadline = trio.current_time() + config.start_timeout
            try:
                async with self._connect() as connection:
                    await self._begin(connection, starting)
                    return connection.ending
            except McpError as error:
                end.come(str(error))
        end.come(f"it did not start within {config.start_timeout:g} seconds")
        return end

    async def _begin(
        self, connection: ServerConnection, starting: trio.CancelScope
    ) -> None:
        """Learn what there is; then serve until the connection's end."""
        if connection.ending.has_come:
            return
        try:
            listing = await connection.list_tools()
        except McpError as error:
            connection.ending.come(str(error))
            return
        starting.deadline = math.inf
        self._tell(SessionOpened(listing))
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self._keep_listing, connection)
            nursery.start_soon(self._take_calls, connection, nursery)
            await connection.ending.wait()
            nursery.cancel_scope.cancel()

    async def _keep_listing(self, connection: ServerConnection) -> None:
        """Look at the list again whenever the server says that it has changed."""
        while True:
            await connection.wait_changed()
            await trio.sleep(RELIST_PACE)
            with trio.move_on_after(self._config.start_timeout) as waiting:
                try:
                    self._tell(ToolsListed(await connection.list_tools()))
                except McpError as error:
                    connection.ending.come(str(error))
            if waiting.cancelled_caught:
                connection.ending.come("it did not list its tools in time")

    async def _take_calls(
        self, connection: ServerConnection, nursery: trio.Nursery
    ) -> None:
        while True:
            pending = await self._link.take()
            nursery.start_soon(self._call, connection, pending)

    async def _call(self, connection: ServerConnection, pending: PendingCall) -> None:
        """Carry one call out, within its time."""
        pending.scope.deadline = trio.current_time() + self._config.call_timeout
        is_sound = True
        with pending.scope:
            is_sound = await self._answer(connection, pending)
        if pending.scope.cancelled_caught and not pending.reply.is_set:
            # Nobody hears this of a call that was given up: its asker is gone.
            late = trio.current_time() >= pending.scope.deadline
            is_sound = not late
            self._figures.count(self._name, "call_timeout", int(late))
            pending.reply.offer_error(ToolError(self._too_late()))
        # Why not in a `finally`: who was cut off by the connection's end is told why.
        self._link.done(pending)
        if not is_sound:
            await self._look_whether_it_lives(connection)

    async def _answer(self, connection: ServerConnection, pending: PendingCall) -> bool:
        """Ask the server, and pass its answer on; False: it may be broken."""
        call = pending.call
        arguments = cast("dict[str, object]", msgspec.json.decode(call.arguments))
        try:
            answer = await connection.call(call.name, arguments)
        except ServerAnswerError as error:
            doubt = "; nobody knows whether it was done" if error.in_doubt else ""
            pending.reply.offer_error(ToolError(f"{error}{doubt}"))
            return not error.in_doubt
        except ServerLostError as error:
            connection.ending.come(str(error))
            await trio.sleep_forever()  # until all who wait are told why
        result = result_of(answer, self._config.max_result_chars)
        pending.reply.offer(result)
        return True

    async def _look_whether_it_lives(self, connection: ServerConnection) -> None:
        """End the connection to a server that does not answer at all."""
        with trio.move_on_after(PATIENCE) as waiting:
            try:
                self._tell(ToolsListed(await connection.list_tools()))
            except McpError as error:
                connection.ending.come(str(error))
        if waiting.cancelled_caught:
            connection.ending.come("it does not answer any more")

    def _too_late(self) -> str:
        return (
            f"the server {self._name} did not answer within"
            f" {self._config.call_timeout:g} seconds; nobody knows whether it was done"
        )
