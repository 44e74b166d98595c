"""Spawn: how fast actors start, and what an idle one weighs.

Each population lives in a process of its own, so that memory is counted from
nothing. Python's collector looks at every object of a population again and again
while it grows: that is measured as it is (`started`), without the collector, and
as what one full collection stops the loop for, before and after `gc.freeze()`.
"""

from __future__ import annotations

import gc
from typing import TYPE_CHECKING

import trio

from benchmarks.figure import Benchmark, Figure, Plan
from benchmarks.fresh import in_fresh_process
from benchmarks.kernel.bench_ask import Echo
from benchmarks.machine import resident
from benchmarks.stopwatch import now, rate
from runtime.system import open_system

if TYPE_CHECKING:
    from runtime.actor.ref import ActorRef
    from runtime.system import ActorSystem

WARM = 1000


def measure(plan: Plan) -> list[Figure]:
    """Start populations of a hundredth, a tenth, and all of `size` actors."""
    figures: list[Figure] = []
    for part in (100, 10, 1):
        population = Plan(plan.size // part, plan.seed)
        figures += in_fresh_process(populate, population)
        figures += in_fresh_process(populate_uncollected, population)
    return figures


def populate(plan: Plan) -> list[Figure]:
    """Start `size` actors with Python's collector as it comes."""
    return trio.run(populated, plan.size)


async def populated(size: int) -> list[Figure]:
    """Start the actors, weigh them, and see what a full collection takes."""
    async with open_system() as system:
        refs = start(system, WARM)
        gc.collect()
        before = resident()
        begin = now()
        refs += start(system, size)
        started = rate(size, begin, "actors", f"started, {size}")
        pause = collection()
        weight = (resident() - before) / size
        gc.freeze()
        frozen = collection()
        gc.disable()  # `million` times the end
    return [
        started,
        Figure(f"idle actor, {size}", weight, "B"),
        Figure(f"full collection, {size}", pause * 1000, "ms"),
        Figure(f"full collection after gc.freeze, {size}", frozen * 1000, "ms"),
    ]


def populate_uncollected(plan: Plan) -> list[Figure]:
    """Start `size` actors with Python's collector switched off."""
    return trio.run(populated_uncollected, plan.size)


async def populated_uncollected(size: int) -> list[Figure]:
    """Start the actors."""
    async with open_system() as system:
        refs = start(system, WARM)
        gc.collect()
        gc.disable()
        begin = now()
        refs += start(system, size)
        started = rate(size, begin, "actors", f"started, gc off, {size}")
    return [started]


def start(system: ActorSystem, size: int) -> list[ActorRef]:
    """Start idle actors; their refs are part of what they weigh."""
    return [system.spawn(Echo()) for _ in range(size)]


def collection() -> float:
    """Give the seconds of one full collection."""
    begin = now()
    gc.collect()
    return now() - begin


BENCHMARK = Benchmark(
    name="spawn",
    about="start idle actors, and weigh them",
    full=Plan(1_000_000, 1),
    quick=Plan(10_000, 1),
    measure=measure,
    warms_up=False,
)
