"""`callboard chat`: talk with the agents in this terminal."""

from __future__ import annotations

import sys
from functools import partial
from typing import TYPE_CHECKING, TextIO

import click
import msgspec

from connectors.app.app import open_app
from connectors.app.reload.reload import Reloading, SettingsSource, Ways
from connectors.chat.terminal.console import StandardConsole
from connectors.chat.terminal.platform import TerminalConfig
from connectors.chat.terminal.terminal import TerminalSettings, TerminalTransport
from connectors.commands import config_option
from connectors.commands.common.running import (
    calm_collector,
    hearing_signals,
    loaded,
    private_files,
    run_interruptible,
    wait_any,
)

if TYPE_CHECKING:
    from pathlib import Path

    import trio

    from actors.transport import Transport
    from connectors.chat.platforms import MakeTransport, TransportParts
    from connectors.config.app import AppConfig

NAME = "terminal"
"""Name of the account if the settings have no terminal."""


@click.command()
@config_option
@click.option("--agent", default="", help="Whom to talk with; without it, routes say.")
@click.option("--user", default="", help="Your name, as the agents see it.")
@click.option(
    "--log",
    "log_level",
    type=click.Choice(["debug", "info", "warning", "error"]),
    default="error",
    show_default=True,
    help="Least important kind of log line that is shown.",
)
def command(config: Path | None, agent: str, user: str, log_level: str) -> None:
    """Talk with the agents in this terminal.

    /stop stops an answer, /help lists the commands, /quit or Ctrl-D ends. What was
    not answered when you left is answered when you come back.
    """
    with loaded(config, log_level, may_fall_back=True) as source:
        known = tuple(source.settings.value.agents)
        if agent and agent not in known:
            raise click.UsageError(
                f"there is no agent {agent!r}; known: {', '.join(known)}"
            )
        run_interruptible(_chat, source, agent, user)


async def _chat(source: SettingsSource, agent: str, user: str) -> None:
    config, redact = _at_terminal(source.settings.value, user), source.redactor.clean
    private = private_files(source.settings)
    name, make = _terminal(config, agent)

    async def run(is_told: trio.Event) -> None:
        async with open_app(config, {name: make}, redact, private) as app:
            calm_collector()
            ends = (app.ended[name].wait, app.system.wait_ended, is_told.wait)
            personas = partial(app.personas.run, app.system.find)
            ways = Ways(adapt=partial(_at_terminal, user=user))
            reloading = Reloading(app, config, source, ways)
            await wait_any(*ends, reloading.run, personas)
            terminal = app.transports[name]
        if isinstance(terminal, TerminalTransport) and terminal.output_error:
            raise terminal.output_error

    await hearing_signals(run)


def _at_terminal(config: AppConfig, user: str) -> AppConfig:
    """Say in the settings who sits at the terminal: they may approve tool calls."""
    name, terminal = _account(config)
    seated = msgspec.structs.replace(terminal, user=user or terminal.user)
    connectors = {**config.connectors, name: seated}
    return msgspec.structs.replace(config, connectors=connectors)


def _account(config: AppConfig) -> tuple[str, TerminalConfig]:
    for name, each in config.connectors.items():
        if isinstance(each, TerminalConfig):
            return name, each
    return NAME, TerminalConfig()


def _terminal(config: AppConfig, agent: str) -> tuple[str, MakeTransport]:
    """Choose the terminal account, and say how it is made.

    Raises:
        click.UsageError: there is no keyboard or no screen.
    """
    check_streams(sys.stdin, sys.stdout)
    name, account = _account(config)
    console = StandardConsole(sys.stdin, sys.stdout)
    settings = TerminalSettings(
        name=name,
        user=account.user,
        agent=agent,
        is_interactive=console.is_interactive,
    )

    def make(parts: TransportParts) -> Transport:
        made = TerminalTransport(settings, console, parts.clock, parts.ids)
        made.blobs, made.shown = parts.blobs, parts.shown
        return made

    return name, make


def check_streams(*streams: TextIO | None) -> None:
    """Refuse streams that were closed before the start: Python has None for them.

    Raises:
        click.UsageError: one is.
    """
    if None in streams:
        raise click.UsageError(
            "chat needs standard input and standard output, and one of them is closed"
        )
