"""Proves when a conversation is over, whatever the hour and the season."""

from __future__ import annotations

from datetime import UTC, datetime
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given, strategies as st

from actors.messages.expiry import Expiry, ExpiryRule, cutoff, expired, last_reset

ZONES = ("UTC", "Europe/Berlin", "America/New_York", "Australia/Lord_Howe")
moments = st.floats(1_000_000_000.0, 2_000_000_000.0)
rules = st.builds(
    ExpiryRule,
    st.sampled_from(("none", "daily", "idle", "both")),
    st.integers(0, 23),
    st.floats(60.0, 1e6),
)


@given(moments, st.integers(0, 23), st.sampled_from(ZONES))
def test_the_last_reset_is_the_hour_and_no_more_than_a_day_ago(
    now: float, hour: int, zone: str
) -> None:
    at = last_reset(now, hour, ZoneInfo(zone))
    assert now - 25.6 * 3_600 < at <= now
    wall = datetime.fromtimestamp(at, ZoneInfo(zone))
    # An hour that the clocks leave out is the one after it.
    assert wall.hour in {hour, (hour + 1) % 24}


@given(moments, moments, rules, st.sampled_from(ZONES))
def test_what_is_over_lies_before_the_cutoff(
    last_at: float, now: float, rule: ExpiryRule, zone: str
) -> None:
    why = expired(last_at, now, rule, ZoneInfo(zone))
    before = cutoff(now, rule, ZoneInfo(zone))
    assert (why is not None) == (before is not None and last_at <= before) or (
        before == last_at
    )
    assert rule.expiry in {why, "both"} if why else True


@pytest.mark.parametrize("expiry", ["none", "daily", "idle", "both"])
def test_without_a_word_nothing_is_over(expiry: Expiry) -> None:
    assert expired(0.0, 2e9, ExpiryRule(expiry), UTC) is None


def test_both_clocks_are_looked_at() -> None:
    rule = ExpiryRule("both", reset_hour=4, idle_after=7_200.0)
    noon = datetime(2026, 3, 29, 12, tzinfo=UTC).timestamp()
    assert expired(noon - 3_600, noon, rule, UTC) is None
    assert expired(noon - 7_200, noon, rule, UTC) == "idle"
    assert expired(noon - 9 * 3_600, noon, rule, UTC) == "daily"
