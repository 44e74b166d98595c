"""xoscar's actor pool in one process, on one asyncio loop."""

# It may not be installed where the types are checked, and has no types:
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUntypedBaseClass=false, reportUnknownArgumentType=false

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import xoscar

from benchmarks.stopwatch import now, now_ns, rate, spans

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from benchmarks.figure import Figure, Plan, Round

SHARE = 0.05
SENDERS = 100
NODES = 1000


class Counter(xoscar.Actor):  # type: ignore[misc]  # untyped where it is installed
    """Counts messages and says when it has seen enough of them."""

    def __init__(self, expected: int) -> None:
        super().__init__()
        self._missing = expected
        self._done = asyncio.Event()

    def add(self, _number: int) -> None:
        """Count one message."""
        self._missing -= 1
        if self._missing == 0:
            self._done.set()

    async def wait_done(self) -> AsyncGenerator[Any]:
        """Wait until all have come."""
        # Yielding to the pool lets the actor handle other messages meanwhile.
        yield self._done.wait()


class Sender(xoscar.Actor):  # type: ignore[misc]
    """Tells one actor as many messages as it is told to."""

    def __init__(self, to: Any) -> None:  # noqa: ANN401
        super().__init__()
        self._to = to

    async def pour(self, count: int) -> None:
        """Tell `count` messages."""
        for number in range(count):
            await self._to.add.tell(number)


class Node(xoscar.Actor):  # type: ignore[misc]
    """Hands a token on until its hops are used up."""

    def __init__(self, counter: Any) -> None:  # noqa: ANN401
        super().__init__()
        self._counter = counter
        self._next: Any = None

    def link(self, following: Any) -> None:  # noqa: ANN401
        """Learn who comes next."""
        self._next = following

    async def hand_on(self, hops: int) -> None:
        """Hand the token on, or end the round."""
        if hops == 0:
            await self._counter.add.tell(0)
        else:
            await self._next.hand_on.tell(hops - 1)


class Echo(xoscar.Actor):  # type: ignore[misc]
    """Answers with what it was asked."""

    def give(self, number: int) -> int:
        """Give the number back."""
        return number


@asynccontextmanager
async def pool() -> AsyncGenerator[str]:
    """Open a pool in this process, and give its address."""
    opened = await xoscar.create_actor_pool("127.0.0.1", n_process=0)
    async with opened:
        yield opened.external_address


async def tell_all(plan: Plan) -> list[Figure]:
    """Tell one actor."""
    async with pool() as at:
        ref = await xoscar.create_actor(Counter, plan.size, address=at, uid="sink")
        begin = now()
        for number in range(plan.size):
            await ref.add.tell(number)
        await ref.wait_done()
        return [rate(plan.size, begin, "messages")]


async def fan_in_all(plan: Plan) -> list[Figure]:
    """A hundred actors tell one."""
    share = max(1, plan.size // SENDERS)
    total = share * SENDERS
    async with pool() as at:
        sink = await xoscar.create_actor(Counter, total, address=at, uid="sink")
        senders = [
            await xoscar.create_actor(Sender, sink, address=at, uid=f"s{number}")
            for number in range(SENDERS)
        ]
        begin = now()
        for sender in senders:
            await sender.pour.tell(share)
        await sink.wait_done()
        return [rate(total, begin, "messages")]


async def ring_all(plan: Plan) -> list[Figure]:
    """One token round a thousand actors."""
    async with pool() as at:
        counter = await xoscar.create_actor(Counter, 1, address=at, uid="end")
        nodes = [
            await xoscar.create_actor(Node, counter, address=at, uid=f"n{number}")
            for number in range(NODES)
        ]
        plan.dice().shuffle(nodes)
        for node, following in zip(nodes, [*nodes[1:], nodes[0]], strict=True):
            await node.link(following)
        begin = now()
        await nodes[0].hand_on.tell(plan.size)
        await counter.wait_done()
        return [rate(plan.size, begin, "hops")]


async def ask_all(plan: Plan) -> list[Figure]:
    """Ask one actor from the loop."""
    taken: list[int] = []
    async with pool() as at:
        ref = await xoscar.create_actor(Echo, address=at, uid="echo")
        for number in range(plan.size):
            begin = now_ns()
            answer = await ref.give(number)
            taken.append(now_ns() - begin)
            assert answer == number
    return spans(taken)


async def ask_thread_all(plan: Plan) -> list[Figure]:
    """Ask one actor from a thread."""
    loop = asyncio.get_running_loop()
    async with pool() as at:
        ref = await xoscar.create_actor(Echo, address=at, uid="echo")

        async def exchange(number: int) -> Any:  # noqa: ANN401
            return await ref.give(number)

        def exchanges() -> list[int]:
            taken: list[int] = []
            for number in range(plan.size):
                begin = now_ns()
                asked = asyncio.run_coroutine_threadsafe(exchange(number), loop)
                assert asked.result() == number
                taken.append(now_ns() - begin)
            return taken

        return spans(await asyncio.to_thread(exchanges))


ROUNDS: dict[str, Round] = {
    "tell": lambda plan: asyncio.run(tell_all(plan)),
    "fan_in": lambda plan: asyncio.run(fan_in_all(plan)),
    "ring": lambda plan: asyncio.run(ring_all(plan)),
    "ask": lambda plan: asyncio.run(ask_all(plan)),
    "ask_thread": lambda plan: asyncio.run(ask_thread_all(plan)),
}
