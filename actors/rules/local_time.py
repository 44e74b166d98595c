"""Between a clock on the wall and Unix seconds, also on the days when clocks change.

Pure. Where clocks go forward, some local times do not exist: such a time is moved on by
as much as the clocks are (02:30 becomes 03:30). Where they go back, some exist twice:
the first is meant. Source: PEP 495, `fold=0`.
"""

from __future__ import annotations

from datetime import UTC, date, datetime, time, tzinfo

DAYS = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")

MOST_AHEAD = 10 * 366 * 86_400
"""Seconds into the future that anything may be put off for."""


def instant(local: datetime, zone: tzinfo) -> float:
    """Give the Unix seconds at which clocks in a zone show a time.

    Args:
        local: the time shown, without a zone.
        zone: where the clocks hang.
    """
    return local.replace(tzinfo=zone, fold=0).timestamp()


def shown(at: float, zone: tzinfo) -> datetime:
    """Give what clocks in a zone show at these Unix seconds, without the zone."""
    return datetime.fromtimestamp(at, UTC).astimezone(zone).replace(tzinfo=None, fold=0)


def at_time(day: date, clock: time, zone: tzinfo) -> float:
    """Give the Unix seconds of a time on a day."""
    return instant(datetime.combine(day, clock), zone)


def in_words(at: float, zone: tzinfo, name: str) -> str:
    """Say when something is: `Mon 2026-11-23 09:00 Europe/Berlin`.

    Args:
        at: Unix seconds.
        zone: where the clocks hang.
        name: what the zone is called.
    """
    local = shown(at, zone)
    seconds = f":{local.second:02}" if local.second else ""
    day = f"{DAYS[local.weekday()]} {local:%Y-%m-%d %H:%M}"
    return f"{day}{seconds} {name}".rstrip()
