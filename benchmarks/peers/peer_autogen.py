"""autogen-core's runtime for one process: agents on one asyncio loop.

A tell is a published message, as its documentation has it; an ask is
`send_message`. Its agents are closures here, the shortest way it offers.
"""

# It may not be installed where the types are checked:
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownParameterType=false, reportUnknownArgumentType=false

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from autogen_core import (
    AgentId,
    ClosureAgent,
    SingleThreadedAgentRuntime,
    TopicId,
    TypeSubscription,
)

from benchmarks.stopwatch import now, now_ns, rate, spans

if TYPE_CHECKING:
    from benchmarks.figure import Figure, Plan, Round

SHARE = 0.05
SENDERS = 100
NODES = 1000

Closure = Callable[..., Awaitable[Any]]


@dataclass
class Token:
    """A number on its way."""

    number: int


async def join(runtime: Any, kind: str, closure: Closure) -> None:  # noqa: ANN401
    """Add an agent that takes what is published under its name."""
    heard: list[Any] = [TypeSubscription(kind, kind)]
    await ClosureAgent.register_closure(
        runtime, kind, closure, subscriptions=lambda: heard
    )


async def count(_context: Any, message: Token, _call: Any) -> None:  # noqa: ANN401
    """Take a message in."""
    assert message.number >= 0


async def echo(_context: Any, message: Token, _call: Any) -> Token:  # noqa: ANN401
    """Give the message back."""
    return message


async def tell_all(plan: Plan) -> list[Figure]:
    """Publish to one agent."""
    runtime = SingleThreadedAgentRuntime()
    await join(runtime, "sink", count)
    runtime.start()
    begin = now()
    for number in range(plan.size):
        await runtime.publish_message(Token(number), TopicId("sink", "0"))
    await runtime.stop_when_idle()
    return [rate(plan.size, begin, "messages")]


async def fan_in_all(plan: Plan) -> list[Figure]:
    """A hundred agents publish to one."""
    share = max(1, plan.size // SENDERS)
    runtime = SingleThreadedAgentRuntime()

    async def pour(context: Any, message: Token, _call: Any) -> None:  # noqa: ANN401
        for number in range(message.number):
            await context.publish_message(Token(number), TopicId("sink", "0"))

    await join(runtime, "sink", count)
    await join(runtime, "sender", pour)
    runtime.start()
    begin = now()
    for key in range(SENDERS):
        await runtime.publish_message(Token(share), TopicId("sender", str(key)))
    await runtime.stop_when_idle()
    return [rate(share * SENDERS, begin, "messages")]


async def ring_all(plan: Plan) -> list[Figure]:
    """One token round a thousand agents, which are made when it first comes by."""
    runtime = SingleThreadedAgentRuntime()

    async def hand_on(context: Any, message: Token, _call: Any) -> None:  # noqa: ANN401
        if message.number > 0:
            key = str((int(context.id.key) + 1) % NODES)
            topic = TopicId("node", key)
            await context.publish_message(Token(message.number - 1), topic)

    await join(runtime, "node", hand_on)
    runtime.start()
    await runtime.publish_message(Token(NODES), TopicId("node", "0"))
    await runtime.stop_when_idle()
    runtime.start()
    begin = now()
    await runtime.publish_message(Token(plan.size), TopicId("node", "0"))
    await runtime.stop_when_idle()
    return [rate(plan.size, begin, "hops")]


async def ask_all(plan: Plan) -> list[Figure]:
    """Ask one agent from the loop."""
    runtime = SingleThreadedAgentRuntime()
    await join(runtime, "echo", echo)
    runtime.start()
    taken: list[int] = []
    for number in range(plan.size):
        begin = now_ns()
        answer = await runtime.send_message(Token(number), AgentId("echo", "0"))
        taken.append(now_ns() - begin)
        assert answer.number == number
    await runtime.stop()
    return spans(taken)


async def ask_thread_all(plan: Plan) -> list[Figure]:
    """Ask one agent from a thread."""
    runtime = SingleThreadedAgentRuntime()
    await join(runtime, "echo", echo)
    runtime.start()
    loop = asyncio.get_running_loop()

    async def exchange(number: int) -> Any:  # noqa: ANN401
        return await runtime.send_message(Token(number), AgentId("echo", "0"))

    def exchanges() -> list[int]:
        taken: list[int] = []
        for number in range(plan.size):
            begin = now_ns()
            answer = asyncio.run_coroutine_threadsafe(exchange(number), loop).result()
            taken.append(now_ns() - begin)
            assert answer.number == number
        return taken

    taken = await asyncio.to_thread(exchanges)
    await runtime.stop()
    return spans(taken)


ROUNDS: dict[str, Round] = {
    "tell": lambda plan: asyncio.run(tell_all(plan)),
    "fan_in": lambda plan: asyncio.run(fan_in_all(plan)),
    "ring": lambda plan: asyncio.run(ring_all(plan)),
    "ask": lambda plan: asyncio.run(ask_all(plan)),
    "ask_thread": lambda plan: asyncio.run(ask_thread_all(plan)),
}
