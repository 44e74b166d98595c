"""Idle: the memory of `callboard serve` with three agents, ready and doing nothing."""

from __future__ import annotations

from benchmarks.figure import Benchmark, Figure, Plan
from benchmarks.machine import resident
from benchmarks.stage.serving import served


def measure(plan: Plan) -> list[Figure]:
    """Weigh a server; `size` is always one, for one round is one server."""
    figures: list[Figure] = []
    for _ in range(plan.size):
        with served() as server:
            held = resident(server.process) / 1e6
            figures.append(Figure("memory", held, "MB"))
    return figures


BENCHMARK = Benchmark(
    name="idle",
    about="memory of `callboard serve`, three agents and HTTP, at rest",
    full=Plan(1, 1),
    quick=Plan(1, 1),
    measure=measure,
    warms_up=False,
)
