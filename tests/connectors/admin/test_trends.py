"""Proves what the lines of the last day show, however the counters behave."""

from __future__ import annotations

import math
from itertools import pairwise

import pytest
from hypothesis import given, strategies as st

from connectors.admin.usage import (
    BOUNDS,
    DAY,
    MINUTE,
    Sample,
    Trends,
    chart_lines,
    place_of,
    quantile,
    sample_of,
)
from runtime.telemetry.metrics import Metrics

NOW = 1_000_000_000.0
COUNTS = st.lists(st.integers(0, 50).map(float), max_size=40)


@given(growth=COUNTS)
def test_what_grew_between_samples_is_all_there_once(growth: list[float]) -> None:
    trends, total = Trends(), 0.0
    trends.take(Sample(at=NOW))
    for index, more in enumerate(growth):
        total += more
        trends.take(Sample(at=NOW + 10 * index, messages=total))
    past = trends.series(NOW + 10 * len(growth) + MINUTE, 3_600.0, 60)
    assert sum(each.messages for each in past) == total


def test_a_counter_that_began_anew_counts_from_nothing() -> None:
    trends = Trends()
    for messages in (5.0, 9.0, 2.0):
        trends.take(Sample(at=NOW, messages=messages))
    assert trends.minute(NOW).messages == 4.0 + 2.0


def test_no_more_than_a_day_is_kept() -> None:
    trends = Trends()
    for minute in range(3_000):
        trends.minute(NOW + minute * MINUTE).messages += 1
    assert len(trends._minutes) <= DAY // MINUTE
    assert trends.minute(NOW).messages == 0.0  # too old to be kept
    assert len(trends._minutes) <= DAY // MINUTE


@given(times=st.lists(st.floats(0.001, 1_000), min_size=1, max_size=60))
def test_a_quantile_stands_between_the_bounds_of_its_time(times: list[float]) -> None:
    counts = [0.0] * (len(BOUNDS) + 1)
    for each in times:
        counts[place_of(each)] += 1
    half, most = quantile(counts, 0.5), quantile(counts, 0.95)
    assert half is not None
    assert most is not None
    assert 0 <= half <= most <= BOUNDS[-1]
    middle = sorted(times)[math.ceil(len(times) / 2) - 1]
    low = max((x for x in (0.0, *BOUNDS) if x < middle), default=0.0)
    assert min(low, BOUNDS[-1]) <= half


def test_without_a_turn_there_is_no_quantile() -> None:
    assert quantile([0.0] * (len(BOUNDS) + 1), 0.5) is None


def test_a_sample_counts_what_the_metrics_say() -> None:
    metrics = Metrics()
    messages = metrics.counter("callboard_messages", "…", ("connector", "outcome"))
    turns = metrics.counter("callboard_turns", "…", ("agent", "outcome"))
    stages = metrics.histogram("callboard_stage_seconds", "…", ("stage",), BOUNDS)
    messages.add(3, "cli", "accepted")
    messages.add(2, "cli", "replied")
    turns.add(4, "anna", "ok")
    turns.add(1, "anna", "model")
    tokens = metrics.counter("callboard_model_tokens", "…", ("kind",))
    for kind, many in (("input", 10), ("output", 20)):
        tokens.add(many, kind)
    metrics.counter("callboard_cost_dollars", "…", ("agent",)).add(0.75, "anna")
    metrics.gauge("callboard_loop_lag_seconds", "…").set(0.25)
    for seconds in (0.04, 0.3, 0.3, 1_000.0):
        stages.observe(seconds, "turn")
    stages.observe(0.3, "queue")
    sample = sample_of(metrics.figures(), NOW, 7.0)
    assert (sample.messages, sample.errors, sample.queue_age) == (3.0, 1.0, 7.0)
    assert (sample.tokens, sample.dollars, sample.lag) == (30.0, 0.75, 0.25)
    found = {index: count for index, count in enumerate(sample.times) if count}
    assert found == {0: 1.0, place_of(0.3): 2.0, len(BOUNDS): 1.0}


@given(
    st.lists(st.one_of(st.none(), st.floats(0, 1e9)), min_size=1, max_size=96),
    st.lists(st.one_of(st.none(), st.floats(0, 1e9)), min_size=1, max_size=96),
)
def test_lines_stay_inside_their_chart(
    one: list[float | None], other: list[float | None]
) -> None:
    drawn = chart_lines(one, other)
    assert len(drawn.lines) == 2
    for line, row in zip(drawn.lines, (one, other), strict=True):
        points = [each.split() for each in line.replace("M", "L").split("L")[1:]]
        assert len(points) == sum(value is not None for value in row)
        xs = [float(x) for x, _ in points]
        assert all(a <= b for a, b in pairwise(xs))
        assert all(0 <= x <= 300 for x in xs)
        assert all(0 <= float(y) <= 72 for _, y in points)


@pytest.mark.parametrize("row", [[], [None], [0.0, 0.0]])
def test_nothing_is_drawn_as_nothing(row: list[float | None]) -> None:
    assert chart_lines(row).area == ""
