"""Ring: one token goes round a thousand actors; a hop is one message."""

from __future__ import annotations

from typing import Any

import trio

from benchmarks.figure import Benchmark, Figure, Plan
from benchmarks.stopwatch import now, rate
from runtime.actor.actor import Actor
from runtime.actor.ref import ActorRef
from runtime.system import open_system

NODES = 1000


class Node(Actor):
    """Hands a token on until its hops are used up.

    Takes: the next node's ref, once; then tokens, which are numbers of hops.
    Sends: the token, to the next node.
    Keeps: the next node.
    Fails: never.
    Ends: with its system.
    """

    def __init__(self, done: trio.Event) -> None:
        super().__init__()
        self._done = done
        self._next: ActorRef | None = None

    def on_receive(self, message: Any) -> None:  # noqa: ANN401  pykka's seam
        """Hand the token on, or end the round."""
        if isinstance(message, ActorRef):
            self._next = message
        elif message == 0 or self._next is None:
            self._done.set()
        else:
            self._next.tell(message - 1)


def measure(plan: Plan) -> list[Figure]:
    """Let the token make `size` hops."""
    return trio.run(ring, plan)


async def ring(plan: Plan) -> list[Figure]:
    """Close a ring in an order that the seed decides, and send the token round."""
    done = trio.Event()
    async with open_system() as system:
        nodes = [system.spawn(Node(done)) for _ in range(NODES)]
        plan.dice().shuffle(nodes)
        for node, following in zip(nodes, [*nodes[1:], nodes[0]], strict=True):
            node.tell(following)
        begin = now()
        nodes[0].tell(plan.size)
        await done.wait()
        return [rate(plan.size, begin, "hops")]


BENCHMARK = Benchmark(
    name="ring",
    about="one token round a thousand actors",
    full=Plan(100_000, 1),
    quick=Plan(500, 1),
    measure=measure,
)
