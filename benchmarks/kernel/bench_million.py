"""Million: a million idle actors started, each told once, ended with their system.

In one process of its own, with Python's collector as it comes.
"""

from __future__ import annotations

from typing import Any

import trio

from benchmarks.figure import Benchmark, Figure, Plan
from benchmarks.fresh import in_fresh_process
from benchmarks.machine import peak_resident
from benchmarks.stopwatch import now
from runtime.actor.actor import Actor
from runtime.system import open_system


class Tally:
    """How many of the actors have been told.

    Args:
        expected: after how many `done` is set.
    """

    def __init__(self, expected: int) -> None:
        self.missing = expected
        self.done = trio.Event()

    def add(self) -> None:
        """Count one."""
        self.missing -= 1
        if self.missing == 0:
            self.done.set()


class Idler(Actor):
    """One of many that wait for a word.

    Takes: anything.
    Sends: nothing.
    Keeps: the tally that all share.
    Fails: never.
    Ends: with its system.
    """

    def __init__(self, tally: Tally) -> None:
        super().__init__()
        self._tally = tally

    def on_receive(self, message: Any) -> None:  # noqa: ANN401, ARG002  pykka's seam
        """Be counted."""
        self._tally.add()


def measure(plan: Plan) -> list[Figure]:
    """Start `size` actors, tell each once, and end their system."""
    return in_fresh_process(live, plan)


def live(plan: Plan) -> list[Figure]:
    """Do it in this process, whose peak of memory is a figure too."""
    figures = trio.run(lived, plan)
    total = sum(figure.value for figure in figures)
    figures.append(Figure("all", total, "s"))
    figures.append(Figure("peak memory", peak_resident() / 1e6, "MB"))
    return figures


async def lived(plan: Plan) -> list[Figure]:
    """Take the time of each part."""
    tally = Tally(plan.size)
    async with open_system() as system:
        begin = now()
        refs = [system.spawn(Idler(tally)) for _ in range(plan.size)]
        started = now()
        plan.dice().shuffle(refs)
        shuffled = now()
        for ref in refs:
            ref.tell("good morning")
        await tally.done.wait()
        refs.clear()
        told = now()
    ended = now()
    return [
        Figure("start", started - begin, "s"),
        Figure("tell each once", told - shuffled, "s"),
        Figure("end with the system", ended - told, "s"),
    ]


BENCHMARK = Benchmark(
    name="million",
    about="a million actors started, told once, ended with their system",
    full=Plan(1_000_000, 1),
    quick=Plan(1_000, 1),
    measure=measure,
    warms_up=False,
)
