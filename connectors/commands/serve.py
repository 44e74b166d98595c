"""`callboard serve`: run all connectors until told to stop."""

from __future__ import annotations

import os
import signal
import socket
from collections.abc import (
    AsyncIterator,
    Awaitable,
    Callable,
    Collection,
    Mapping,
    MutableMapping,
)
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import click
import msgspec
import trio

from actors import names
from connectors.app.app import App, open_app
from connectors.app.reload.reload import Reloading, SettingsSource, Ways
from connectors.chat.platforms import MakeTransport, platform_of, serving
from connectors.chat.server_transport import ServerTransport
from connectors.chat.terminal.platform import with_terminal
from connectors.commands import config_option, describe_error, let_go_of_output
from connectors.commands.common.running import (
    Wait,
    calm_collector,
    hearing_signals,
    loaded,
    private_files,
    run_interruptible,
    wait_any,
)
from connectors.commands.forget_person import (
    erase_ordered,
    put_off_orders,
    wait_ordered,
)
from runtime import __version__
from runtime.errors import SettingsError, StartError, StoreError, StoreUnavailableError
from runtime.signals import has_terminal
from runtime.telemetry.logs import EventLog

if TYPE_CHECKING:
    from connectors.app.forwarding import ConnectionForwarder
    from connectors.app.nodes import CompanyNode, CompanySeat
    from connectors.app.sharing import SharedWork
    from connectors.config.app import AppConfig

LOG = EventLog("serve")

FORGETTING = "to forget a person; it goes on at once"
"""Why a company ends that begins anew in the same process."""

# Chosen: more than enough for a database that fails over.
MOST_TRIES = 30
"""How often in a row a node begins anew when the database did not answer as the company
began. Then the process ends with the error."""


@click.command()
@config_option
def command(config: Path | None) -> None:
    """Run all connectors until stopped with Ctrl-C or SIGTERM.

    Prints one line for each address it listens on, when it does. Changed settings are
    taken over while it runs; SIGHUP has them read at once.
    """
    with loaded(config, "") as source:
        kinds = map(platform_of, source.settings.value.connectors.values())
        if not any(kind.is_server for kind in kinds):
            raise click.UsageError(
                "there is nothing to serve: the settings have no connector but the"
                ' terminal. Add one, for example [connectors.http] kind = "http"'
            )
        service = ServiceNotifier(os.environ)
        company = source
        # Why a loop: to forget somebody, a company ends and starts in this process.
        while run_interruptible(_serve, company, service):
            company = read_again(company)


def read_again(source: SettingsSource) -> SettingsSource:
    """Read the settings again; the former ones stay if they are wrong by now.

    A process stays with its database, and remains the node that it was started as.
    """
    try:
        settings = source.load()
    except SettingsError as error:
        LOG.warning("settings not read again; the former ones stay", why=str(error))
        return source
    old, new = source.settings.value, settings.value
    if (old.store, old.nodes) != (new.store, new.nodes):
        LOG.warning("[store] or [nodes] has changed, which waits for a restart")
        kept = msgspec.structs.replace(new, store=old.store, nodes=old.nodes)
        settings = msgspec.structs.replace(settings, value=kept)
    source.redactor.learn(each.reveal() for each in settings.secrets)
    return msgspec.structs.replace(source, settings=settings)


async def _serve(source: SettingsSource, service: ServiceNotifier) -> bool:
    """Run until something ends it; give whether it is to begin anew."""
    hangup, begins_anew = Hangup(), trio.Event()
    # Why before all else: it would end the process while that starts.
    with trio.open_signal_receiver(signal.SIGHUP) as hangup.received:
        run = partial(_run, source, hangup, service, begins_anew)
        await hearing_signals(run, (signal.SIGINT, signal.SIGTERM))
    return begins_anew.is_set()


class Hangup:
    """What SIGHUP means: read the settings, unless the terminal has gone.

    Who has none (a service) or is told to outlive it (`nohup`) only ever reads.
    """

    def __init__(self) -> None:
        is_ignored = signal.getsignal(signal.SIGHUP) == signal.SIG_IGN
        self._may_end = has_terminal() and not is_ignored
        self.received: AsyncIterator[int]

    async def wait_gone(self, reload: Callable[[], Awaitable[object]]) -> None:
        """Read the settings at each signal, until the terminal has gone."""
        async for _ in self.received:
            if self._may_end and not has_terminal():
                return
            await reload()


