"""Options that several commands have: `--since`, `--yes`, `--all-failed`."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from datetime import datetime

import click

from connectors.admin.display import UNITS
from connectors.commands.common.output import is_for_program
from runtime.clock import Clock, SystemClock

AGO = re.compile(r"(\d{1,6})([smhd])")
LENGTHS = dict(UNITS)


def seconds_of(text: str, clock: Clock) -> float:
    """Read `2026-11-21`, `2026-11-21T14:00`, `90s`, `30m`, `2h`, `7d` as Unix seconds.

    Args:
        text: a time without an offset is local.
        clock: tells the time that lies so long ago.

    Raises:
        ValueError: it is none of these.
    """
    ago = AGO.fullmatch(text)
    if ago is not None:
        return clock.wall() - int(ago[1]) * LENGTHS[ago[2]]
    return datetime.fromisoformat(text).astimezone().timestamp()


def _read(_: click.Context, __: click.Parameter, value: str | None) -> float:
    if value is None:
        return 0.0
    try:
        return seconds_of(value, SystemClock())
    except (ValueError, OverflowError) as error:
        raise click.BadParameter(
            f"{value!r} is no time; write 2026-11-21, 2026-11-21T14:00, 30m, 2h or 7d"
        ) from error


since_option = click.option(
    "--since",
    metavar="TIME",
    callback=_read,
    help="Only from then on: 2026-11-21, 2026-11-21T14:00, 30m, 2h, 7d.",
)
"""Gives a command the parameter `since: float`, Unix seconds; 0 without it."""

yes_option = click.option("--yes", is_flag=True, help="Do not ask.")
"""Gives a command the parameter `yes: bool`; pass it to `is_wanted`."""


def is_wanted(question: str, *, yes: bool) -> bool:
    """Ask, unless that was answered on the command line.

    Raises:
        click.UsageError: nobody is there to answer.
    """
    if yes:
        return True
    if is_for_program():
        raise click.UsageError("--json asks nobody; give --yes")
    click.echo(f"{question} [y/N] ", err=True, nl=False)
    # Python has None for a standard input that was closed before the start.
    answer = "" if sys.stdin is None else sys.stdin.readline()
    if not answer:
        click.echo(err=True)
        raise click.UsageError("nobody is there to say yes; give --yes")
    if answer.strip().lower() in {"y", "yes"}:
        return True
    click.echo("Nothing was changed.", err=True)
    return False


def named_or_all(
    help_text: str,
) -> Callable[[Callable[..., object]], Callable[..., object]]:
    """Give a command the parameters `ids`, `all_failed` and `yes`."""

    def decorated(command: Callable[..., object]) -> Callable[..., object]:
        command = click.argument("ids", nargs=-1, metavar="ID...")(command)
        option = click.option("--all-failed", is_flag=True, help=help_text)
        return yes_option(option(command))

    return decorated


def refuse_unclear(ids: tuple[str, ...], what: str, *, all_failed: bool) -> None:
    """Refuse a command that does not say which rows it means.

    Raises:
        click.UsageError: none is named, or both ways are used.
    """
    if all_failed == bool(ids):
        raise click.UsageError(f"give IDs, or --all-failed for all that {what}")


def split_chat(text: str) -> tuple[str, str]:
    """Split `matrix/!room:example.org`, or `matrix:!room:example.org`, after the name.

    Returns:
        The connector, and the chat; what is missing is empty.
    """
    connector, _, chat = re.sub(r"\A([a-z][a-z0-9_-]*):", r"\1/", text).partition("/")
    return connector, chat
