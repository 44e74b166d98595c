"""`--since`: a time, or how long ago."""

from __future__ import annotations

import re
from datetime import datetime
from typing import TYPE_CHECKING

import click

from connectors.office.moments import UNITS
from runtime.clock import SystemClock

if TYPE_CHECKING:
    from runtime.clock import Clock

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
