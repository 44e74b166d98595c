"""Model call: what asking a provider costs this process in processor time.

Each format against a server in a process of its own. A call is one question and ten
words in answer, streamed or in one piece; a token is one of two hundred words that come
five milliseconds apart, in ten answers at once. Time spent waiting is not counted.
"""

from __future__ import annotations

from time import process_time
from typing import TYPE_CHECKING

import trio

from actors.messages.inbound import ModelRequest, TranscriptLine
from benchmarks.figure import Benchmark, Figure, Plan
from benchmarks.stage.vendors import LONG, SHORT, WORD, served
from connectors.config import models as configs
from connectors.models import anthropic, google, ollama
from connectors.models.openai import model as openai
from runtime.clock import SystemClock
from runtime.secret import Secret

if TYPE_CHECKING:
    from collections.abc import Callable

    from actors.ports import Model

TOGETHER = 10
"""Long answers at once."""

KEY = "key-of-this-benchmark"
SYSTEM = "You are Anna."
QUESTION = "What time is it?"


def make_openai(address: str, *, stream: bool) -> Model:
    """Make a model that speaks OpenAI's format."""
    config = configs.OpenAIModelConfig(
        model="m", base_url=f"{address}/v1", api_key=Secret(KEY), stream=stream
    )
    return openai.make_model(config, SystemClock().wall)


def make_anthropic(address: str, *, stream: bool) -> Model:
    """Make a model that speaks Anthropic's format."""
    config = configs.AnthropicModelConfig(
        model="m", base_url=f"{address}/v1", api_key=Secret(KEY), stream=stream
    )
    return anthropic.make_model(config, SystemClock().wall)


def make_google(address: str, *, stream: bool) -> Model:
    """Make a model that speaks Google's format."""
    config = configs.GoogleModelConfig(
        model="m", base_url=f"{address}/v1beta", api_key=Secret(KEY), stream=stream
    )
    return google.make_model(config, SystemClock().wall)


def make_ollama(address: str, *, stream: bool) -> Model:
    """Make a model that speaks Ollama's format."""
    config = configs.OllamaModelConfig(model="m", base_url=address, stream=stream)
    return ollama.make_model(config, SystemClock().wall)


MAKERS: dict[str, Callable[..., Model]] = {
    "openai": make_openai,
    "anthropic": make_anthropic,
    "google": make_google,
    "ollama": make_ollama,
}


def measure(plan: Plan) -> list[Figure]:
    """Ask `size` times in each format and manner, one after the other."""
    figures: list[Figure] = []
    with served() as address:
        for name, make in MAKERS.items():
            plain = make(address, stream=False)
            streamed = make(address, stream=True)
            figures += trio.run(measure_one, name, plain, streamed, plan.size)
    return figures


async def measure_one(
    name: str, plain: Model, streamed: Model, size: int
) -> list[Figure]:
    """Measure one format."""
    whole = await cost(plain, size)
    short = await cost(streamed, size)
    begin = process_time()
    async with trio.open_nursery() as nursery:
        for _ in range(TOGETHER):
            nursery.start_soon(ask, streamed, "long", LONG)
    long = (process_time() - begin) / TOGETHER
    await plain.aclose()
    await streamed.aclose()
    return costs(name, whole, short, long)


async def cost(model: Model, size: int) -> float:
    """Give the seconds of processor time that a short answer takes."""
    await ask(model, "short", SHORT)  # uncounted: it connects
    begin = process_time()
    for _ in range(size):
        await ask(model, "short", SHORT)
    return (process_time() - begin) / size


async def ask(model: Model, name: str, words: int) -> None:
    """Ask once, and look at every piece."""
    request = ModelRequest(
        model=name,
        agent="anna",
        correlation_id="c",
        system=SYSTEM,
        lines=(TranscriptLine("user", QUESTION),),
        max_tokens=1000,
    )
    pieces: list[str] = []
    answer = await model.answer(request, pieces.append)
    assert answer.text == "".join(pieces) == WORD * words


def costs(name: str, whole: float, short: float, long: float) -> list[Figure]:
    """Turn seconds of processor time for an answer into figures."""
    token = max((long - short) / (LONG - SHORT), 1e-9)
    return [
        Figure(f"call in one piece, {name}", whole * 1e6, "µs of CPU"),
        Figure(f"streamed call, {name}", short * 1e6, "µs of CPU"),
        Figure(f"streamed token, {name}", token * 1e6, "µs of CPU"),
    ]


BENCHMARK = Benchmark(
    name="model_call",
    about="processor time of a model call and of a streamed token, by format",
    full=Plan(200, 1),
    quick=Plan(2, 1),
    measure=measure,
)
