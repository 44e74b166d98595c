"""Waits: how long others wait for their turn while actors do their worst.

Beside each adversary three others measure their longest wait: a trio task that only
gives way, somebody who asks a neighbour, an idle actor, and a byte on a socket. Waits
are in processor time of the loop's thread: what else the machine does is left out.
"""

from __future__ import annotations

from time import thread_time
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


class SelfTeller(Counter):
    """Tells itself the next message, so that it is never idle.

    Takes: anything.
    Sends: to itself.
    Keeps: how many are still to come.
    Fails: never.
    Ends: with its system.
    """

    def on_receive(self, message: Any) -> Any:  # noqa: ANN401  pykka's seam
        """Count one message, and send the next."""
        super().on_receive(message)
        if not self.done.is_set():
            self.tell(self.actor_ref, message)


class Busy(Counter):
    """Works a fifth of a millisecond for each message.

    Takes: anything.
    Sends: nothing.
    Keeps: how many are still to come.
    Fails: never.
    Ends: with its system.
    """

    def on_receive(self, message: Any) -> Any:  # noqa: ANN401  pykka's seam
        """Work, then count."""
        end = now() + 0.0002
        while now() < end:
            pass
        super().on_receive(message)


class Echo(Counter):
    """The neighbour: answers what it is asked.

    Takes: anything.
    Sends: nothing.
    Keeps: nothing.
    Fails: never.
    Ends: with its system.
    """

    def on_receive(self, message: Any) -> Any:  # noqa: ANN401  pykka's seam
        """Give it back."""
        return message


def measure(plan: Plan) -> list[Figure]:
    """Send `size` messages in all, in each of six ways."""
    share = plan.size // ACTORS
    few = max(1, share // 20)  # each takes long
    return [
        *trio.run(waited, Counter, share, told, "plain flood"),
        *trio.run(waited, SwiftCounter, share, told, "async flood"),
        *trio.run(waited, SelfTeller, share, told_once, "tells itself"),
        *trio.run(waited, Busy, few, told, "busy handlers"),
        *trio.run(waited, Counter, share, asked, "ask storm"),
        *trio.run(waited, Counter, share, told_by_a_thread, "foreign burst"),
    ]


async def waited(
    kind: type[Counter],
    share: int,
    flood: Callable[[list[ActorRef], int], Awaitable[None]],
    name: str,
) -> list[Figure]:
    """Flood all actors; give the longest waits of those beside them."""
    room = MailboxConfig(capacity=2 * share + 2)
    here, there = trio.socket.socketpair()
    async with open_system() as system, trio.open_nursery() as nursery:
        counters = [kind(share) for _ in range(ACTORS)]
        refs = [system.spawn(counter, mailbox=room) for counter in counters]
        neighbour = system.spawn(Echo(0))

        async def send_and_receive() -> None:
            await here.send(b"x")
            await there.recv(1)

        async def ask() -> None:
            await neighbour.ask("still there?")
            await trio.lowlevel.checkpoint()

        looks = {
            "": trio.lowlevel.checkpoint,
            ", neighbour": ask,
            ", I/O": send_and_receive,
        }
        longest = dict.fromkeys(looks, 0.0)
        for who, look in looks.items():
            nursery.start_soon(watch, look, longest, who)
        await flood(refs, share)
        for counter in counters:
            await counter.done.wait()
        nursery.cancel_scope.cancel()
    here.close()
    there.close()
    return [
        Figure(f"longest wait, {name}{who}", seconds * 1000, "ms")
        for who, seconds in longest.items()
    ]


async def watch(
    look: Callable[[], Awaitable[object]], longest: dict[str, float], who: str
) -> None:
    """Do something short again and again; note the longest time that took."""
    while True:
        begin = thread_time()
        await look()
        longest[who] = max(longest[who], thread_time() - begin)


async def told(refs: list[ActorRef], share: int) -> None:
    """Tell every actor its share, a little at a time."""
    for _ in range(share):
        for ref in refs:
            ref.tell("flood")
        await trio.lowlevel.checkpoint()


async def told_once(refs: list[ActorRef], _share: int) -> None:
    """Tell every actor one message; it goes on by itself."""
    for ref in refs:
        ref.tell("go on")


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
