"""Proves when things that repeat are due, also on the days when clocks change."""

from __future__ import annotations

from datetime import UTC, datetime
from itertools import pairwise
from zoneinfo import ZoneInfo

import pytest
from hypothesis import example, given, strategies as st

from actors.rules.text.durations import in_words, instant, shown
from actors.schedule.recurrence import (
    RecurrenceRule,
    UnclearTime,
    beat,
    parse_repeat,
    repeat_shown,
    too_often,
)

# Twelve, with every trait there is: both halves of the world, changes at midnight
# (Beirut, Santiago), by half an hour (Lord Howe), far from any hour (Chatham,
# Kathmandu), a day left out (Apia, 2011), a winter that is summer time (Dublin).
ZONES = (
    "UTC",
    "Europe/Berlin",
    "Europe/Dublin",
    "America/New_York",
    "America/St_Johns",
    "America/Santiago",
    "Asia/Beirut",
    "Asia/Kathmandu",
    "Australia/Lord_Howe",
    "Pacific/Chatham",
    "Pacific/Apia",
    "Africa/Casablanca",
)
RULES = (
    "daily",
    "weekdays",
    "weekly",
    "monthly",
    "yearly",
    "every 7m",
    "every 2h",
    "every 1d",
    "0 9 * * 1-5",
    "30 2 * * *",
    "*/20 * * * *",
    "15 */2 * * *",
    "30 15 4 * * *",
    "0 0 L * *",
    beat(30),
    beat(45),
    beat(4320),
)
FROM, TO = 1_300_000_000, 1_900_000_000  # 2011 to 2030

zones = st.sampled_from(ZONES)
rules = st.sampled_from(RULES)
moments = st.floats(FROM, TO)
# Where clocks change is where mistakes are: a quarter of all examples lie near it.
edges = st.sampled_from(
    [
        datetime(2011, 12, 30, 10, tzinfo=UTC).timestamp(),  # Apia leaves out a day
        datetime(2026, 3, 29, 1, tzinfo=UTC).timestamp(),
        datetime(2026, 10, 25, 1, tzinfo=UTC).timestamp(),
        datetime(2026, 3, 8, 7, tzinfo=UTC).timestamp(),
        datetime(2026, 11, 1, 6, tzinfo=UTC).timestamp(),
        datetime(2026, 4, 4, 15, tzinfo=UTC).timestamp(),
        datetime(2026, 10, 3, 15, 30, tzinfo=UTC).timestamp(),
        datetime(2026, 9, 6, 4, tzinfo=UTC).timestamp(),
        datetime(2026, 3, 28, 22, tzinfo=UTC).timestamp(),
    ]
)
near = st.one_of(
    moments, st.tuples(edges, st.floats(-100_000, 100_000)).map(sum).map(float)
)


def rule_of(text: str, anchor: float, zone: str) -> RecurrenceRule:
    return RecurrenceRule(text, float(int(anchor)), ZoneInfo(zone))


@given(text=rules, zone=zones, anchor=moments, at=near)
@example(text="*/20 * * * *", zone="UTC", anchor=1.3e9, at=1325239199.999999)
def test_a_next_time_is_later_and_the_same_from_wherever_one_looks(
    text: str, zone: str, anchor: float, at: float
) -> None:
    rule = rule_of(text, anchor, zone)
    first = rule.next_after(at)
    assert first is not None
    assert first > at
    assert first == int(first)
    for part in (0.01, 0.5, 0.99):
        between = at + (first - at) * part
        if at <= between < first:
            assert rule.next_after(between) == first


@given(text=rules, zone=zones, anchor=moments, at=near, spread=st.floats(1, 400_000))
def test_the_last_time_is_the_one_that_counting_on_finds(
    text: str, zone: str, anchor: float, at: float, spread: float
) -> None:
    rule = rule_of(text, anchor, zone)
    begin = rule.next_after(at)
    assert begin is not None
    until = begin + spread
    found, last = begin, begin
    for _ in range(300):
        following = rule.next_after(found)
        assert following is not None
        if following > until:
            assert rule.last_until(until, begin) == last
            return
        found = last = following


@given(zone=zones, anchor=moments, at=near)
def test_daily_keeps_to_the_clock_wherever_that_time_exists(
    zone: str, anchor: float, at: float
) -> None:
    rule = rule_of("daily", anchor, zone)
    due = rule.next_after(at)
    assert due is not None
    clock = shown(rule.anchor, rule.zone).time()
    local = shown(due, rule.zone)
    if local.time() != clock:
        wanted = datetime.combine(local.date(), clock)
        # That time does not exist on this day, or the day itself does not.
        assert shown(instant(wanted, rule.zone), rule.zone) != wanted


@given(zone=zones, anchor=moments, at=near)
def test_every_counts_seconds_and_knows_of_no_clock(
    zone: str, anchor: float, at: float
) -> None:
    rule = rule_of("every 1d", anchor, zone)
    due = rule.next_after(at)
    assert due is not None
    assert (due - rule.anchor) % 86_400 == 0


def listed(rule: str, start: str, zone: str, count: int = 3) -> list[str]:
    local = ZoneInfo(zone)
    at: float | None = instant(datetime.fromisoformat(start), local)
    anchored = RecurrenceRule(rule, at or 0.0, local)
    found: list[str] = []
    for _ in range(count):
        assert at is not None
        at = anchored.next_after(at)
        assert at is not None
        shift = datetime.fromtimestamp(at, local).strftime("%z")
        found.append(f"{shown(at, local):%m-%d %H:%M}{shift[:3]}")
    return found