class ServiceNotifier:
    """Tells systemd how the service is doing, if it wants to know (`Type=notify`).

    Takes what systemd says of that out of the environment: no program of an agent is to
    speak for the service. Source: sd_notify(3), sd_watchdog_enabled(3).
    """

    def __init__(self, environment: MutableMapping[str, str]) -> None:
        place = environment.pop("NOTIFY_SOCKET", "")
        self._place = f"\0{place[1:]}" if place.startswith("@") else place
        usual = str(os.getpid())
        is_mine = environment.pop("WATCHDOG_PID", usual) == usual
        within = environment.pop("WATCHDOG_USEC", "")
        self._within = int(within) / 1e6 if is_mine and within.isdecimal() else 0.0

    def tell(self, state: str) -> None:
        """Tell it one thing, such as `READY=1`; a lost one is no harm."""
        if not self._place:
            return
        kind = socket.SOCK_DGRAM | socket.SOCK_CLOEXEC | socket.SOCK_NONBLOCK
        with suppress(OSError), socket.socket(socket.AF_UNIX, kind) as way:
            way.sendto(state.encode(), self._place)

    async def beat(self) -> None:
        """Give it signs of life; a blocked loop gives none, and is restarted."""
        while self._place and self._within:
            self.tell("WATCHDOG=1")
            await trio.sleep(self._within / 3)


async def _run(
    source: SettingsSource,
    hangup: Hangup,
    service: ServiceNotifier,
    begins_anew: trio.Event,
    is_told: trio.Event,
) -> None:
    store = source.settings.value.store
    async with trio.open_nursery() as nursery:
        nursery.start_soon(service.beat)
        is_done = await trio.to_thread.run_sync(erase_ordered, store)
        ends = Ends(hangup, is_told, service, may_begin_anew=is_done)
        if source.settings.value.nodes.name:
            await _run_node(source, ends)
        else:
            await _run_company(source, ends)
        nursery.cancel_scope.cancel()
    LOG.info("stopped")
    if ends.forgets.is_set() and not is_told.is_set():
        begins_anew.set()


class Ends(msgspec.Struct, frozen=True):
    """What ends the process, and who is told of that."""

    hangup: Hangup
    is_told: trio.Event
    service: ServiceNotifier
    may_begin_anew: bool
    """False: somebody could not be forgotten, and might not be at the next try."""

    forgets: trio.Event = msgspec.field(default_factory=trio.Event)
    """Set if the company ends to forget somebody."""


async def _run_node(source: SettingsSource, ends: Ends) -> None:
    """Stand by, run the company when it is this node's turn, and stand by again."""
    # Why here: the only process of a company needs none of it.
    from connectors.app.forwarding import ConnectionForwarder, close_moved  # noqa: PLC0415
    from connectors.app.nodes import CompanySeat, doors_of_company, open_node  # noqa: PLC0415

    config = source.settings.value
    async with open_node(config) as node, trio.open_nursery() as nursery:
        forwarder = ConnectionForwarder(node, nursery, tell_address)
        tries = 0
        while not ends.is_told.is_set():
            turn = partial(wait_any, node.wait_turn, ends.is_told.wait)
            if not (node.may_work or node.is_sharing):
                LOG.info("standing by", node=config.nodes.name)
                ends.service.tell("READY=1")
            sockets = await forwarder.stand(source.settings.value, turn)
            try:
                if node.may_work and not ends.is_told.is_set():
                    # First: while the settings are read, the company may move again.
                    fence, duties = await node.wait_turn(), node.new_duties()
                    rest = duties.has_rest
                    seat = CompanySeat(fence, sockets, node, duties, rest)
                    doors = doors_of_company(source.settings.value)
                    source = await trio.to_thread.run_sync(read_again, source)
                    with suppress(StoreError):  # the next sign of life finds that out
                        await node.use(source.settings.value)
                    now = doors_of_company(source.settings.value)
                    close_moved(sockets, doors, now)
                    await _take_turn(source, ends, seat, forwarder)
                    tries = 0
            except (StoreUnavailableError, StartError) as error:
                tries += 1
                if tries == MOST_TRIES or not is_store_away(error):
                    raise
                await node.begin_anew(f"the company could not begin: {error}")
            finally:
                for each in sockets.values():
                    each.close()
        nursery.cancel_scope.cancel()


