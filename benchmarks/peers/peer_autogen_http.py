"""autogen-core with its own client of OpenAI's format: a model asked over HTTP.

In process and with nothing stored: agents of its runtime, one for each chat, whose
model client streams the answer; the shortest way its documentation has.
"""

# It may not be installed where the types are checked:
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportUnknownParameterType=false

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from autogen_core import AgentId, ClosureAgent, SingleThreadedAgentRuntime
from autogen_core.models import (
    AssistantMessage,
    CreateResult,
    ModelInfo,
    SystemMessage,
    UserMessage,
)
from autogen_ext.models.openai import OpenAIChatCompletionClient

from benchmarks.arithmetic import percentile
from benchmarks.figure import Figure
from benchmarks.server import bench_slow_model
from benchmarks.server.bench_http import CHATS
from benchmarks.stage.provider import provided
from benchmarks.stopwatch import now, now_ns, spans

if TYPE_CHECKING:
    from benchmarks.figure import Plan, Round

Closure = Callable[..., Awaitable[Any]]

SHARE = 0.5
NEWEST = 20
"""Lines of a conversation that are sent along."""


@dataclass
class Words:
    """What somebody says, or an agent answers."""

    text: str


def talker(client: Any) -> Closure:  # noqa: ANN401
    """Make an agent that keeps each chat's conversation, and asks a model."""
    conversations: dict[str, list[Any]] = {}

    async def answer(context: Any, message: Words, _call: Any) -> Words:  # noqa: ANN401
        lines = conversations.setdefault(context.id.key, [])
        lines.append(UserMessage(content=message.text, source="user"))
        asked = [SystemMessage(content="You are anna."), *lines[-NEWEST:]]
        text = ""
        async for piece in client.create_stream(asked):
            if isinstance(piece, CreateResult):
                text = str(piece.content)
        lines.append(AssistantMessage(content=text, source="anna"))
        return Words(text)

    return answer


@asynccontextmanager
async def opened(base_url: str) -> AsyncGenerator[SingleThreadedAgentRuntime]:
    """Run the agents of one runtime, which ask the model there."""
    info = ModelInfo(
        vision=False,
        function_calling=False,
        json_output=False,
        family="unknown",
        structured_output=False,
    )
    client = OpenAIChatCompletionClient(
        model="stub", api_key="none", base_url=base_url, model_info=info
    )
    runtime = SingleThreadedAgentRuntime()
    heard: list[Any] = []
    await ClosureAgent.register_closure(
        runtime, "anna", talker(client), subscriptions=lambda: heard
    )
    runtime.start()
    yield runtime
    await runtime.stop_when_idle()
    await client.close()


async def visit_all(plan: Plan, base_url: str) -> list[Figure]:
    """Let one, sixteen and sixty-four people write."""
    figures: list[Figure] = []
    async with opened(base_url) as runtime:
        for chats in CHATS:
            share = max(1, plan.size // max(chats, 8))
            taken: list[int] = []
            await _talk_all(runtime, chats, 2, [])
            before, begin = time.process_time(), now()
            await _talk_all(runtime, chats, share, taken)
            spent, seconds = time.process_time() - before, now() - begin
            figures += [
                Figure(f"rate, {chats}", len(taken) / seconds, "messages/s"),
                *spans(taken, f", {chats}"),
                Figure(f"processor, {chats}", 1000 * spent / len(taken), "ms/message"),
            ]
    return figures


async def visit_slow(plan: Plan, base_url: str) -> list[Figure]:
    """Let sixty-four people write, who all begin at once."""
    share = max(1, plan.size // bench_slow_model.CHATS)
    taken: list[int] = []
    async with opened(base_url) as runtime:
        await _talk_all(runtime, bench_slow_model.CHATS, 1, [])
        paces = await _talk_all(runtime, bench_slow_model.CHATS, share, taken)
    p50, p99 = (percentile(taken, each) / 1e6 for each in (0.5, 0.99))
    return [
        Figure("rate, all at once", sum(paces), "messages/s"),
        Figure("p50, all at once", p50, "ms"),
        Figure("p99, all at once", p99, "ms"),
    ]


async def _talk_all(
    runtime: SingleThreadedAgentRuntime, chats: int, share: int, taken: list[int]
) -> list[float]:
    """Let them write; give how many messages each had answered in a second."""
    talks = (_talk(runtime, str(chat), share, taken) for chat in range(chats))
    return await asyncio.gather(*talks)


async def _talk(
    runtime: SingleThreadedAgentRuntime, chat: str, share: int, taken: list[int]
) -> float:
    began = now()
    for number in range(share):
        begin = now_ns()
        await runtime.send_message(Words(f"hello {number}"), AgentId("anna", chat))
        taken.append(now_ns() - begin)
    return share / (now() - began)


def http(plan: Plan) -> list[Figure]:
    """Do what the benchmark `http` does, without a server in between."""
    with provided(0.0) as base_url:
        return asyncio.run(visit_all(plan, base_url))


def slow_model(plan: Plan) -> list[Figure]:
    """Do what `slow_model` does when all begin at once, without a server."""
    with provided(bench_slow_model.SECONDS) as base_url:
        return asyncio.run(visit_slow(plan, base_url))


ROUNDS: dict[str, Round] = {"http": http, "slow_model": slow_model}
