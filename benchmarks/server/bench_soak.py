"""Soak: the memory of `callboard serve` while conversations come and go.

Messages come over HTTP from sixty-four people at once, the model is the scripted
one, and every conversation leaves memory soon after its last message. After the
first fifth the server has grown to its size; from there on it should stay there.
A million messages: `python -m benchmarks soak --size 1000000`.
"""

from __future__ import annotations

from benchmarks.figure import Benchmark, Figure, Plan
from benchmarks.machine import resident
from benchmarks.stage.serving import AGENT, SETTINGS, served
from benchmarks.stage.visitors import Visit, visit

CHATS = 64
VISITS = 10
WARM_UP = VISITS // 5
BRIEF = """
[sessions]
idle_after = 1.0
"""


def measure(plan: Plan) -> list[Figure]:
    """Send `size` messages in ten visits, each with conversations of its own."""
    share = max(1, plan.size // VISITS // CHATS)
    held: list[float] = []
    with served(SETTINGS + BRIEF) as server:
        for number in range(VISITS):
            name = f"visit-{number}"
            visit(Visit(server.address, AGENT, CHATS, share, name, "You said"))
            held.append(resident(server.process) / 1e6)
    between = CHATS * share * (VISITS - WARM_UP)
    growth = (held[-1] - held[WARM_UP - 1]) / between
    return [
        Figure("warm", held[WARM_UP - 1], "MB"),
        Figure("at the end", held[-1], "MB"),
        Figure("at most", max(held), "MB"),
        # Not below a kilobyte: memory may shrink, and that is no figure to compare.
        Figure("growth", max(growth * 100_000, 0.001), "MB/100,000 messages"),
    ]


BENCHMARK = Benchmark(
    name="soak",
    about="memory of `callboard serve` after many messages in many conversations",
    full=Plan(20_480, 1),
    quick=Plan(64, 1),
    measure=measure,
    warms_up=False,
)
