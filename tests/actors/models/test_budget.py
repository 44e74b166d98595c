"""Proves that a budget is overshot by what is under way at most, in any order."""

from __future__ import annotations

import zoneinfo
from datetime import UTC, datetime

import pytest
from hypothesis import given, strategies as st

from actors.models.budget import (
    Amount,
    Budget,
    Budgets,
    Limit,
    Period,
    Scope,
    Spender,
    refusal,
)

ANNA = Spender("anna", "http/sam")
BEN = Spender("ben", "http/mia")
NOON = datetime(2026, 3, 10, 12, tzinfo=UTC).timestamp()
DAY = 86_400.0
HARD = Budget(scope="all", period="day", hard=Limit(usd=10.0))


def make(*budgets: Budget) -> Budgets:
    return Budgets(budgets, UTC)


COSTS = st.floats(0.0, 5.0)
CALLS = st.lists(
    st.tuples(st.sampled_from(["begin", "end"]), COSTS, COSTS), max_size=60
)


@given(CALLS)
def test_together_they_overshoot_by_no_more_than_what_is_under_way(
    steps: list[tuple[str, float, float]],
) -> None:
    budgets = make(HARD)
    open_calls: dict[int, float] = {}
    spent, worst = 0.0, 0.0
    for number, (what, estimate, cost) in enumerate(steps):
        if what == "begin":
            verdict = budgets.verdict(ANNA, NOON)
            if verdict.stop is None and not verdict.is_held:
                assert spent < 10.0
                budgets.hold(f"{number}", ANNA, Amount(estimate))
                open_calls[number] = cost
                worst = max(worst, sum(open_calls.values()))
        elif open_calls:
            oldest = min(open_calls)
            budgets.free(f"{oldest}")
            spent += open_calls[oldest]
            budgets.enter(ANNA, Amount(open_calls.pop(oldest)), NOON)
    assert spent + sum(open_calls.values()) <= 10.0 + worst


@given(st.lists(st.floats(0.01, 3.0), min_size=1, max_size=30), st.integers(0, 9))
def test_what_was_held_back_is_free_again_however_often_it_is_said(
    amounts: list[float], again: int
) -> None:
    budgets = make(HARD)
    for number, amount in enumerate(amounts):
        budgets.hold(f"{number}", ANNA, Amount(amount))
    for number in [*range(len(amounts)), *[again] * 3]:
        budgets.free(f"{number}")
    assert not budgets.verdict(ANNA, NOON).is_held
    budgets.hold("99", ANNA, Amount(9.99))
    assert not budgets.verdict(ANNA, NOON).is_held


def test_what_is_only_held_back_makes_others_wait_and_stops_nobody() -> None:
    budgets = make(HARD)
    budgets.hold("1", ANNA, Amount(10.0))
    verdict = budgets.verdict(BEN, NOON)
    assert (verdict.stop, verdict.is_held) == (None, True)
    budgets.free("1")
    budgets.enter(ANNA, Amount(0.5), NOON)
    assert not budgets.verdict(BEN, NOON).is_held


def test_the_first_call_may_always_be_made_however_large() -> None:
    tiny = Budget(scope="all", period="day", hard=Limit(tokens=1))
    verdict = make(tiny).verdict(ANNA, NOON)
    assert (verdict.stop, verdict.is_held) == (None, False)


@pytest.mark.parametrize(
    ("scope", "who", "ben_is_stopped"),
    [("all", "*", True), ("agent", "*", False), ("user", "*", False)],
)
def test_each_agent_and_each_person_has_a_sum_of_its_own(
    scope: Scope, who: str, *, ben_is_stopped: bool
) -> None:
    budgets = make(Budget(scope=scope, period="day", who=who, hard=Limit(tokens=5)))
    budgets.enter(ANNA, Amount(tokens=5), NOON)
    assert budgets.verdict(ANNA, NOON).stop is not None
    assert (budgets.verdict(BEN, NOON).stop is not None) == ben_is_stopped


def test_of_a_budget_is_left_what_whoever_spent_most_has_left() -> None:
    each = Budget(scope="user", period="day", hard=Limit(usd=10.0, tokens=100))
    soft = Budget(scope="all", period="day", soft=Limit(usd=1.0))
    budgets = make(each, HARD, soft)
    assert list(budgets.left(NOON)) == [(each, 1.0), (HARD, 1.0)]
    budgets.enter(ANNA, Amount(2.5), NOON)
    budgets.enter(BEN, Amount(1.0, 40), NOON)
    assert list(budgets.left(NOON)) == [(each, 0.6), (HARD, 0.65)]
    budgets.enter(BEN, Amount(20.0), NOON)
    assert list(budgets.left(NOON)) == [(each, 0.0), (HARD, 0.0)]
    assert list(budgets.left(NOON + DAY)) == [(each, 1.0), (HARD, 1.0)]