async def _take_turn(
    source: SettingsSource,
    ends: Ends,
    seat: CompanySeat,
    forwarder: ConnectionForwarder,
) -> None:
    """Run the company until it goes to another node, or has ended."""
    node = seat.node
    try:
        await _run_company(source, ends, seat, forwarder)
    except (StoreUnavailableError, StartError) as error:
        with suppress(StoreError):
            await node.look()
        if node.may_write(seat.fence) or not is_store_away(error):
            raise
        LOG.warning("the company ended here: another node took it over")
    else:
        if node.may_write(seat.fence):
            await node.hand_over()


def is_store_away(error: BaseException) -> bool:
    """Whether something failed because the database does not answer now."""
    causes = [error]
    while causes[-1].__cause__ is not None:
        causes.append(causes[-1].__cause__)
    return any(isinstance(each, StoreUnavailableError) for each in causes)


async def _run_company(
    source: SettingsSource,
    ends: Ends,
    seat: CompanySeat | None = None,
    forwarder: ConnectionForwarder | None = None,
) -> None:
    # So that `callboard chat` can talk with the company that runs.
    config, redact = with_terminal(source.settings.value), source.redactor.clean
    serves = serving if seat is None else partial(served_by, seat)
    private = private_files(source.settings)
    admin = config.admin if config.admin.is_on else None
    async with (
        open_app(
            config, serves(config), redact, private, admin=admin, seat=seat
        ) as app,
        trio.open_nursery() as nursery,
    ):
        calm_collector()
        nursery.start_soon(_announce, app)
        reloading = Reloading(
            app, config, source, Ways(serves=serves, adapt=with_terminal)
        )
        await nursery.start(reloading.run)
        nursery.start_soon(app.personas.run, app.system.find)
        ends.service.tell("READY=1")
        log_start(app, source)
        reasons: list[str] = []
        gone = partial(ends.hangup.wait_gone, reloading.reload)
        moved: tuple[Wait, ...] = ()
        sharing = None
        if seat is not None:
            seat.node.note_begun()
            nursery.start_soon(_publish, seat.node, reloading)
            moved = (noting(reasons, LOST, seat.node.wait_lost),)
            if seat.peers is None or forwarder is None:
                moved += (noting(reasons, WANTED, seat.node.wait_wanted),)
            else:
                # Why here: as for nodes.
                from connectors.app.sharing import SharedWork  # noqa: PLC0415

                sharing = SharedWork(app, seat, reloading, forwarder)
                nursery.start_soon(sharing.run, _announce)
        elif ends.may_begin_anew:  # who forgets must be alone with the database
            ordered = noting(reasons, FORGETTING, partial(wait_ordered, app.store))
            moved = (ordered,)
        else:
            nursery.start_soon(put_off_orders, app.store)
        await wait_any(
            noting(reasons, ENDED, app.system.wait_ended),
            noting(reasons, "a signal", ends.is_told.wait),
            noting(reasons, "asked to over a connector", app.told_to_end.wait),
            noting(reasons, "the terminal has gone", gone),
            *moved,
        )
        await _end_company(app, reloading, ends, reasons[0], sharing)
        nursery.cancel_scope.cancel()


def served_by(seat: CompanySeat, config: AppConfig) -> Mapping[str, MakeTransport]:
    """Say which connectors a node runs, and how each is made."""
    made = serving(config)
    return {name: make for name, make in made.items() if seat.runs(config, name)}


# Chosen: enough for all parts, and for a few bots, whose connections are closed one
# after the other.
LEFT_WITHIN = 5.0
"""Seconds for which a company at rest waits until its leases are given away."""

# Chosen: then as long is left for what is never at rest, with closed doors.
GIVING = 0.5
"""The part of `limits.drain_timeout` for which a node gives away with open doors."""

