"""Start: from starting the process until it serves, or has said its version."""

from __future__ import annotations

import subprocess

from benchmarks.figure import Benchmark, Figure, Plan
from benchmarks.machine import ROOT, processor_seconds
from benchmarks.stage.serving import COMMAND, served
from benchmarks.stopwatch import now


def measure(plan: Plan) -> list[Figure]:
    """Start both commands; `size` is always one, for one round is one start."""
    figures: list[Figure] = []
    for _ in range(plan.size):
        begin = now()
        subprocess.run(  # noqa: S603  our own program
            [*COMMAND, "--version"], cwd=ROOT, check=True, stdout=subprocess.DEVNULL
        )
        figures.append(Figure("version", (now() - begin) * 1000, "ms"))
        with served() as server:
            figures.append(Figure("serve is ready", server.seconds * 1000, "ms"))
            used = processor_seconds(server.process) * 1000
            figures.append(Figure("serve, processor time", used, "ms"))
    return figures


BENCHMARK = Benchmark(
    name="start",
    about="process start until ready (`callboard serve`), and `callboard --version`",
    full=Plan(1, 1),
    quick=Plan(1, 1),
    measure=measure,
)
