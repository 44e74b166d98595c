"""Where clocks change in twelve zones, and what may happen while they do."""

from __future__ import annotations

from datetime import UTC, datetime
from zoneinfo import ZoneInfo

from tests.schedule_proofs.bed import Act, Case
from tests.schedule_proofs.times import DAY

EDGES: dict[str, tuple[str, str]] = {
    # Without changes of clocks: the end of a year, and a day that most years lack.
    "UTC": ("2026-12-31T23:59", "2028-02-29T00:00"),
    "Asia/Kathmandu": ("2026-12-31T18:15", "2028-02-28T18:15"),
    "Europe/Berlin": ("2026-03-29T01:00", "2026-10-25T01:00"),
    # In winter it is its summer that is an hour off.
    "Europe/Dublin": ("2026-03-29T01:00", "2026-10-25T01:00"),
    "America/New_York": ("2026-03-08T07:00", "2026-11-01T06:00"),
    "America/St_Johns": ("2026-03-08T05:30", "2026-11-01T04:30"),
    # At midnight.
    "America/Santiago": ("2026-09-06T04:00", "2026-04-05T03:00"),
    "Asia/Beirut": ("2026-03-28T22:00", "2026-10-24T21:00"),
    # By half an hour.
    "Australia/Lord_Howe": ("2026-10-03T15:30", "2026-04-04T15:00"),
    # At a quarter to three.
    "Pacific/Chatham": ("2026-09-26T14:00", "2026-04-04T14:00"),
    # A day is left out; the last change of all.
    "Pacific/Apia": ("2011-12-30T10:00", "2021-04-03T14:00"),
    # For Ramadan.
    "Africa/Casablanca": ("2026-03-22T02:00", "2026-02-15T02:00"),
}
"""In UTC: clocks go forward, clocks go back."""

HOUR = 3600.0

JUMPS: dict[str, tuple[Act, ...]] = {
    "none": (),
    "a second ahead": (Act("jump", 1.0),),
    "a second back": (Act("jump", -1.0),),
    "two minutes ahead, and right again": (
        Act("jump", 120.0),
        Act("pass", 637.0),
        Act("jump", -120.0),
    ),
    "an hour ahead": (Act("jump", HOUR),),
    "an hour back": (Act("jump", -HOUR),),
    "a day ahead, and right again": (
        Act("jump", float(DAY)),
        Act("pass", 1000.0),
        Act("settle"),
        Act("jump", -float(DAY)),
    ),
    "a day back, and right again": (
        Act("jump", -float(DAY)),
        Act("pass", 1000.0),
        Act("settle"),
        Act("jump", float(DAY)),
    ),
    "a month ahead, and right again": (
        Act("jump", 30.0 * DAY),
        Act("pass", 1000.0),
        Act("settle"),
        Act("jump", -30.0 * DAY),
    ),
    "a month back, and right again": (
        Act("jump", -30.0 * DAY),
        Act("pass", 1000.0),
        Act("settle"),
        Act("jump", 30.0 * DAY),
    ),
    "killed at the very second": (Act("pass", 89.75), Act("restart", 0.0)),
    "killed, and up again two hours later": (Act("restart", 2 * HOUR),),
}
"""What happens a minute and a half before the edge."""

BEFORE = 5400.0
"""Seconds before the edge at which each case begins."""

AFTER = (Act("pass", 1800.0), Act("settle")) * 6


def case_of(zone: str, edge: str, jump: str) -> Case:
    """Make the world in which a jump falls on an edge."""
    at = int(datetime.fromisoformat(edge).replace(tzinfo=UTC).timestamp())
    before = int(at - BEFORE)
    here = datetime.fromtimestamp(at - 1800, ZoneInfo(zone))
    # The same time of day, the days before: on the edge's day it may not exist.
    daily = at - 5 * DAY + 1800
    shown = datetime.fromtimestamp(daily, ZoneInfo(zone))
    rules = {
        "once": ("", at),
        "daily": ("daily", daily),
        "twice": ("daily", at - 5 * DAY - 1800),
        "fixed": (f"{shown.minute} {shown.hour} * * *", at - 10 * DAY),
        "early": (f"{here.minute} {here.hour} * * *", at - 10 * DAY),
        "star": ("*/20 * * * *", at - 10 * DAY),
        "every": ("every 45m", at - 7 * DAY),
        "beat": ("beat 30", at - 7 * DAY),
    }
    acts = (
        Act("pass", BEFORE / 2),
        Act("settle"),
        Act("pass", BEFORE / 2 - 90.25 - 4 * 0.001),
        *JUMPS[jump],
        *AFTER,
    )
    return Case(before, zone, rules, acts)
