"""Proves that the overview says what the figures say."""

from __future__ import annotations

from typing import TYPE_CHECKING

from actors.metrics import LineMetrics
from connectors.admin.queue import read_waiting, sum_figures
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
