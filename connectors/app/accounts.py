"""Has connectors come, go and change while the company runs, one after the other.

A connector that goes or changes first takes nothing more in and lets what was asked by
it be answered and said, for as long as `limits.drain_timeout`; what is left then stays
in the database, and goes on when it is back.

What lives on asyncio (its loop, and the server that operators ask) is hosted by actors,
so that supervisors can restart it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

import msgspec
import trio

from actors import names
from actors.protocol import RouteArrived
from actors.tree import connector_branch
from connectors.chat.platforms import MakeTransport, platform_of
from connectors.chat.server_transport import ServerTransport
from connectors.config.app import AppConfig, HttpConfig
from connectors.settings.checks.access import owners_of
from runtime.actor.actor import Actor
from runtime.errors import DeclineStart, KernelError, MisuseError, SettingsError
from runtime.supervision.child import ChildSpec
from runtime.supervision.supervisor import RenewChild, RestartChild, StopChild
from runtime.telemetry.logs import EventLog

if TYPE_CHECKING:
    import socket
    from collections.abc import Callable, Iterable, Mapping

    from actors.transport import Transport
    from connectors.app.app import App
    from connectors.asyncio_bridge.bridge import Bridge
    from connectors.web.operations import AdminServer
    from runtime.actor.ref import ActorRef

    Serves = Callable[[AppConfig], Mapping[str, MakeTransport]]


def edges_specs(
    bridge: Bridge, transports: Mapping[str, Transport], admin: AdminServer | None
) -> tuple[ChildSpec, ...]:
    """Say how the loop is started, and the operators' server on it.

    Without anybody who needs the loop, it is not.

    Args:
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


def needs_loop(transport: Transport) -> bool:
    """Tell whether a connector runs only while the loop does."""
    is_on_loop = bool(getattr(transport, "needs_loop", False))
    return is_on_loop or isinstance(transport, ServerTransport)


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


LOG = EventLog("settings")

# Chosen: as much as a connector with all its children is given to stop, and to start.
WITHIN = 90.0

EDGES = f"{names.ROOT}/edges"