def test_whoever_has_a_connectors_key_gains_nothing_by_another_name() -> None:
    budgets = make(Budget(scope="connector", period="day", hard=Limit(tokens=5)))
    for number in range(5):
        caller = Spender("anna", f"http/user-{number}")
        assert budgets.verdict(caller, NOON).stop is None
        budgets.enter(caller, Amount(tokens=1), NOON)
    assert budgets.verdict(Spender("ben", "http/user-9"), NOON).stop is not None
    assert budgets.verdict(Spender("ben", "telegram/9"), NOON).stop is None
    assert [key for _, key, _ in budgets.spent(NOON)] == ["http"]


def test_a_budget_concerns_only_whom_it_names() -> None:
    mine = Budget(scope="user", period="day", who="http/*", hard=Limit(tokens=0))
    assert make(mine).verdict(ANNA, NOON).stop == mine
    assert make(mine).verdict(Spender("anna", "discord/sam"), NOON).stop is None


def test_what_is_spent_for_nobody_counts_in_no_person_s_budget() -> None:
    mine = Budget(scope="user", period="day", hard=Limit(tokens=0))
    nobody = Spender("anna", "")
    assert make(mine).verdict(nobody, NOON).stop is None
    assert make(HARD, mine).verdict(ANNA, NOON).stop == mine


@pytest.mark.parametrize(("period", "days"), [("day", 1), ("month", 22)])
def test_a_new_period_begins_with_nothing_spent(period: Period, days: int) -> None:
    budgets = make(Budget(scope="all", period=period, hard=Limit(usd=1.0)))
    budgets.enter(ANNA, Amount(2.0), NOON)
    verdict = budgets.verdict(ANNA, NOON)
    assert verdict.until == NOON - DAY / 2 + days * DAY
    assert budgets.verdict(ANNA, verdict.until - 1).stop is not None
    assert budgets.verdict(ANNA, verdict.until).stop is None


def test_a_clock_that_was_set_back_gives_nothing_back() -> None:
    budgets = make(HARD)
    budgets.enter(ANNA, Amount(20.0), NOON)
    budgets.enter(ANNA, Amount(20.0), NOON - DAY)  # of yesterday: left out
    assert budgets.verdict(ANNA, NOON - DAY).stop is not None
    assert [each[2] for each in budgets.spent(NOON)] == [Amount(20.0)]


def test_a_day_begins_where_the_settings_say() -> None:
    budgets = Budgets((HARD,), zoneinfo.ZoneInfo("America/New_York"))
    budgets.enter(ANNA, Amount(20.0), NOON)
    verdict = budgets.verdict(ANNA, NOON)
    assert verdict.until == datetime(2026, 3, 11, 4, tzinfo=UTC).timestamp()
    assert budgets.since(NOON) == datetime(2026, 3, 10, 4, tzinfo=UTC).timestamp()


def test_a_soft_limit_names_the_model_to_ask_instead() -> None:
    soft = Budget(
        scope="agent", period="month", soft=Limit(usd=1.0), downgrade_to="cheap"
    )
    budgets = make(soft)
    assert budgets.verdict(ANNA, NOON).downgrade_to == ""
    budgets.enter(ANNA, Amount(1.0), NOON)
    verdict = budgets.verdict(ANNA, NOON)
    assert verdict.downgrade_to == "cheap"
    assert [(each.budget, each.key) for each in verdict.softened] == [(soft, "anna")]
    assert budgets.verdict(BEN, NOON).softened == ()


@pytest.mark.parametrize(
    ("scope", "period", "words"),
    [
        ("user", "day", "Your budget for today"),
        ("agent", "month", "My budget for this month"),
        ("all", "day", "The budget for today"),
        ("connector", "day", "The budget for today"),
    ],
)
def test_people_are_told_whose_budget_and_until_when(
    scope: Scope, period: Period, words: str
) -> None:
    text = refusal(Budget(scope=scope, period=period), NOON, UTC)
    assert words in text
    assert "2026-03-10 12:00 UTC" in text
