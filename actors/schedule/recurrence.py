"""Recurrence: when something that repeats is due next; pure.

A rule is a text: empty for what happens once; `daily`, `weekdays`, `weekly`, `monthly`,
`yearly` at the time of day of its beginning; `every 30s`; cron in 5 fields, or in 6
with the seconds first; `beat 30` for every 30 minutes by the clock on the wall.

On days when clocks change: `daily` and its like keep to the clock (see `local_time`);
`every` counts real seconds; a beat does so from midnight on. Cron is read as Debian's
is: a fixed time that does not exist comes right after the gap, one that exists twice
comes once; where minutes or hours begin with `*`, and in 6 fields, real time counts.

A month without the day of the beginning has its last day instead.

When something is due, as models write it; pure.

Read are `2026-11-23 09:00`, ISO 8601 with or without a zone, and `in 20 minutes`.
Nothing is guessed: what is written any other way is refused with a reason, which the
model, and whoever asked, can do something about.
"""

from __future__ import annotations

import math
import re
from calendar import monthrange
from datetime import UTC, date, datetime, time, timedelta, tzinfo
from math import floor

import msgspec
from cronsim import CronSim, CronSimError

from actors.rules.text.durations import MOST_AHEAD, at_time, in_words, instant, shown

LONGEST_TIME = 64
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


class UnclearTime(msgspec.Struct, frozen=True):
    """Why a time or a recurrence cannot be understood."""

    why: str
    """The error, for the agent or person that wrote it."""


def parse_moment(
    text: str, now: float, zone: tzinfo, *, may_be_past: bool = False
) -> float | UnclearTime:
    """Read when something is due, as whole Unix seconds.

    Args:
        now: Unix seconds.
        zone: whose clock is meant if the text does not say.
        may_be_past: whether it is where something that repeats begins.
    """
    told = text.strip().strip("\"'`").strip()
    if len(told) > LONGEST_TIME:
        return UnclearTime("the time is too long to be one")
    soon = _in_a_while(told, now)
    at = _on_the_clock(told, zone) if soon is None else soon
    if not isinstance(at, float):
        return at
    if is_past(at, now) and not may_be_past:
        return UnclearTime(f"that is past: it is {in_words(now, zone, '')} now")
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


