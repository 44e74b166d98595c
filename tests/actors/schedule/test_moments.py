"""Proves which ways of writing a time are read, and that no other is guessed at."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given, strategies as st

from actors.schedule.recurrence import UnclearTime, parse_moment

BERLIN = ZoneInfo("Europe/Berlin")
NOON = datetime(2026, 11, 22, 12, tzinfo=BERLIN).timestamp()


def at(*when: int) -> float:
    return datetime(*when, tzinfo=BERLIN).timestamp()  # type: ignore[arg-type,misc]


@pytest.mark.parametrize(
    ("text", "due"),
    [
        ("2026-11-23 09:00", at(2026, 11, 23, 9)),
        ("2026-11-23T09:00", at(2026, 11, 23, 9)),
        ("2026-11-23 9:05", at(2026, 11, 23, 9, 5)),
        (' "2026-11-23 09:00:30" ', at(2026, 11, 23, 9, 0, 30)),
        ("2026-11-23T09:00:00.000Z", at(2026, 11, 23, 10)),
        ("2026-11-23T09:00:00+09:00", at(2026, 11, 23, 1)),
        ("2026-11-23T09:00:00-0500", at(2026, 11, 23, 15)),
        ("in 20 minutes", NOON + 1200),
        ("In 1 hour and 30 min", NOON + 5400),
        ("in 2d", NOON + 2 * 86_400),
        ("in 0 seconds", NOON),
        ("2026-11-22 11:59", NOON - 60),  # a model takes that long to write
        ("2027-03-28 02:30", at(2027, 3, 28, 3, 30)),  # clocks go forward
    ],
)
def test_these_are_read(text: str, due: float) -> None:
    assert parse_moment(text, NOON, BERLIN) == due


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("tomorrow", "no time that I can read"),
        ("2026-11-23", "no time that I can read"),
        ("23.11.2026 09:00", "no time that I can read"),
        ("2026-02-30 09:00", "in no calendar"),
        ("2026-11-23 25:00", "in no calendar"),
        ("2026-11-22 11:00", "past: it is Sun 2026-11-22 12:00 now"),
        ("2099-01-01 09:00", "ten years"),
        ("in 999999999 weeks", "ten years"),
        ("", "no time"),
        ("2" * 100, "too long"),
    ],
)
def test_these_are_refused_with_a_reason(text: str, why: str) -> None:
    told = parse_moment(text, NOON, BERLIN)
    assert isinstance(told, UnclearTime)
    assert why in told.why


def test_where_something_begins_that_repeats_may_be_past() -> None:
    begun = parse_moment("2026-11-01 09:00", NOON, BERLIN, may_be_past=True)
    assert begun == at(2026, 11, 1, 9)
    assert isinstance(
        parse_moment("1066-10-14 09:00", NOON, UTC, may_be_past=True), UnclearTime
    )


@given(st.one_of(st.text(max_size=80), st.from_regex(r"\d{4}-\d\d-\d\d[ T]\d\d:\d\d")))
def test_whatever_is_written_is_a_whole_second_to_come_or_refused(text: str) -> None:
    due = parse_moment(text, NOON, BERLIN)
    if isinstance(due, float):
        assert due == int(due)
        assert due >= NOON - 60


@given(st.datetimes(datetime(2026, 11, 23), datetime(2036, 1, 1)))  # noqa: DTZ001
def test_what_clocks_show_is_read_back(local: datetime) -> None:
    local = local.replace(microsecond=0, second=0)
    due = parse_moment(f"{local:%Y-%m-%d %H:%M}", NOON, BERLIN)
    assert isinstance(due, float)
    shown = datetime.fromtimestamp(due, BERLIN).replace(tzinfo=None)
    assert shown in {local, local + timedelta(hours=1)}  # the hour that is left out
