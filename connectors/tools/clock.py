"""The tool `clock`: what day and time it is, in any time zone."""

from __future__ import annotations

import datetime as dt
import difflib
import zoneinfo
from collections.abc import Callable
from typing import Annotated

import msgspec

from actors.messages.inbound import ToolContext, ToolResult, ToolSpec
from connectors.tools.arguments import ArgumentsTool, schema_of
from connectors.tools.registry import ToolParts

UTC = "UTC"
Timezone = Annotated[
    str,
    msgspec.Meta(
        max_length=64,
        description="IANA time zone, as in Europe/Berlin; UTC if left out",
    ),
]


class ClockArguments(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What `clock` takes."""

    timezone: Timezone = UTC


class ClockTool(ArgumentsTool[ClockArguments]):
    """Tells date, time and day of the week.

    Args:
        wall_clock: gives Unix seconds.
    """

    def __init__(self, wall_clock: Callable[[], float]) -> None:
        self._wall_clock = wall_clock
        spec = ToolSpec(
            "clock",
            "Tell the current date, time and day of the week in a time zone.",
            schema_of(ClockArguments),
            is_repeatable=True,
            effect="read",
            is_own_words=True,
        )
        super().__init__(spec, ClockArguments)

    async def answer(
        self, arguments: ClockArguments, context: ToolContext
    ) -> ToolResult:
        """Tell the time; an unknown time zone is a result with `is_error`."""
        del context  # everybody has the same time
        zone = find_zone(arguments.timezone)
        if zone is None:
            return ToolResult(unknown_zone(arguments.timezone), is_error=True)
        now = dt.datetime.fromtimestamp(self._wall_clock(), zone)
        return ToolResult(f"{now:%A, %Y-%m-%d, %H:%M:%S} {zone} (UTC{now:%z})")


def find_zone(name: str) -> dt.tzinfo | None:
    """Find a time zone by its IANA name; None if there is none."""
    if name.upper() == UTC:
        return dt.UTC
    try:
        return zoneinfo.ZoneInfo(name)
    except (zoneinfo.ZoneInfoNotFoundError, ValueError, OSError):
        # Besides unknown names: paths out of the database, folders, null bytes.
        return None


def unknown_zone(name: str) -> str:
    """Say that there is no such zone, and which one could be meant."""
    wanted = name.casefold().replace(" ", "_")
    # A city is what is usually given, so the last part is compared as well.
    by_name = {
        part.casefold(): zone
        for zone in sorted(zoneinfo.available_timezones())
        for part in (zone, zone.rpartition("/")[2])
    }
    near = difflib.get_close_matches(wanted, by_name, n=3)
    zones = dict.fromkeys(by_name[part] for part in near)
    meant = f"did you mean {', '.join(zones)}?"
    hint = meant if near else "use an IANA name such as Europe/Berlin"
    return f"there is no time zone {name!r}; {hint}"


def make_tool(parts: ToolParts) -> ClockTool:
    """Make the tool; see `registry.py`."""
    return ClockTool(parts.clock.wall)
