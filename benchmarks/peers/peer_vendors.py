"""The vendors' own SDKs: each asks in its own format, asynchronously, as its docs say.

They retry nothing here, and read every piece.
"""

# They may not be installed where the types are checked:
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownParameterType=false, reportUnknownArgumentType=false
# pyright: reportAttributeAccessIssue=false
# mypy: disable-error-code="no-untyped-call, unused-ignore"

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from time import process_time
from typing import TYPE_CHECKING, Any

from anthropic import AsyncAnthropic
from google import genai
from google.genai import types
from ollama import AsyncClient
from openai import AsyncOpenAI

from benchmarks.company.bench_model_call import KEY, QUESTION, SYSTEM, TOGETHER, costs
from benchmarks.stage.vendors import LONG, SHORT, WORD, served

if TYPE_CHECKING:
    from benchmarks.figure import Figure, Plan, Round

SHARE = 1.0

Ask = Callable[[str, bool], Awaitable[str]]
Asker = tuple[Ask, Callable[[], Awaitable[object]]]
"""How to ask, and how to close what asks."""


def openai_asker(address: str) -> Asker:
    """Ask by `openai`."""
    client = AsyncOpenAI(base_url=f"{address}/v1", api_key=KEY, max_retries=0)
    messages: list[Any] = [
        {"role": "system", "content": SYSTEM},
        {"role": "user", "content": QUESTION},
    ]

    async def ask(model: str, stream: bool) -> str:  # noqa: FBT001
        if not stream:
            whole = await client.chat.completions.create(
                model=model, messages=messages, max_tokens=1000
            )
            return whole.choices[0].message.content or ""
        said = ""
        async for chunk in await client.chat.completions.create(
            model=model,
            messages=messages,
            max_tokens=1000,
            stream=True,
            stream_options={"include_usage": True},
        ):
            for choice in chunk.choices:
                said += choice.delta.content or ""
        return said

    return ask, client.close


def anthropic_asker(address: str) -> Asker:
    """Ask by `anthropic`."""
    client = AsyncAnthropic(base_url=address, api_key=KEY, max_retries=0)
    asked: dict[str, Any] = {
        "max_tokens": 1000,
        "system": SYSTEM,
        "messages": [{"role": "user", "content": QUESTION}],
    }

    async def ask(model: str, stream: bool) -> str:  # noqa: FBT001
        if not stream:
            whole: Any = await client.messages.create(model=model, **asked)
            return str(whole.content[0].text)
        said = ""
        events: Any = await client.messages.create(model=model, stream=True, **asked)
        async for event in events:
            if event.type == "content_block_delta":
                said += event.delta.text
        return said

    return ask, client.close


def google_asker(address: str) -> Asker:
    """Ask by `google-genai`."""
    options = types.HttpOptions(base_url=address)
    client: Any = genai.Client(api_key=KEY, http_options=options)
    models = client.aio.models
    config = types.GenerateContentConfig(
        system_instruction=SYSTEM, max_output_tokens=1000
    )

    async def ask(model: str, stream: bool) -> str:  # noqa: FBT001
        asked = {"model": model, "contents": QUESTION, "config": config}
        if not stream:
            return str((await models.generate_content(**asked)).text)
        said = ""
        async for chunk in await models.generate_content_stream(**asked):
            said += chunk.text or ""
        return said

    return ask, client.aio.aclose


def ollama_asker(address: str) -> Asker:
    """Ask by `ollama`."""
    client: Any = AsyncClient(host=address)
    messages = [
        {"role": "system", "content": SYSTEM},
        {"role": "user", "content": QUESTION},
    ]

    async def ask(model: str, stream: bool) -> str:  # noqa: FBT001
        asked = {"model": model, "messages": messages, "stream": stream}
        if not stream:
            return str((await client.chat(**asked)).message.content)
        said = ""
        async for part in await client.chat(**asked):
            said += part.message.content or ""
        return said

    return ask, client._client.aclose  # noqa: SLF001  it offers no other way


ASKERS: dict[str, Callable[[str], Asker]] = {
    "openai": openai_asker,
    "anthropic": anthropic_asker,
    "google": google_asker,
    "ollama": ollama_asker,
}


def call_all(plan: Plan) -> list[Figure]:
    """Ask `size` times in each format and manner, one after the other."""
    figures: list[Figure] = []
    with served() as address:
        for name, make in ASKERS.items():
            figures += asyncio.run(call_one(name, make, address, plan.size))
    return figures


async def call_one(
    name: str, make: Callable[[str], Asker], address: str, size: int
) -> list[Figure]:
    """Measure one SDK."""
    ask, close = make(address)
    whole = await cost(ask, size, stream=False)
    short = await cost(ask, size, stream=True)
    begin = process_time()
    said = await asyncio.gather(*(ask("long", True) for _ in range(TOGETHER)))  # noqa: FBT003
    long = (process_time() - begin) / TOGETHER
    assert said == [WORD * LONG] * TOGETHER
    await close()
    return costs(name, whole, short, long)


async def cost(ask: Ask, size: int, *, stream: bool) -> float:
    """Give the seconds of processor time that a short answer takes."""
    await ask("short", stream)  # uncounted: it connects
    begin = process_time()
    for _ in range(size):
        assert await ask("short", stream) == WORD * SHORT
    return (process_time() - begin) / size


ROUNDS: dict[str, Round] = {"model_call": call_all}
