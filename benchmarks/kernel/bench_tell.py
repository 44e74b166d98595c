"""Tell: one sender, one actor, as fast as it takes them."""

from __future__ import annotations

from typing import Any

import trio

from benchmarks.figure import Benchmark, Figure, Plan
from benchmarks.stopwatch import now, rate
from runtime.actor.actor import Actor
from runtime.actor.mailbox import MailboxConfig
from runtime.system import open_system


class Counter(Actor):
    """Counts messages and says when it has seen enough of them.

    Takes: anything.
    Sends: nothing.
    Keeps: how many are still to come.
    Fails: never.
    Ends: with its system.
    """

    def __init__(self, expected: int) -> None:
        super().__init__()
        self._missing = expected
        self.done = trio.Event()

    def on_receive(self, message: Any) -> None:  # noqa: ANN401, ARG002  pykka's seam
        """Count one message."""
        self._missing -= 1
        if self._missing == 0:
            self.done.set()


def measure(plan: Plan) -> list[Figure]:
    """Tell `size` messages, once without waiting and once with back-pressure."""
    return trio.run(tell, plan.size) + trio.run(send, plan.size)


async def tell(size: int) -> list[Figure]:
    """Tell without waiting, to a mailbox with room for all."""
    async with open_system() as system:
        counter = Counter(size)
        ref = system.spawn(counter, mailbox=MailboxConfig(capacity=size))
        begin = now()
        for number in range(size):
            ref.tell(number)
        await counter.done.wait()
        return [rate(size, begin, "messages")]


async def send(size: int) -> list[Figure]:
    """Send to a mailbox of 256, waiting for room; each send gives trio a turn."""
    async with open_system() as system:
        counter = Counter(size)
        ref = system.spawn(counter, mailbox=MailboxConfig(overflow="wait"))
        begin = now()
        for number in range(size):
            await ref.send(number)
        await counter.done.wait()
        return [rate(size, begin, "messages", "rate with back-pressure")]


BENCHMARK = Benchmark(
    name="tell",
    about="one sender, one actor",
    full=Plan(100_000, 1),
    quick=Plan(500, 1),
    measure=measure,
)
