"""Proves that the overview says what the figures say, and how fast they grow."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from actors.metrics import LineMetrics
from connectors.admin.overview import (
    MOST_SAMPLES,
    WINDOW,
    GrowthRate,
    read_waiting,
    sum_figures,
)
from runtime.sqlite.database import SqliteDatabase
from runtime.telemetry.metrics import Metrics
from tests.support.desk import write_database

if TYPE_CHECKING:
    from pathlib import Path


def test_figures_are_summed_up() -> None:
    metrics = Metrics()
    line = LineMetrics(metrics)
    line.messages.add(1, "cli", "accepted")
    line.messages.add(1, "web", "accepted")
    line.messages.add(1, "web", "duplicate")
    line.turns.add(1, "anna", "replied")
    line.killed.add(1, "Session")
    sums = sum_figures(metrics.figures())
    assert sums.messages == {"accepted": 2, "duplicate": 1}
    assert sums.connectors == {"cli": 1, "web": 1}
    assert (sums.turns, sums.killed, sums.cost) == ({"replied": 1}, 1, 0.0)
    assert sums.started_at > 0


def test_what_waits_is_counted(tmp_path: Path) -> None:
    with SqliteDatabase(write_database(tmp_path / "x.db")).inspect() as rows:
        waiting = read_waiting(rows)
    assert (waiting.open, waiting.dead) == (2, 1)
    assert waiting.unsaid == waiting.outbox["pending"]


def test_a_pace_needs_two_looks() -> None:
    pace = GrowthRate()
    assert pace.look(10, 0.0) is None
    assert pace.look(12, 30.0) == pytest.approx(4.0)


def test_what_begins_anew_is_no_negative_pace() -> None:
    pace = GrowthRate()
    pace.look(10, 0.0)
    assert pace.look(1, 5.0) is None
    assert pace.look(2, 65.0) == pytest.approx(1.0)


@given(st.floats(0.0, 50.0), st.lists(st.floats(0.01, 20.0), min_size=1, max_size=400))
def test_a_steady_pace_is_told_as_it_is(speed: float, gaps: list[float]) -> None:
    pace, now = GrowthRate(), 0.0
    pace.look(0.0, 0.0)
    for gap in gaps:
        now += gap
        told = pace.look(speed * now, now)
        assert told == pytest.approx(60 * speed, abs=1e-3)
    assert WINDOW / MOST_SAMPLES > 0
