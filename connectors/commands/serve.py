"""`callboard serve`: run all connectors until told to stop."""

from __future__ import annotations

import os
import signal
import socket
from collections.abc import AsyncIterator, Awaitable, Callable, MutableMapping
from contextlib import suppress
from functools import partial
from pathlib import Path

import click
import trio

from connectors.app.app import App, open_app
from connectors.app.reload.reload import Reloading, SettingsSource, Ways
from connectors.chat.platforms import platform_of, serving
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
from connectors.commands.forget_person import erase_ordered
from runtime import __version__
from runtime.signals import has_terminal
from runtime.telemetry.logs import EventLog

LOG = EventLog("serve")


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
        erase_ordered(source.settings.value.store)
        run_interruptible(_serve, source)


async def _serve(source: SettingsSource) -> None:
    hangup = Hangup()
    # Why before all else: it would end the process while that starts.
    with trio.open_signal_receiver(signal.SIGHUP) as hangup.received:
        run = partial(_run, source, hangup)
        await hearing_signals(run, (signal.SIGINT, signal.SIGTERM))


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

    Args:
        environment: of this process.
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


async def _run(source: SettingsSource, hangup: Hangup, is_told: trio.Event) -> None:
    # So that `callboard chat` can talk with the company that runs.
    config, redact = with_terminal(source.settings.value), source.redactor.clean
    private = private_files(source.settings)
    admin = config.admin if config.admin.is_on else None
    async with (
        open_app(config, serving(config), redact, private, admin=admin) as app,
        trio.open_nursery() as nursery,
    ):
        calm_collector()
        service = ServiceNotifier(os.environ)
        nursery.start_soon(service.beat)
        nursery.start_soon(_announce, app)
        reloading = Reloading(
            app, config, source, Ways(serves=serving, adapt=with_terminal)
        )
        await nursery.start(reloading.run)
        nursery.start_soon(app.personas.run, app.system.find)
        service.tell("READY=1")
        log_start(app, source)
        reasons: list[str] = []
        gone = partial(hangup.wait_gone, reloading.reload)
        await wait_any(
            noting(reasons, "the company ended", app.system.wait_ended),
            noting(reasons, "a signal", is_told.wait),
            noting(reasons, "asked to over a connector", app.told_to_end.wait),
            noting(reasons, "the terminal has gone", gone),
        )
        service.tell("STOPPING=1")
        within = reloading.config.limits.drain_timeout
        LOG.info("stopping", why=reasons[0], drain_timeout=within)
        began = app.clock.monotonic()
        await app.drain(within)
        LOG.info("drained", seconds=round(app.clock.monotonic() - began, 3))
        nursery.cancel_scope.cancel()
    LOG.info("stopped")


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


async def _announce(app: App) -> None:
    """Say where clients and operators can connect, once they can."""
    for name, transport in (*app.transports.items(), ("admin", app.admin)):
        if isinstance(transport, ServerTransport):
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
