"""Proves when it is quiet, against looking at each minute's clock."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given, strategies as st

from actors.rules.text.durations import DAYS
from actors.schedule.quiet_hours import QuietPeriod, is_always, parse, quiet_until, read

BERLIN = ZoneInfo("Europe/Berlin")
ZONES = (UTC, BERLIN, ZoneInfo("America/New_York"), ZoneInfo("Asia/Kolkata"))
clocks = st.integers(0, 95).map(lambda quarter: quarter * 15)


def moment(text: str, zone: ZoneInfo = BERLIN) -> float:
    return datetime.fromisoformat(text).replace(tzinfo=zone).timestamp()


def night() -> tuple[QuietPeriod, ...]:
    return read(["22:00-07:00"])


@pytest.mark.parametrize(
    ("at", "until"),
    [
        ("2026-11-23 21:59", ""),
        ("2026-11-23 22:00", "2026-11-24 07:00"),
        ("2026-11-24 06:59", "2026-11-24 07:00"),
        ("2026-11-24 07:00", ""),
        ("2026-03-28 23:00", "2026-03-29 07:00"),  # clocks go forward meanwhile
        ("2026-10-25 02:30", "2026-10-25 07:00"),  # and back
    ],
)
def test_a_night_ends_in_the_morning(at: str, until: str) -> None:
    expected = moment(until) if until else 0.0
    assert quiet_until(night(), moment(at), BERLIN) == expected


def test_days_are_those_on_which_it_begins() -> None:
    friday = read(["fri 22:00-07:00"])
    assert quiet_until(friday, moment("2026-11-21 03:00"), BERLIN)  # a Saturday
    assert not quiet_until(friday, moment("2026-11-21 23:00"), BERLIN)
    weekend = read(["sat-mon 00:00-24:00"])
    assert weekend[0].days == {5, 6, 0}
    tuesday = moment("2026-11-24 00:00")
    assert quiet_until(weekend, moment("2026-11-21 12:00"), BERLIN) == tuesday


def test_stretches_that_meet_are_one() -> None:
    both = read(["22:00-24:00", "00:00-07:00"])
    at, until = moment("2026-11-23 22:30"), moment("2026-11-24 07:00")
    assert quiet_until(both, at, BERLIN) == until


def test_what_makes_no_sense_is_no_stretch() -> None:
    for text in ("25:00-26:00", "22:60-23:00", "08:00-08:00", "xyz 08:00-09:00", ""):
        assert parse(text) is None
    assert read(["08:00-08:00"]) == ()


def test_a_week_without_a_minute_left_is_noticed() -> None:
    assert is_always(read(["00:00-12:00", "12:00-24:00"]))
    assert not is_always(read(["00:00-23:59"]))
    assert not is_always(read(["mon-sat 00:00-24:00"]))


@given(
    day=st.integers(0, 6),
    begins=clocks,
    ends=clocks,
    minutes=st.integers(0, 7 * 1440 - 1),
    zone=st.sampled_from(ZONES),
)
def test_it_is_quiet_exactly_inside_the_hours(
    day: int, begins: int, ends: int, minutes: int, zone: ZoneInfo
) -> None:
    if begins == ends:
        return
    text = (
        f"{DAYS[day].lower()} {begins // 60:02}:{begins % 60:02}"
        f"-{ends // 60:02}:{ends % 60:02}"
    )
    local = datetime(2026, 11, 16, tzinfo=zone) + timedelta(minutes=minutes)
    length = (ends - begins) % 1440
    since = (local.weekday() - day) % 7 * 1440 + local.hour * 60 + local.minute
    inside = (since - begins) % (7 * 1440) < length
    until = quiet_until(read([text]), local.timestamp(), zone)
    assert bool(until) == inside
    if inside:
        left = length - (since - begins) % (7 * 1440)
        assert until == local.timestamp() + left * 60
