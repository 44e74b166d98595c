"""`callboard chat`: talk with the agents in this terminal.

With the company of these settings that runs already, by its socket; without one, with a
company that this process runs.
"""

from __future__ import annotations

import os
import sys
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, TextIO, cast

import click
import trio

from connectors.app.app import open_app
from connectors.app.reload.reload import Reloading, SettingsSource, Ways
from connectors.chat.platforms import serving
from connectors.chat.terminal.client import CHAT, TerminalClient, TerminalHello
from connectors.chat.terminal.plain import PlainChat, PlainSettings, StandardConsole
from connectors.chat.terminal.platform import terminal_of, with_terminal
from connectors.chat.terminal.transport import TerminalTransport, dial, socket_beside
from connectors.commands import config_option, find_settings, given_settings
from connectors.commands.common.output import log_option
from connectors.commands.common.running import (
    calm_collector,
    hearing_signals,
    loaded,
    private_files,
    run_interruptible,
    wait_any,
)
from connectors.commands.forget_person import erase_ordered, put_off_orders
from connectors.settings.load import load_app
from runtime import __version__
from runtime.clock import SystemClock
from runtime.ids import IdSource

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from connectors.chat.terminal.screen import ScreenChat

ATTACHED = "the company that runs here"
OWN = "no `callboard serve` runs: this terminal runs the company"
HISTORY = ".history"


@click.command()
@config_option
@click.option("--agent", default="", help="Whom to talk with; without it, routes say.")
@click.option("--user", default="", help="Your name, as the agents see it.")
@click.option(
    "--as",
    "name",
    default="",
    metavar="CONVERSATION",
    help="Conversation to open; without it, the first that no terminal has open.",
)
@log_option
def command(
    config: Path | None, agent: str, user: str, name: str, log_level: str
) -> None:
    """Talk with the agents in this terminal.

    If `callboard serve` runs with the same settings, you talk with its agents, each
    terminal in a conversation of its own; else this process runs them until you leave.
    /help lists the commands. Ctrl-C stops an answer, and leaves when nothing goes on;
    Ctrl-D leaves. What was not answered when you left is answered when you come back.
    """
    check_streams(sys.stdin, sys.stdout)
    if name and not CHAT.fullmatch(name):
        text = "up to 64 letters, digits, dots, underscores and hyphens"
        raise click.BadParameter(text, param_hint="--as")
    hello = TerminalHello(__version__, name, user=user, agent=agent)
    # Why by itself: who only joins needs none of the company's secrets.
    found = find_settings(config, Path.cwd(), may_fall_back=True)
    settings = load_app(
        found.path, os.environ, needs_secrets=False, given=given_settings()
    ).value
    database = Path(settings.store.path)
    known = tuple(settings.agents)
    if is_served(database) and run_interruptible(_attach, hello, database):
        return
    with loaded(config, log_level, may_fall_back=True) as source:
        if agent and agent not in known:
            raise click.UsageError(
                f"there is no agent {agent!r}; known: {', '.join(known)}"
            )
        erase_ordered(source.settings.value.store)
        run_interruptible(_run, source, hello)


def is_served(database: Path) -> bool:
    """Whether a process listens beside a database, or left its socket there.

    False where this user may not look: the store then names the folder, and what to do.
    """
    try:
        return socket_beside(database).is_socket()
    except OSError:
        return False


async def _attach(hello: TerminalHello, database: Path) -> bool:
    """Talk with the company that runs; False: none does."""
    reach = partial(dial, socket_beside(database))
    try:
        stream = await reach()
    except OSError:
        return False  # a socket that a process left behind
    face = make_face(database, ATTACHED)

    async def run(is_told: trio.Event) -> None:
        talk = partial(_talk, face, hello, reach, stream)
        await wait_any(talk, is_told.wait)

    await hearing_signals(run)
    _tell_end(face)
    return True


async def _run(source: SettingsSource, hello: TerminalHello) -> None:
    """Run the company, and talk with it."""
    adapt = partial(with_terminal, user=hello.user)
    config, redact = adapt(source.settings.value), source.redactor.clean
    private = private_files(source.settings)
    name, _ = terminal_of(config)
    make = {name: serving(config)[name]}
    face = make_face(Path(config.store.path), OWN)

    async def run(is_told: trio.Event) -> None:
        async with open_app(config, make, redact, private) as app:
            calm_collector()
            terminals = cast("TerminalTransport", app.transports[name])
            talk = partial(_talk, face, hello, terminals.open_seat)
            personas = partial(app.personas.run, app.system.find)
            reloading = Reloading(app, config, source, Ways(adapt=adapt))
            ends = (talk, app.system.wait_ended, is_told.wait)
            orders = partial(put_off_orders, app.store)
            await wait_any(*ends, reloading.run, personas, orders)

    await hearing_signals(run)
    _tell_end(face)


async def _talk(
    face: PlainChat | ScreenChat,
    hello: TerminalHello,
    reach: Callable[[], Awaitable[trio.abc.Stream]],
    first: trio.abc.Stream | None = None,
) -> None:
    """Talk until the person leaves."""
    face.client = TerminalClient(reach, hello, face, IdSource(SystemClock()))

    # Why shielded: told to end, the person's end says what it showed, and goes itself.
    listening = trio.CancelScope(shield=True)

    async def listen() -> None:
        with listening:
            await face.ready.wait()
            await face.client.run(first)

    async def show() -> None:
        try:
            await face.run()
        finally:
            listening.cancel()

    await wait_any(show, listen)


def make_face(database: Path, where: str) -> PlainChat | ScreenChat:
    """Choose what is shown: a screen, or plain lines where there is none."""
    console = StandardConsole(sys.stdin, sys.stdout)
    if console.is_interactive and os.environ.get("TERM", "dumb") != "dumb":
        # Why here: it takes a quarter of a second, and pipes need none of it.
        from connectors.chat.terminal.screen import ScreenChat  # noqa: PLC0415

        database.parent.mkdir(parents=True, exist_ok=True)
        return ScreenChat(database.with_name(database.name + HISTORY), where)
    return PlainChat(PlainSettings(is_interactive=console.is_interactive), console)


def _tell_end(face: PlainChat | ScreenChat) -> None:
    """Raise why nothing could be shown any more, if that was the end."""
    if face.output_error is not None:
        raise face.output_error


def check_streams(*streams: TextIO | None) -> None:
    """Refuse streams that were closed before the start: Python has None for them.

    Raises:
        click.UsageError: one is.
    """
    if None in streams:
        raise click.UsageError(
            "chat needs standard input and standard output, and one of them is closed"
        )