ENDED = "the company ended"
LOST = "another node has the company, or the database is away"
WANTED = "another node is to have the company"


async def _end_company(
    app: App,
    reloading: Reloading,
    ends: Ends,
    reason: str,
    sharing: SharedWork | None = None,
) -> None:
    """Have what is under way finished, unless somebody else does it by now."""
    if reason == LOST:
        LOG.warning("ending at once", why=reason)
        if (root := app.system.find(names.ROOT)) is not None:
            root.kill()
        return
    within, began = reloading.config.limits.drain_timeout, app.clock.monotonic()
    LOG.info("stopping", why=reason, drain_timeout=within)
    if reason == FORGETTING:
        ends.forgets.set()
    elif reason != WANTED:
        ends.is_told.set()
        ends.service.tell("STOPPING=1")
        if app.seat is not None:
            if sharing is not None and reason != ENDED:
                await _give_first(app, app.seat, sharing, within * GIVING)
            await app.seat.node.prepare_to_leave()
            await app.seat.node.wait_seen()
    if sharing is not None:
        sharing.scope.cancel()
    left = max(0.0, within - (app.clock.monotonic() - began))
    await _drain(app, sharing, left)
    LOG.info("drained", seconds=round(app.clock.monotonic() - began, 3))


async def _give_first(
    app: App, seat: CompanySeat, sharing: SharedWork, within: float
) -> None:
    """Give away what is at rest while doors are open: nobody is refused, nor waits.

    Args:
        within: most seconds.
    """
    app.is_draining = True  # who looks at `/readyz` sends nobody new
    await seat.node.be_drained()
    with trio.move_on_after(within):
        await sharing.wait_drained()


async def _drain(app: App, sharing: SharedWork | None, within: float) -> None:
    """Finish what is under way; meanwhile, give away what is at rest.

    Args:
        within: most seconds.
    """
    async with trio.open_nursery() as nursery:
        if sharing is not None:
            nursery.start_soon(sharing.leave)
        if await app.drain(within) and sharing is not None:
            # First: tools and servers may take long to end with the company.
            with trio.move_on_after(LEFT_WITHIN):
                await sharing.wait_left()
        nursery.cancel_scope.cancel()


async def _publish(node: CompanyNode, reloading: Reloading) -> None:
    """Tell the other nodes by which settings the company goes."""
    known: AppConfig | None = None
    while True:
        await trio.sleep(node.ttl)
        config = reloading.config
        if config is not known:
            with suppress(StoreError):  # then again
                await node.use(config)
                known = config


def log_start(app: App, source: SettingsSource) -> None:
    """Say in the log what runs."""
    settings = source.settings
    LOG.info(
        "started",
        release=__version__,
        process=os.getpid(),
        settings=str(next(iter(settings.files), "")),
        database=app.config.store.path
        if app.config.store.kind == "sqlite"
        else app.config.store.kind,
        agents=len(app.config.agents),
        connectors=", ".join(app.transports),
    )


def noting(reasons: list[str], why: str, wait: Wait) -> Wait:
    """Have a reason noted when something has been waited for."""

    async def noted() -> None:
        await wait()
        reasons.append(why)

    return noted


async def _announce(app: App, connectors: Collection[str] | None = None) -> None:
    """Say where clients and operators can connect, once they can."""
    for name, transport in (*app.transports.items(), ("admin", app.admin)):
        is_meant = connectors is None or name in connectors
        if is_meant and isinstance(transport, ServerTransport):
            host, port = await transport.wait_listening()
            place = f"[{host}]" if ":" in host else host
            url = f"{transport.scheme}://{place}:{port}"
            tell_address(f"{name}: listening on {url}")
            if transport.advice:
                tell_address(f"{name}: {transport.advice}")


def tell_address(line: str) -> None:
    """Write to standard output where clients can connect.

    Raises:
        OSError: it cannot be written, so nobody would know.
    """
    try:
        click.echo(line)
    except OSError as error:
        let_go_of_output()
        # Why in words: a reader that has gone would else be passed over in silence.
        raise OSError(describe_error(error)) from error
