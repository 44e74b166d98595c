"""Ask in the loop: one trio task asks one actor, again and again."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import trio

from benchmarks.figure import Benchmark, Figure, Plan
from benchmarks.stopwatch import now_ns, spans
from runtime.actor.actor import Actor
from runtime.system import open_system

if TYPE_CHECKING:
    from runtime.actor.ref import ActorRef


class Echo(Actor):
    """Answers with what it was asked.

    Takes: anything.
    Sends: nothing.
    Keeps: nothing.
    Fails: never.
    Ends: with its system.
    """

    def on_receive(self, message: Any) -> Any:  # noqa: ANN401  pykka's seam
        """Give the message back."""
        return message


class SlowEcho(Echo):
    """The same from an `async` handler that really waits, and so needs a task.

    Takes: anything.
    Sends: nothing.
    Keeps: nothing.
    Fails: never.
    Ends: with its system.
    """

    async def on_receive(self, message: Any) -> Any:  # noqa: ANN401  pykka's seam
        """Give the message back after one turn of the loop."""
        await trio.lowlevel.checkpoint()
        return message


def measure(plan: Plan) -> list[Figure]:
    """Ask `size` times, of a plain and of an `async` handler."""
    return trio.run(both, plan.size)


async def both(size: int) -> list[Figure]:
    """Ask both kinds, one after the other."""
    async with open_system() as system:
        plain = await times(system.spawn(Echo()), size)
        waiting = await times(system.spawn(SlowEcho()), size)
    return spans(plain) + spans(waiting, ", async handler")


async def times(ref: ActorRef, size: int) -> list[int]:
    """Take the time of each ask, in nanoseconds."""
    taken: list[int] = []
    for number in range(size):
        begin = now_ns()
        answer = await ref.ask(number)
        taken.append(now_ns() - begin)
        assert answer == number
    return taken


BENCHMARK = Benchmark(
    name="ask",
    about="ask and answer inside the loop",
    full=Plan(20_000, 1),
    quick=Plan(50, 1),
    measure=measure,
)
