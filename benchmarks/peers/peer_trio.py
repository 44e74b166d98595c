"""A bare trio memory channel and a task for each receiver, without any actor."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING

import trio

from benchmarks.stopwatch import now, now_ns, rate, spans

if TYPE_CHECKING:
    from benchmarks.figure import Figure, Plan, Round

SHARE = 0.5
SENDERS = 100
NODES = 1000

Send = trio.MemorySendChannel[int]
Receive = trio.MemoryReceiveChannel[int]


async def drain(channel: Receive, count: int) -> None:
    """Receive so many messages."""
    for _ in range(count):
        await channel.receive()


async def tell_all(plan: Plan) -> list[Figure]:
    """Send to one task, with room for all."""
    send, receive = trio.open_memory_channel[int](plan.size)
    begin = now()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(drain, receive, plan.size)
        for number in range(plan.size):
            send.send_nowait(number)
    return [rate(plan.size, begin, "messages"), await push_back(plan.size)]


async def push_back(size: int) -> Figure:
    """Send to one task, with room for 256."""
    send, receive = trio.open_memory_channel[int](256)
    begin = now()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(drain, receive, size)
        for number in range(size):
            await send.send(number)
    return rate(size, begin, "messages", "rate with back-pressure")


async def pour(send: Send, count: int) -> None:
    """Send so many messages without waiting."""
    for number in range(count):
        send.send_nowait(number)


async def fan_in_all(plan: Plan) -> list[Figure]:
    """A hundred tasks send to one."""
    share = max(1, plan.size // SENDERS)
    total = share * SENDERS
    send, receive = trio.open_memory_channel[int](total)
    begin = now()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(drain, receive, total)
        for _ in range(SENDERS):
            nursery.start_soon(pour, send, share)
    return [rate(total, begin, "messages")]


async def node(receive: Receive, send: Send, done: trio.Event) -> None:
    """Hand a token on until its hops are used up."""
    while (token := await receive.receive()) > 0:
        await send.send(token - 1)
    done.set()


async def ring_all(plan: Plan) -> list[Figure]:
    """One token round a thousand tasks."""
    channels = [trio.open_memory_channel[int](1) for _ in range(NODES)]
    plan.dice().shuffle(channels)
    done = trio.Event()
    async with trio.open_nursery() as nursery:
        following = [*channels[1:], channels[0]]
        for (_, receive), (send, _) in zip(channels, following, strict=True):
            nursery.start_soon(node, receive, send, done)
        await trio.lowlevel.checkpoint()
        begin = now()
        await channels[0][0].send(plan.size)
        await done.wait()
        figures = [rate(plan.size, begin, "hops")]
        nursery.cancel_scope.cancel()
    return figures


async def echo(receive: Receive, send: Send) -> None:
    """Give every message back."""
    async for message in receive:
        await send.send(message)


async def ask_all(plan: Plan) -> list[Figure]:
    """Ask over one channel and get the answer over another."""
    there, question = trio.open_memory_channel[int](1)
    back, answer = trio.open_memory_channel[int](1)
    taken: list[int] = []
    async with trio.open_nursery() as nursery:
        nursery.start_soon(echo, question, back)
        for number in range(plan.size):
            begin = now_ns()
            await there.send(number)
            assert await answer.receive() == number
            taken.append(now_ns() - begin)
        nursery.cancel_scope.cancel()
    return spans(taken)


def exchanges(size: int, there: Send, answer: Receive) -> list[int]:
    """Take the time of each ask from a thread, in nanoseconds."""

    async def exchange(number: int) -> int:
        await there.send(number)
        return await answer.receive()

    taken: list[int] = []
    for number in range(size):
        begin = now_ns()
        assert trio.from_thread.run(exchange, number) == number
        taken.append(now_ns() - begin)
    return taken


async def ask_thread_all(plan: Plan) -> list[Figure]:
    """Ask from a thread of trio's."""
    there, question = trio.open_memory_channel[int](1)
    back, answer = trio.open_memory_channel[int](1)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(echo, question, back)
        asking = functools.partial(exchanges, plan.size, there, answer)
        taken = await trio.to_thread.run_sync(asking)
        nursery.cancel_scope.cancel()
    return spans(taken)


ROUNDS: dict[str, Round] = {
    "tell": lambda plan: trio.run(tell_all, plan),
    "fan_in": lambda plan: trio.run(fan_in_all, plan),
    "ring": lambda plan: trio.run(ring_all, plan),
    "ask": lambda plan: trio.run(ask_all, plan),
    "ask_thread": lambda plan: trio.run(ask_thread_all, plan),
}
