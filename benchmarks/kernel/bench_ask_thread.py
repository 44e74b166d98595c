"""Ask from a thread: a thread outside of the loop asks, and blocks until answered."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import trio

from benchmarks.figure import Benchmark, Figure, Plan
from benchmarks.kernel.bench_ask import Echo
from benchmarks.stopwatch import now_ns, spans
from runtime.system import open_system

if TYPE_CHECKING:
    from runtime.actor.ref import ActorRef


def measure(plan: Plan) -> list[Figure]:
    """Ask `size` times."""
    return trio.run(ask, plan.size)


async def ask(size: int) -> list[Figure]:
    """Let a thread of trio's do the asking while the loop has nothing else to do."""
    async with open_system() as system:
        ref = system.spawn(Echo())
        return spans(await trio.to_thread.run_sync(partial(times, ref, size)))


def times(ref: ActorRef, size: int) -> list[int]:
    """Take the time of each ask, in nanoseconds."""
    taken: list[int] = []
    for number in range(size):
        begin = now_ns()
        answer = ref.ask(number)
        taken.append(now_ns() - begin)
        assert answer == number
    return taken


BENCHMARK = Benchmark(
    name="ask_thread",
    about="ask and answer from a foreign thread",
    full=Plan(5_000, 1),
    quick=Plan(50, 1),
    measure=measure,
)
