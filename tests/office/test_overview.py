"""Proves that the overview says what the figures say, and how fast they grow."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from actors.metrics import LineMetrics
from connectors.office.overview import read_waiting, sum_figures
from connectors.office.pace import MOST_SAMPLES, WINDOW, Pace
from runtime.metrics import Metrics
from tests.desk import write_database

if TYPE_CHECKING:
    from pathlib import Path


def test_figures_are_summed_up() -> None:
    metrics = Metrics()
    line = LineMetrics(metrics)
    line.message("cli", "accepted")
    line.message("web", "accepted")
    line.message("web", "duplicate")
    line.turn("anna", "replied")
    line.killed("Session")
    sums = sum_figures(metrics.figures())
    assert sums.messages == {"accepted": 2, "duplicate": 1}
    assert sums.connectors == {"cli": 1, "web": 1}
    assert (sums.turns, sums.killed, sums.cost) == ({"replied": 1}, 1, 0.0)
    assert sums.started_at > 0


def test_what_waits_is_counted(tmp_path: Path) -> None:
    waiting = read_waiting(write_database(tmp_path / "x.db"))
    assert (waiting.open, waiting.dead) == (2, 1)
    assert waiting.unsaid == waiting.outbox["pending"]


def test_a_pace_needs_two_looks() -> None:
    pace = Pace()
    assert pace.look(10, 0.0) is None
    assert pace.look(12, 30.0) == pytest.approx(4.0)


def test_what_begins_anew_is_no_negative_pace() -> None:
    pace = Pace()
    pace.look(10, 0.0)
    assert pace.look(1, 5.0) is None
    assert pace.look(2, 65.0) == pytest.approx(1.0)


@given(st.floats(0.0, 50.0), st.lists(st.floats(0.01, 20.0), min_size=1, max_size=400))
def test_a_steady_pace_is_told_as_it_is(speed: float, gaps: list[float]) -> None:
    pace, now = Pace(), 0.0
    pace.look(0.0, 0.0)
    for gap in gaps:
        now += gap
        told = pace.look(speed * now, now)
        assert told == pytest.approx(60 * speed, abs=1e-3)
    assert WINDOW / MOST_SAMPLES > 0
