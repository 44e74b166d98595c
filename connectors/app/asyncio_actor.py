"""Actors that host what lives on asyncio, so that supervisors can restart it.

The loop itself, and the server that operators ask.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, Protocol, runtime_checkable

import msgspec

from connectors.chat.server_transport import ServerTransport
from runtime.actor.actor import Actor
from runtime.errors import DeclineStart
from runtime.supervision.child import ChildSpec

if TYPE_CHECKING:
    from collections.abc import Mapping

    from actors.transport import Transport
    from connectors.asyncio_bridge.bridge import Bridge
    from connectors.web.operations import AdminServer


def edges_specs(
    bridge: Bridge, transports: Mapping[str, Transport], admin: AdminServer | None
) -> tuple[ChildSpec, ...]:
    """Say how the loop is started, and the operators' server on it.

    Without anybody who needs the loop, it is not.

    Args:
        bridge: to the loop.
        transports: the connectors, as they are when it starts.
        admin: the server that operators ask; None: there is none.
    """

    def start() -> Edges:
        if admin is None and not any(map(needs_loop, transports.values())):
            raise DeclineStart
        return Edges(bridge)

    edges = ChildSpec(name="edges", start=start, shutdown=30.0)
    if admin is None:
        return (edges,)
    return (edges, ChildSpec(name="admin", start=lambda: Admin(admin)))


@runtime_checkable
class OnTheLoop(Protocol):
    """A transport whose library lives on the asyncio loop, if it says so."""

    @property
    def needs_loop(self) -> bool:
        """Whether it does; constant for its life."""
        ...


def needs_loop(transport: Transport) -> bool:
    """Tell whether a connector runs only while the loop does."""
    return isinstance(transport, ServerTransport) or (
        isinstance(transport, OnTheLoop) and transport.needs_loop
    )


class ServeOperators(msgspec.Struct, frozen=True):
    """A note to itself: begin."""


class Admin(Actor):
    """Runs the server that operators and monitoring ask.

    Takes: nothing. Sends: nothing. Keeps: nothing. Fails: when the server does, or the
    loop on which it runs; it is started again. Ends: with the system.
    """

    deadline: ClassVar[float | None] = None
    ends_by_interrupt: ClassVar[bool] = True

    def __init__(self, server: AdminServer) -> None:
        super().__init__()
        self._server = server

    def on_start(self) -> None:
        """Begin to serve."""
        self.note(ServeOperators())

    async def on_receive(self, message: object) -> None:
        """Serve until the end."""
        if isinstance(message, ServeOperators):
            await self._server.run()
        else:
            super().on_receive(message)


class AwaitLoopEnd(msgspec.Struct, frozen=True):
    """A note to itself: wait until the loop ends."""


class Edges(Actor):
    """Keeps the asyncio loop running.

    Takes: nothing.
    Sends: nothing.
    Keeps: the bridge open.
    Fails: when the loop dies; the next incarnation starts a new one.
    Ends: with the system, after the connectors; ends the loop.
    """

    deadline: ClassVar[float | None] = None
    ends_by_interrupt: ClassVar[bool] = True

    def __init__(self, bridge: Bridge) -> None:
        super().__init__()
        self._bridge = bridge

    async def on_start(self) -> None:
        """Start the loop."""
        await self._bridge.start()
        self.note(AwaitLoopEnd())

    async def on_receive(self, message: object) -> None:
        """Wait for the loop's end, which is a failure unless it was asked for."""
        if isinstance(message, AwaitLoopEnd):
            await self._bridge.wait_closed()
        else:
            super().on_receive(message)

    async def on_stop(self) -> None:
        """End the loop."""
        await self._bridge.aclose()

    async def on_failure(self, *_args: object, **_kwargs: object) -> None:
        """Clear away what is left of the loop."""
        await self._bridge.aclose()
