"""Durations and local times in words. Pure.

Also converts between local time and Unix seconds, including days with a clock change.

When clocks go forward, a local time that does not exist is moved by the same amount
(02:30 becomes 03:30). When clocks go back, an ambiguous time means the first one.
Source: PEP 495, `fold=0`.
"""

from __future__ import annotations

from datetime import UTC, date, datetime, time, tzinfo

from actors.rules.text.translations import Translate, english

# Why one text for one and one for many: placeholders allow no more grammar; languages
# with more forms put the number last.
UNITS = (
    (86_400.0, "{count} day", "{count} days"),
    (3_600.0, "{count} hour", "{count} hours"),
    (60.0, "{count} minute", "{count} minutes"),
    (1.0, "{count} second", "{count} seconds"),
)


def spoken(seconds: float, say: Translate = english) -> str:
    """Describe a duration roughly: `40 seconds`, `2 minutes`, `3 days`.

    Args:
        seconds: the duration; less than one second counts as one.
    """
    for length, one, many in UNITS:
        count = round(seconds / length)
        if seconds >= length or length == 1.0:
            count = max(1, count)
            return say(one if count == 1 else many).format(count=count)
    raise AssertionError("unreachable: a second is the last unit")


def lasting(seconds: float) -> str:
    """Describe a duration roughly in English: `40 seconds`, `2 minutes`."""
    for unit, length in (("hour", 3600.0), ("minute", 60.0), ("second", 1.0)):
        count = round(seconds / length)
        if seconds >= length or unit == "second":
            count = max(1, count)
            return f"{count} {unit}{'' if count == 1 else 's'}"
    raise AssertionError("unreachable: a second is the last unit")


DAYS = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")

MOST_AHEAD = 10 * 366 * 86_400
"""Longest postponement in seconds."""


def instant(local: datetime, zone: tzinfo) -> float:
    """Return the Unix seconds of a local time.

    Args:
        local: the local time, without a zone.
    """
    return local.replace(tzinfo=zone, fold=0).timestamp()


def shown(at: float, zone: tzinfo) -> datetime:
    """Return the local time of Unix seconds, without its zone."""
    return datetime.fromtimestamp(at, UTC).astimezone(zone).replace(tzinfo=None, fold=0)


def at_time(day: date, clock: time, zone: tzinfo) -> float:
    """Return the Unix seconds of a local time on a day."""
    return instant(datetime.combine(day, clock), zone)


def in_words(at: float, zone: tzinfo, name: str) -> str:
    """Format a time: `Mon 2026-11-23 09:00 Europe/Berlin`.

    Args:
        at: Unix seconds.
        name: name of the time zone.
    """
    local = shown(at, zone)
    seconds = f":{local.second:02}" if local.second else ""
    day = f"{DAYS[local.weekday()]} {local:%Y-%m-%d %H:%M}"
    return f"{day}{seconds} {name}".rstrip()