class Doors:
    """The connectors of a running company.

    Args:
        serves: says which connectors are to run by some settings; None: those that
            run now, whatever the settings say.
    """

    def __init__(self, app: App, serves: Serves | None) -> None:
        self._app = app
        self._serves = serves
        self._away = set(app.elsewhere_now())
        """Those of which another node may have the transport."""

        self._made_from = {name: told(name, app.config) for name in app.transports}
        """What those were made from that run as they should: whatever the settings
        say, and whatever could be done of a change."""

    def prepare(self, after: AppConfig) -> dict[str, Transport]:
        """Make what is new or changes; take its addresses, but those that run.

        Raises:
            SettingsError: an address cannot be listened on; nothing is kept.
        """
        if self._serves is None:
            return {}
        made: dict[str, Transport] = {}
        for name, make in self._serves(after).items():
            if self.is_same(name, after):
                continue
            made[name] = transport = make(self._app.parts)
            config = after.connectors[name]
            if isinstance(config, HttpConfig) and not self._has(config):
                try:
                    reserve(transport)
                except SettingsError:
                    let_go(made.values())
                    raise
        return made

    def is_same(self, name: str, after: AppConfig) -> bool:
        """Whether a connector runs, and goes on as it is."""
        return name in self._made_from and self._made_from[name] == told(name, after)

    def _has(self, config: HttpConfig) -> bool:
        """Whether an address is taken by a connector that runs."""
        return any(
            isinstance(each, HttpConfig)
            and config.port
            and (each.host, each.port) == (config.host, config.port)
            for each in self._made_from.values()
        )

    def leaving(self, after: AppConfig) -> tuple[str, ...]:
        """Name those that are to stop, for good or to begin anew."""
        if self._serves is None:
            return ()
        staying = self._serves(after)
        return tuple(
            name
            for name in self._app.transports
            if name not in staying or not self.is_same(name, after)
        )

    async def stand_in(self, after: AppConfig) -> None:
        """Have a stand-in for each connector that another node may have by settings.

        Raises:
            KernelError: one does not start, or end.
        """
        away = set(self._app.elsewhere_now(after))
        for name in self._away - away - self._app.transports.keys():
            await self._connectors().ask(StopChild(name, forget=True), timeout=WITHIN)
        for name in away - self._away - self._app.transports.keys():
            branch = connector_branch(self._app.company, name)
            await self._connectors().ask(RenewChild(branch), timeout=WITHIN)
        self._away = away

    async def close(self, name: str, within: float, *, has_moved: bool = False) -> None:
        """Bring a connector to rest, and end it.

        Args:
            within: seconds for what it has taken in.
            has_moved: whether it goes on at another node.

        Raises:
            KernelError: it does not end.
        """
        app = self._app
        self._made_from.pop(name, None)
        drain = app.drain_of((name,), is_the_end=False, has_moved=has_moved)
        await drain.run(within)
        await self._connectors().ask(StopChild(name, forget=True), timeout=WITHIN)
        del app.transports[name]
        self._away.discard(name)
        LOG.info("connector ended", connector=name)

    async def open(self, name: str, transport: Transport, by: AppConfig) -> None:
        """Start a connector.

        Args:
            transport: made by `prepare`.

        Raises:
            KernelError: it does not start.
            SettingsError: its address cannot be listened on.
        """
        app = self._app
        if isinstance(transport, ServerTransport) and not transport.is_reserved:
            reserve(transport, app.sockets.pop(name, None))
        if needs_loop(transport):
            await self._open_loop()
        app.transports[name] = transport
        app.ended[name] = trio.Event()
        branch = connector_branch(app.company, name)
        self.take_up()  # before: what was left of it goes before what comes new
        # In the place of what stood for it while it was elsewhere, if it was.
        await self._connectors().ask(RenewChild(branch), timeout=WITHIN)
        self._away.discard(name)
        self._made_from[name] = told(name, by)
        self.take_up()
        LOG.info("connector started", connector=name)

    def take_up(self) -> None:
        """Have looked for messages that nobody answers."""
        router = self._app.system.find(names.ROUTER)
        if router is not None:
            router.tell(RouteArrived())

    async def _open_loop(self) -> None:
        """Start what such a connector needs, unless it is there."""
        root = self._app.system.find(names.ROOT)
        if root is not None and self._app.system.find(EDGES) is None:
            try:
                await root.ask(RestartChild("edges"), timeout=WITHIN)
            except MisuseError as error:  # its supervisor is starting it again
                LOG.info("the loop is being started", why=str(error))

    def _connectors(self) -> ActorRef:
        found = self._app.system.find(names.CONNECTORS)
        if found is None:
            raise KernelError("the connectors are being restarted; tried again soon")
        return found


LOOKED_UP = {"access": None, "retry_failures": False, "on_unknown": "resend"}
"""Settings that change nothing of a transport: the domain looks them up."""


def told(name: str, config: AppConfig) -> object:
    """Give all that a transport is made from; what others look up left out."""
    own = config.connectors.get(name)
    if own is None:
        return None
    platform = platform_of(own)
    rest = {key: LOOKED_UP[key] for key in LOOKED_UP.keys() & own.__struct_fields__}
    owners = owners_of(name, config) if platform.needs_owners else frozenset[str]()
    return msgspec.structs.replace(own, **rest), owners


def reserve(transport: Transport, given: socket.socket | None = None) -> None:
    """Take the address of a transport that has one.

    Args:
        given: what listens there already.

    Raises:
        SettingsError: it cannot be listened on.
    """
    if isinstance(transport, ServerTransport):
        try:
            transport.reserve(given)
        except OSError as error:
            raise SettingsError(f"a connector cannot listen: {error}") from error


def let_go(transports: Iterable[Transport]) -> None:
    """Give back addresses that were taken and are not used."""
    for each in transports:
        if isinstance(each, ServerTransport):
            each.release()