def test_a_time_that_does_not_exist_is_moved_on() -> None:
    found = listed("daily", "2026-03-27 02:30", "Europe/Berlin")
    assert found == ["03-28 02:30+01", "03-29 03:30+02", "03-30 02:30+02"]
    found = listed("30 2 * * *", "2026-03-27 12:00", "Europe/Berlin")
    assert found == ["03-28 02:30+01", "03-29 03:00+02", "03-30 02:30+02"]


def test_a_time_that_exists_twice_comes_once() -> None:
    for rule in ("daily", "30 2 * * *"):
        found = listed(rule, "2026-10-24 02:30", "Europe/Berlin")
        assert found == ["10-25 02:30+02", "10-26 02:30+01", "10-27 02:30+01"]


def test_minutes_go_on_while_clocks_change() -> None:
    found = listed("*/30 * * * *", "2026-10-25 02:20", "Europe/Berlin", 4)
    assert found == [
        "10-25 02:30+02",
        "10-25 02:00+01",
        "10-25 02:30+01",
        "10-25 03:00+01",
    ]


def test_a_month_without_that_day_has_its_last() -> None:
    found = listed("monthly", "2026-01-31 09:00", "Asia/Kathmandu", 4)
    assert [each[:5] for each in found] == ["02-28", "03-31", "04-30", "05-31"]
    found = listed("yearly", "2024-02-29 09:00", "UTC", 4)
    assert [each[:5] for each in found] == ["02-28", "02-28", "02-28", "02-29"]


def test_a_beat_goes_by_the_clock_on_the_wall() -> None:
    found = listed(beat(30), "2026-05-01 09:10", "Asia/Kathmandu")
    assert [each[6:11] for each in found] == ["09:30", "10:00", "10:30"]
    found = listed(beat(50), "2026-05-01 23:00", "UTC")
    assert [each[6:11] for each in found] == ["23:20", "00:00", "00:50"]
    found = listed(beat(2880), "2026-05-01 23:00", "UTC")
    assert [int(b[3:5]) - int(a[3:5]) for a, b in pairwise(found)] == [2, 2]


@pytest.mark.parametrize(
    ("written", "kept"),
    [
        ("", ""),
        ("Once", ""),
        ("none", ""),
        ("Daily", "daily"),
        ("every day", "daily"),
        ("every 30s", "every 30s"),
        ("every 5 minutes", "every 5m"),
        ("every 120m", "every 2h"),
        ("every 1d", "every 1d"),
        ("hourly", "every 1h"),
        ("0 9 * * mon-fri", "0 9 * * MON-FRI"),
        ("*/10 * * * * *", "*/10 * * * * *"),
    ],
)
def test_rules_are_kept_in_one_way_of_writing(written: str, kept: str) -> None:
    assert parse_repeat(written) == kept


@pytest.mark.parametrize(
    "written",
    [
        "sometimes",
        "every blue moon",
        "every 0s",
        "every 99999999d",
        "61 * * * *",
        "0 0 30 2 *",
        "* * * *",
        "0 " * 80,
        "9" * 90 + " * * * *",
    ],
)
def test_what_is_no_rule_is_refused_with_a_reason(written: str) -> None:
    told = parse_repeat(written)
    assert isinstance(told, UnclearTime)
    assert told.why


@given(
    st.one_of(
        st.text(max_size=120), st.text("0123456789*/-,#LW MONsdevry ", max_size=60)
    )
)
def test_whatever_is_written_is_a_rule_or_refused(text: str) -> None:
    kept = parse_repeat(text)
    if isinstance(kept, str) and kept:
        assert parse_repeat(kept) == kept
        due = RecurrenceRule(kept, float(FROM), ZoneInfo("Europe/Berlin")).next_after(
            FROM
        )
        assert due is None or due > FROM


def test_what_comes_too_often_is_found() -> None:
    assert too_often(RecurrenceRule("*/10 * * * * *", 0.0, UTC), FROM, 30)
    assert too_often(RecurrenceRule("0,1 9 * * *", 0.0, UTC), FROM, 90)
    assert not too_often(RecurrenceRule("every 1m", 0.0, UTC), FROM, 60)
    assert not too_often(RecurrenceRule("", FROM + 5.0, UTC), FROM, 60)


def test_once_comes_once() -> None:
    rule = RecurrenceRule("", 100.0, UTC)
    assert rule.next_after(99.9) == 100.0
    assert rule.next_after(100.0) is None
    assert rule.last_until(99.0, 0.0) is None
    assert rule.last_until(200.0, 0.0) == 100.0


def test_times_are_told_with_day_and_zone() -> None:
    at = datetime(2026, 11, 23, 8, 0, 5, tzinfo=UTC).timestamp()
    told = in_words(at, ZoneInfo("Europe/Berlin"), "Europe/Berlin")
    assert told == "Mon 2026-11-23 09:00:05 Europe/Berlin"


@pytest.mark.parametrize(
    ("rule", "shown"),
    [
        (beat(30), "every 30m"),
        (beat(90), "every 90m"),
        (beat(120), "every 2h"),
        ("every 2h", "every 2h"),
        ("0 9 * * *", "0 9 * * *"),
        ("beat x", "beat x"),
        ("", ""),
    ],
)
def test_people_read_how_often_a_heartbeat_comes(rule: str, shown: str) -> None:
    assert repeat_shown(rule) == shown
