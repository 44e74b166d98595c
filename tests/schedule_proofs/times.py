"""When rules are due, found by looking at the clock of every minute: no cleverness.

Nothing here is taken from `actors/rules`; it says the same in another way, slowly.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta
from functools import lru_cache
from zoneinfo import ZoneInfo

MINUTE = 60
DAY = 86_400

# Chosen: the offsets of all zones are multiples of a quarter of an hour, and no rule
# of these proofs looks at less than five minutes.
STEP = 5 * MINUTE

UNITS = {"s": 1, "m": 60, "h": 3600, "d": DAY}


@lru_cache(maxsize=4096)
def all_times(rule: str, zone: str, anchor: int, begin: int, end: int) -> list[int]:
    """Give all times of a rule from `begin` up to `end`, in Unix seconds.

    Args:
        rule: `daily`, `every 45m`, `beat 30`, `*/20 * * * *` or `30 2 * * *`;
            empty: once.
        zone: by whose clocks.
        anchor: where it begins.
        begin: the first second that counts.
        end: the last one.
    """
    where = ZoneInfo(zone)
    if not rule:
        found: Iterator[int] = iter((anchor,))
    elif rule == "daily":
        found = _daily(where, anchor, begin, end)
    elif rule.startswith("every "):
        step = int(rule[6:-1]) * UNITS[rule[-1]]
        found = iter(range(anchor, end + 1, step))
    elif rule.startswith("beat "):
        found = _beats(int(rule[5:]), where, begin, end)
    elif rule.startswith("*/"):
        every = int(rule.split(maxsplit=1)[0][2:])
        found = (
            at for at, here in _clock(where, begin, end) if not here.minute % every
        )
    else:
        found = _fixed(rule, where, begin, end)
    least = 0 if rule.startswith("beat ") else anchor
    return sorted({at for at in found if begin <= at <= end and at >= least})


def _clock(where: ZoneInfo, begin: int, end: int) -> Iterator[tuple[int, datetime]]:
    """Look at the clock on the wall every five minutes."""
    for at in range(begin - begin % STEP, end + 1, STEP):
        yield at, datetime.fromtimestamp(at, where)


def _days(where: ZoneInfo, begin: int, end: int) -> Iterator[date]:
    day = datetime.fromtimestamp(begin, where).date() - timedelta(days=2)
    while day <= datetime.fromtimestamp(end, where).date() + timedelta(days=2):
        yield day
        day += timedelta(days=1)


def _daily(where: ZoneInfo, anchor: int, begin: int, end: int) -> Iterator[int]:
    clock = datetime.fromtimestamp(anchor, where).time()
    for day in _days(where, begin, end):
        # PEP 495: what does not exist is moved on, of what exists twice the first.
        yield int(datetime.combine(day, clock, where).timestamp())


def _beats(minutes: int, where: ZoneInfo, begin: int, end: int) -> Iterator[int]:
    for at, here in _clock(where, begin, end):
        midnight = datetime(here.year, here.month, here.day, tzinfo=where).timestamp()
        if (at - midnight) % (minutes * MINUTE) == 0:
            yield at


def _fixed(rule: str, where: ZoneInfo, begin: int, end: int) -> Iterator[int]:
    """Give each day's time once; one that does not exist comes right after the gap."""
    minute, hour = map(int, rule.split()[:2])
    for day in _days(where, begin, end):
        wanted = datetime(day.year, day.month, day.day, hour, minute)  # noqa: DTZ001
        at = int(wanted.replace(tzinfo=UTC).timestamp()) - 2 * DAY
        while datetime.fromtimestamp(at, where).replace(tzinfo=None) < wanted:
            at += STEP
        yield at
