"""Restart: from the message that crashes a supervised actor to its next answer."""

from __future__ import annotations

from typing import Any

import trio

from benchmarks.figure import Benchmark, Figure, Plan
from benchmarks.stopwatch import now_ns, spans
from runtime.actor.actor import Actor
from runtime.supervision.child import ChildSpec
from runtime.supervision.restarts import Backoff
from runtime.supervision.supervisor import Supervisor, SupervisorConfig
from runtime.system import open_system

CRASH = "crash"
FAST = SupervisorConfig(
    intensity=1_000_000, period=1.0, backoff=Backoff(first=0.0, then=0.0)
)
"""Restarts at once and never gives up: what is measured is the way, not the rest."""


class Brittle(Actor):
    """Answers, and fails when told to.

    Takes: `CRASH`; anything else is an ask for itself.
    Sends: nothing.
    Keeps: nothing.
    Fails: on `CRASH`, which is a dead letter at once.
    Ends: with its supervisor.
    """

    poison_after = 1

    def on_receive(self, message: Any) -> Any:  # noqa: ANN401  pykka's seam
        """Give the message back, or fail."""
        if message == CRASH:
            raise ValueError(CRASH)
        return message


def measure(plan: Plan) -> list[Figure]:
    """Crash `size` times."""
    return trio.run(crash, plan.size)


async def crash(size: int) -> list[Figure]:
    """Tell the crash and ask right behind it, through the same ref."""
    taken: list[int] = []
    async with open_system(report=unheard) as system:
        await system.start_root(Supervisor([ChildSpec(name="b", start=Brittle)], FAST))
        ref = system.find("root/b")
        assert ref is not None
        for number in range(size):
            begin = now_ns()
            ref.tell(CRASH)
            answer = await ref.ask(number)
            taken.append(now_ns() - begin)
            assert answer == number
        assert sum(system.statistics().restarts.values()) == size
    return spans(taken)


def unheard(_event: str, _fields: dict[str, Any]) -> None:
    """Take a report and keep quiet: a terminal's speed is not measured here."""


BENCHMARK = Benchmark(
    name="restart",
    about="crash of a supervised actor until it answers again",
    full=Plan(2_000, 1),
    quick=Plan(20, 1),
    measure=measure,
)
