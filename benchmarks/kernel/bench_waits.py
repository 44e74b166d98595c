"""Waits: how long trio's other tasks wait for a turn while actors are flooded.

A task that only gives way measures the longest time between two of its turns, once
for each kind of flood.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import trio

from benchmarks.figure import Benchmark, Figure, Plan
from benchmarks.kernel.bench_tell import Counter
from benchmarks.stopwatch import now
from runtime.actor.mailbox import MailboxConfig
from runtime.system import open_system

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from runtime.actor.ref import ActorRef

ACTORS = 64
ASKERS = 8


class SwiftCounter(Counter):
    """The same from an `async` handler that never suspends.

    Takes: anything.
    Sends: nothing.
    Keeps: how many are still to come.
    Fails: never.
    Ends: with its system.
    """

    def on_receive(self, message: Any) -> Any:  # noqa: ANN401  pykka's seam
        """Give what counts one message."""
        return self._count(message)

    async def _count(self, message: Any) -> None:  # noqa: ANN401  pykka's seam
        super().on_receive(message)


def measure(plan: Plan) -> list[Figure]:
    """Send `size` messages in all, in each of four ways."""
    share = plan.size // ACTORS
    return [
        *trio.run(waited, Counter, share, told, "plain flood"),
        *trio.run(waited, SwiftCounter, share, told, "async flood"),
        *trio.run(waited, Counter, share, asked, "ask storm"),
        *trio.run(waited, Counter, share, told_by_a_thread, "foreign burst"),
    ]


async def waited(
    kind: type[Counter],
    share: int,
    flood: Callable[[list[ActorRef], int], Awaitable[None]],
    name: str,
) -> list[Figure]:
    """Flood all actors; give the longest wait of a task beside them."""
    longest = [0.0]
    room = MailboxConfig(capacity=2 * share)
    async with open_system() as system, trio.open_nursery() as nursery:
        counters = [kind(share) for _ in range(ACTORS)]
        refs = [system.spawn(counter, mailbox=room) for counter in counters]
        nursery.start_soon(watch, longest)
        await flood(refs, share)
        for counter in counters:
            await counter.done.wait()
        nursery.cancel_scope.cancel()
    return [Figure(f"longest wait, {name}", longest[0] * 1000, "ms")]


async def watch(longest: list[float]) -> None:
    """Give way again and again; note the longest time that took."""
    while True:
        begin = now()
        await trio.lowlevel.checkpoint()
        longest[0] = max(longest[0], now() - begin)


async def told(refs: list[ActorRef], share: int) -> None:
    """Tell every actor its share, a little at a time."""
    for _ in range(share):
        for ref in refs:
            ref.tell("flood")
        await trio.lowlevel.checkpoint()


async def asked(refs: list[ActorRef], share: int) -> None:
    """Ask every actor its share, from several tasks at the same time."""

    async def ask(some: list[ActorRef]) -> None:
        for ref in some:
            for _ in range(share):
                await ref.ask("storm")

    async with trio.open_nursery() as nursery:
        for number in range(ASKERS):
            nursery.start_soon(ask, refs[number::ASKERS])


async def told_by_a_thread(refs: list[ActorRef], share: int) -> None:
    """Tell every actor its share from another thread."""

    def tell() -> None:
        for _ in range(share):
            for ref in refs:
                ref.tell("burst")

    await trio.to_thread.run_sync(tell)


BENCHMARK = Benchmark(
    name="waits",
    about="longest wait of others while actors are flooded",
    full=Plan(64_000, 1),
    quick=Plan(640, 1),
    measure=measure,
)