def _on_the_clock(told: str, zone: tzinfo) -> float | UnclearTime:
    found = _ISO.fullmatch(told)
    if not found:
        return UnclearTime(
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
        return UnclearTime(f"{told!r} is in no calendar")


def _within(at: float, now: float) -> float | UnclearTime:
    if at > now + MOST_AHEAD:
        return UnclearTime("that is more than ten years ahead")
    if at < now - MOST_AHEAD:
        return UnclearTime("that is long past")
    return at


LONGEST = 100
"""Characters of a rule."""

MOST_COUNTED = 1000
"""Times that are counted one by one when they were missed."""

DAY = 86_400
BEAT = "beat "
_MIDNIGHT = time()
_NEVER = frozenset({"", "none", "once", "no", "never"})
_SAME = {
    "hourly": "every 1h",
    "every hour": "every 1h",
    "every day": "daily",
    "every week": "weekly",
    "every month": "monthly",
    "every year": "yearly",
    "annually": "yearly",
    "every weekday": "weekdays",
    "weekday": "weekdays",
}
_STEPS = {"daily": 1, "weekdays": 1, "weekly": 7, "monthly": 0, "yearly": 0}


class RecurrenceRule(msgspec.Struct, frozen=True):
    """A recurrence, its first time, and its time zone."""

    text: str
    """As `parse_repeat` gives it."""

    anchor: float
    """Unix seconds of the first time, or from which `every` counts."""

    zone: tzinfo

    def next_after(self, at: float) -> float | None:
        """Give the first time after `at`, both in Unix seconds; None: there is none.

        Never before the anchor. It does not matter from where one looks: all moments
        between two times have the second for their next.

        Raises:
            ValueError: the text is not as `parse_repeat` gives it.
        """
        if not self.text:
            return self.anchor if at < self.anchor else None
        if self.text.startswith(BEAT):
            return _next_beat(int(self.text[len(BEAT) :]), at, self.zone)
        seconds = seconds_of_every(self.text)
        if seconds:
            count = max(0, floor((at - self.anchor) / seconds) + 1)
            return self.anchor + count * seconds
        if self.text in _STEPS:
            return self._next_day(at)
        return _next_cron(self.text, max(at, self.anchor - 1), self.zone)

    def count(self, first: float, end: float) -> int:
        """Count the times from `first` on that come before `end`.

        Those of `every` by arithmetic; others, which are further apart, one by one, and
        no more than `MOST_COUNTED`.
        """
        count, at = 0, self.next_after(first - 1)
        seconds = seconds_of_every(self.text)
        if seconds and at is not None:
            return max(0, math.ceil((end - at) / seconds))
        while at is not None and at < end and count < MOST_COUNTED:
            count += 1
            at = self.next_after(at)
        return count

    def last_until(self, at: float, after: float) -> float | None:
        """Give the last time from `after` up to `at`; None: there is none.

        By halving, since times are sought in one direction only.
        """
        low, high = after - 1, at
        found = self.next_after(low)
        if found is None or found > at:
            return None
        # Why half a second: all times are whole seconds.
        while high - low > 0.5:
            middle = (low + high) / 2
            later = self.next_after(middle)
            if later is None or later > at:
                high = middle
            else:
                low, found = max(middle, later), later
        return found

    def _next_day(self, at: float) -> float:
        """Count days, months or years from the anchor's, all at its time of day."""
        begin = shown(self.anchor, self.zone)
        clock = begin.time()
        # Why two days back: clocks may change by hours, and a zone by a day.
        around = shown(max(at, self.anchor), self.zone).date() - timedelta(days=2)
        around = max(around, begin.date())
        for day in _Days(self.text, begin.date(), around):
            due = at_time(day, clock, self.zone)
            if due > at and due >= self.anchor:
                return due
        raise AssertionError("unreachable: days do not end")


def parse_repeat(text: str) -> str | UnclearTime:
    """Give a rule as it is kept; empty: once."""
    told = " ".join(text.strip().strip("\"'`").split())
    if len(told) > LONGEST:
        return UnclearTime("the rule is too long to be one")
    small = _SAME.get(told.lower(), told.lower())
    if small in _NEVER:
        return ""
    if small in _STEPS:
        return small
    seconds = seconds_of_every(small)
    if seconds > MOST_AHEAD:
        return UnclearTime("that is more than ten years apart")
    if seconds:
        return _short(seconds)
    return _as_cron(told)


def beat(minutes: int) -> str:
    """Give the rule of a heartbeat: by the clock, `:00` and `:30` for 30 minutes."""
    return f"{BEAT}{minutes}"


def repeat_shown(text: str) -> str:
    """Give a rule as people read it: a heartbeat's as `every 30m`."""
    minutes = text.removeprefix(BEAT)
    is_beat = minutes != text and minutes.isdecimal()
    return _short(60 * int(minutes)) if is_beat else text


def is_every(text: str) -> bool:
    """Whether a rule counts seconds from its anchor."""
    return seconds_of_every(text) > 0


def too_often(rule: RecurrenceRule, now: float, shortest: float) -> bool:
    """Whether any of the next times come closer together than `shortest` seconds."""
    last = rule.next_after(now)
    for _ in range(64):
        following = None if last is None else rule.next_after(last)
        if last is None or following is None:
            return False
        if following - last < shortest:
            return True
        last = following
    return False


def _as_cron(told: str) -> str | UnclearTime:
    fields = told.split()
    if len(fields) not in {5, 6}:
        return UnclearTime(
            f"{told!r} is no rule that I can read; write none, daily, weekdays, weekly,"
            " monthly, yearly, every 2h, or cron such as 0 9 * * 1-5"
        )
    start = datetime(2026, 1, 1, tzinfo=UTC)
    try:
        first = next(CronSim(told, start), None)
    except (CronSimError, ValueError) as error:
        return UnclearTime(f"{told!r} is no cron: {str(error).lower()}")
    return told.upper() if first else UnclearTime(f"{told!r} never comes")


def _short(seconds: int) -> str:
    for unit, length in (("d", DAY), ("h", 3600), ("m", 60)):
        if seconds % length == 0:
            return f"every {seconds // length}{unit}"
    return f"every {seconds}s"


def _next_cron(expression: str, at: float, zone: tzinfo) -> float | None:
    # Why whole seconds: half a microsecond before a slot would be rounded up to it.
    start = datetime.fromtimestamp(floor(at), UTC).astimezone(zone)
    try:
        times = CronSim(expression, start)
    except CronSimError as error:
        raise ValueError(f"{expression!r} is no rule") from error
    for due in times:
        # Why: in an hour that comes twice, its first is given again in the second.
        if (seconds := due.timestamp()) > at:
            return seconds
    return None


def _next_beat(minutes: int, at: float, zone: tzinfo) -> float:
    """Count minutes from midnight on; of more than a day, only whole days."""
    days = max(1, minutes // 1440)
    step = minutes * 60 if minutes < 1440 else days * 2 * DAY
    today = shown(at, zone).date()
    today -= timedelta(days=today.toordinal() % days)
    while True:
        midnight = at_time(today, _MIDNIGHT, zone)
        today += timedelta(days=days)
        if at < midnight:
            return midnight
        due = midnight + floor((at - midnight) / step + 1) * step
        if due < at_time(today, _MIDNIGHT, zone):
            return due


class _Days:
    """The days of a recurrence, from one day on.

    Args:
        unit: `daily` and so on.
        begin: the first of all.
        around: before which none is wanted; not before `begin`.
    """

    def __init__(self, unit: str, begin: date, around: date) -> None:
        self._unit = unit
        self._begin = begin
        step = _STEPS[unit]
        if step:
            self._count = -(-(around - begin).days // step)
        elif unit == "monthly":
            months = (around.year - begin.year) * 12 + around.month - begin.month
            self._count = max(0, months)
        else:
            self._count = max(0, around.year - begin.year)

    def __iter__(self) -> _Days:
        return self

    def __next__(self) -> date:
        while True:
            day = self._day(self._count)
            self._count += 1
            if self._unit != "weekdays" or day.weekday() < 5:
                return day

    def _day(self, count: int) -> date:
        begin, step = self._begin, _STEPS[self._unit]
        if step:
            return begin + timedelta(days=count * step)
        months = begin.month - 1 + (count if self._unit == "monthly" else count * 12)
        year, month = begin.year + months // 12, months % 12 + 1
        return date(year, month, min(begin.day, monthrange(year, month)[1]))
