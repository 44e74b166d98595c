"""When something is due, as models write it; pure.

Read are `2026-11-23 09:00`, ISO 8601 with or without a zone, and `in 20 minutes`.
Nothing is guessed: what is written any other way is refused with a reason, which the
model, and whoever asked, can do something about.
"""

from __future__ import annotations

import math
import re
from datetime import datetime, tzinfo

import msgspec

from actors.rules.local_time import MOST_AHEAD, in_words, instant

LONGEST = 64
"""Characters of a time that are read."""

JUST_PAST = 60.0
"""Seconds: a time that is past by less means now; a model takes that long to write."""

_ISO = re.compile(
    r"(\d{4}-\d\d-\d\d)[T ]+(\d\d?:\d\d(?::\d\d)?)(?:\.\d+)?\s*(Z|[+-]\d\d:?\d\d)?",
    re.ASCII | re.IGNORECASE,
)
_UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86_400, "w": 604_800}
_SPAN = r"(\d{1,9})\s*(s|sec|m|min|h|hr|d|w|(?:second|minute|hour|day|week))s?"
_IN = re.compile(rf"in\s+{_SPAN}(?:\s*(?:,|and)?\s*{_SPAN})?", re.ASCII | re.IGNORECASE)
_EVERY = re.compile(rf"every\s+{_SPAN}", re.ASCII | re.IGNORECASE)


class Unclear(msgspec.Struct, frozen=True):
    """Why a time, or a rule of times, cannot be taken."""

    why: str
    """For whoever wrote it, and for people."""


def parse_moment(
    text: str, now: float, zone: tzinfo, *, may_be_past: bool = False
) -> float | Unclear:
    """Read when something is due, as whole Unix seconds.

    Args:
        text: as it was written.
        now: Unix seconds.
        zone: whose clock is meant if the text does not say.
        may_be_past: whether it is where something that repeats begins.
    """
    told = text.strip().strip("\"'`").strip()
    if len(told) > LONGEST:
        return Unclear("the time is too long to be one")
    soon = _in_a_while(told, now)
    at = _on_the_clock(told, zone) if soon is None else soon
    if not isinstance(at, float):
        return at
    if is_past(at, now) and not may_be_past:
        return Unclear(f"that is past: it is {in_words(now, zone, '')} now")
    return _within(at, now)


def seconds_of_every(text: str) -> int:
    """Read `every 30s`, `every 5 minutes`; 0 if it is nothing of the kind."""
    found = _EVERY.fullmatch(text)
    return int(found[1]) * _UNITS[found[2][0].lower()] if found else 0


def is_past(at: float, now: float) -> bool:
    """Whether a time is over, and was not just now."""
    return at < now - JUST_PAST


def _in_a_while(told: str, now: float) -> float | None:
    found = _IN.fullmatch(told)
    if not found:
        return None
    seconds = int(found[1]) * _UNITS[found[2][0].lower()]
    if found[3]:
        seconds += int(found[3]) * _UNITS[found[4][0].lower()]
    return float(math.ceil(now) + seconds)


def _on_the_clock(told: str, zone: tzinfo) -> float | Unclear:
    found = _ISO.fullmatch(told)
    if not found:
        return Unclear(
            f"{told!r} is no time that I can read; write it as 2026-11-23 09:00, or as"
            " in 20 minutes"
        )
    day, clock, offset = found.groups()
    clock = clock if clock[2] == ":" else f"0{clock}"
    try:
        local = datetime.fromisoformat(f"{day}T{clock}")
        if not offset:
            return instant(local, zone)
        written = datetime.fromisoformat(f"{day}T{clock}{offset.upper()}")
        return written.timestamp()
    except (ValueError, OverflowError):
        return Unclear(f"{told!r} is in no calendar")


def _within(at: float, now: float) -> float | Unclear:
    if at > now + MOST_AHEAD:
        return Unclear("that is more than ten years ahead")
    if at < now - MOST_AHEAD:
        return Unclear("that is long past")
    return at
