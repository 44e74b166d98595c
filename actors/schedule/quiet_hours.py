"""Quiet hours, in which nothing begins by the clock; pure.

A stretch belongs to the day on which it begins: `fri 22:00-07:00` ends on a Saturday.
Its beginning and its end are times on the wall, so on days when clocks change it is an
hour longer or shorter (see `actors/rules/text/durations.py`).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from datetime import date, time, timedelta, tzinfo

import msgspec

from actors.config.schedule import QuietConfig
from actors.rules.text.durations import DAYS, at_time, shown

NEVER = "never"
"""What stands for no hours at all."""

MOST_JOINED = 32
"""Stretches that may follow each other without a pause."""

_DAY = 1440
_NAMES = tuple(day.lower() for day in DAYS)
_SHAPE = re.compile(
    r"(?:([a-z]{3})(?:-([a-z]{3}))? )?(\d\d):(\d\d)-(\d\d):(\d\d)", re.ASCII
)


class QuietPeriod(msgspec.Struct, frozen=True):
    """Hours of certain weekdays."""

    days: frozenset[int]
    """On which it begins; 0 is Monday."""

    begins: int
    ends: int
    """Minutes after midnight of that day; more than 1440: on the day after."""


def parse(text: str) -> QuietPeriod | None:
    """Read `22:00-07:00` or `sat-sun 00:00-24:00`; None if it makes no sense."""
    found = _SHAPE.fullmatch(text)
    if found is None:
        return None
    first, last, *clock = found.groups()
    days = _days(first, last or first)
    hour, minute, end_hour, end_minute = map(int, clock)
    begins, ends = hour * 60 + minute, end_hour * 60 + end_minute
    is_clock = max(minute, end_minute) < 60 and begins < _DAY and ends <= _DAY
    if not (days and is_clock) or begins == ends:
        return None
    return QuietPeriod(days, begins, ends if ends > begins else ends + _DAY)


def read(texts: Iterable[str]) -> tuple[QuietPeriod, ...]:
    """Read several; what makes no sense is left out, as the settings' check tells."""
    found = map(parse, texts)
    return tuple(each for each in found if each is not None)


def hours_of(
    kind: str, own: Sequence[str], quiet: QuietConfig
) -> tuple[tuple[str, ...], bool]:
    """Say which hours count for what is due, and whether they are its agent's own.

    Args:
        own: what the agent's `heartbeat.quiet` says.
        quiet: what `[scheduler.quiet]` says.
    """
    if kind == "heartbeat" and own:
        return tuple(each for each in own if each != NEVER), True
    return (quiet.hours if kind in quiet.kinds else ()), False


def quiet_until(stretches: Sequence[QuietPeriod], at: float, zone: tzinfo) -> float:
    """Say when it is quiet no more, in Unix seconds; 0: it is not quiet now.

    Args:
        stretches: the hours; those that follow each other are one.
        at: Unix seconds.
    """
    until = 0.0
    for _ in range(MOST_JOINED):
        end = _end(stretches, until or at, zone)
        if not end:
            break
        until = end
    return until


def is_always(stretches: Sequence[QuietPeriod]) -> bool:
    """Whether no minute of the week is left."""
    quiet = {
        (day * _DAY + minute) % (7 * _DAY)
        for each in stretches
        for day in each.days
        for minute in range(each.begins, each.ends)
    }
    return len(quiet) == 7 * _DAY


def _days(first: str | None, last: str | None) -> frozenset[int]:
    if first is None or last is None:
        return frozenset(range(7))
    if first not in _NAMES or last not in _NAMES:
        return frozenset()
    begin, end = _NAMES.index(first), _NAMES.index(last)
    return frozenset((begin + step) % 7 for step in range((end - begin) % 7 + 1))


def _end(stretches: Sequence[QuietPeriod], at: float, zone: tzinfo) -> float:
    """Give the latest end of those in which a moment falls; 0: there is none."""
    today = shown(at, zone).date()
    end = 0.0
    # Why also tomorrow: where clocks skip midnight, a day begins on the one before.
    for day in (today - timedelta(days=1), today, today + timedelta(days=1)):
        for each in stretches:
            if day.weekday() in each.days:
                begins = _moment(day, each.begins, zone)
                ends = _moment(day, each.ends, zone)
                if begins <= at < ends:
                    end = max(end, ends)
    return end


def _moment(day: date, minutes: int, zone: tzinfo) -> float:
    days, rest = divmod(minutes, _DAY)
    clock = time(rest // 60, rest % 60)
    return at_time(day + timedelta(days=days), clock, zone)
