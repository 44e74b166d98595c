"""Fan-in: a hundred actors tell one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import trio

from benchmarks.figure import Benchmark, Figure, Plan
from benchmarks.kernel.bench_tell import Counter
from benchmarks.stopwatch import now, rate
from runtime.actor.actor import Actor
from runtime.actor.mailbox import MailboxConfig
from runtime.system import open_system

if TYPE_CHECKING:
    from runtime.actor.ref import ActorRef

SENDERS = 100


class Sender(Actor):
    """Tells one actor as many messages as it is told to.

    Takes: a number.
    Sends: that many messages.
    Keeps: to whom.
    Fails: never; what finds no room is a dead letter.
    Ends: with its system.
    """

    def __init__(self, to: ActorRef) -> None:
        super().__init__()
        self._to = to

    def on_receive(self, message: Any) -> None:  # noqa: ANN401  pykka's seam
        """Tell `message` messages."""
        for number in range(message):
            self.tell(self._to, number)


def measure(plan: Plan) -> list[Figure]:
    """Tell `size` messages in all."""
    return trio.run(fan_in, plan)


async def fan_in(plan: Plan) -> list[Figure]:
    """Let all senders go, in an order that the seed decides."""
    share = plan.size // SENDERS
    total = share * SENDERS
    async with open_system() as system:
        counter = Counter(total)
        sink = system.spawn(counter, mailbox=MailboxConfig(capacity=total))
        senders = [system.spawn(Sender(sink)) for _ in range(SENDERS)]
        plan.dice().shuffle(senders)
        begin = now()
        for sender in senders:
            sender.tell(share)
        await counter.done.wait()
        return [rate(total, begin, "messages")]


BENCHMARK = Benchmark(
    name="fan_in",
    about="a hundred actors tell one",
    full=Plan(100_000, 1),
    quick=Plan(500, 1),
    measure=measure,
)
