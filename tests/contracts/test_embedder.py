"""Proves that every embedder keeps what the port `Embedder` promises."""

from __future__ import annotations

from collections.abc import Callable

import httpx
import msgspec
import pytest
import trio
from trio.testing import MockClock

from actors.errors import ModelBusyError, ModelRefusedError
from actors.ports import Embedder
from connectors.config.models import OllamaEmbedderConfig, OpenAIEmbedderConfig
from connectors.models.embedders.http import HttpEmbedder
from connectors.models.embedders.local import HashingEmbedder
from runtime.errors import SettingsError
from runtime.secret import Secret
from runtime.store.vectors import cosine, pack
from tests.fakes.memory.memory import FakeEmbedder

KEY = "sk-embedder-key"
Answer = httpx.Response | Exception | None
Config = OpenAIEmbedderConfig | OllamaEmbedderConfig

OPENAI = OpenAIEmbedderConfig(api_key=Secret(KEY), max_text_chars=100, dimensions=64)
OLLAMA = OllamaEmbedderConfig(api_key=Secret(KEY), max_text_chars=100)
INFINITE = b'{"embeddings": [[1], [1e999]]}'


class Asked(msgspec.Struct):
    """What an endpoint is sent."""

    model: str
    input: list[str]
    dimensions: int | None = None
    truncate: bool | None = None


def endpoint(
    config: Config, answer: Answer = None, seen: list[httpx.Request] | None = None
) -> Embedder:
    """Make the real one, with an endpoint that answers so, or by words."""
    words = HashingEmbedder(64)

    async def respond(request: httpx.Request) -> httpx.Response:
        if seen is not None:
            seen.append(request)
        if isinstance(answer, Exception):
            raise answer
        if answer is not None:
            return answer
        asked = msgspec.json.decode(await request.aread(), type=Asked)
        vectors = [
            list(memoryview(each).cast("b")) for each in await words.embed(asked.input)
        ]
        if isinstance(config, OllamaEmbedderConfig):
            return httpx.Response(200, json={"embeddings": vectors})
        rows = [{"index": n, "embedding": v} for n, v in enumerate(vectors)]
        return httpx.Response(200, json={"data": rows[::-1]})

    transport = httpx.MockTransport(respond)
    return HttpEmbedder(config, wall_clock=lambda: 0.0, transport=transport)


def status(code: int, message: str = "no", **headers: str) -> httpx.Response:
    return httpx.Response(code, json={"error": {"message": message}}, headers=headers)


def both(answer: Callable[[], Answer]) -> list[Callable[[], Embedder]]:
    return [
        lambda: endpoint(OPENAI, answer()),
        lambda: endpoint(OLLAMA, answer()),
    ]


WORKING: list[Callable[[], Embedder]] = [
    lambda: HashingEmbedder(64),
    FakeEmbedder,
    *both(lambda: None),
]
BUSY: list[Callable[[], Embedder]] = [
    *both(lambda: status(429, **{"Retry-After": "7"})),
    *both(lambda: status(503)),
    *both(lambda: httpx.ConnectError("gone")),
    *both(lambda: httpx.Response(200, content=b"<html>")),
    *both(lambda: httpx.Response(200, json={"data": [], "embeddings": []})),
    *both(lambda: httpx.Response(200, json={"data": 1, "embeddings": 1})),
    lambda: endpoint(OLLAMA, httpx.Response(200, json={"embeddings": [[1], []]})),
    lambda: endpoint(OLLAMA, httpx.Response(200, content=INFINITE)),
    lambda: FakeEmbedder(errors=[ModelBusyError("busy")]),
]
REFUSED: list[Callable[[], Embedder]] = [
    *both(lambda: status(401, f"the key {KEY} is wrong")),
    *both(lambda: status(404, "no such model")),
    lambda: FakeEmbedder(errors=[ModelRefusedError("refused", kind="content")]),
]


async def embed(make: Callable[[], Embedder], *texts: str) -> tuple[bytes, ...]:
    embedder = make()
    try:
        return await embedder.embed(texts)
    finally:
        with trio.CancelScope(shield=True):
            await embedder.aclose()


@pytest.mark.parametrize("make", WORKING)
async def test_each_text_has_its_vector_in_order(make: Callable[[], Embedder]) -> None:
    tea, cats, teas = await embed(make, "green tea", "two cats", "green teas")
    assert len(tea) == len(cats) == len(teas) == 64
    assert cosine(tea, teas) > 0.5 > cosine(tea, cats)
    again = await embed(make, "two cats", "green tea")
    assert cosine(again[0], cats) == pytest.approx(1.0, abs=0.01)
    assert cosine(again[1], tea) == pytest.approx(1.0, abs=0.01)


@pytest.mark.parametrize("make", WORKING)
async def test_no_text_and_empty_texts_are_no_trouble(
    make: Callable[[], Embedder],
) -> None:
    assert await embed(make) == ()
    assert len(await embed(make, "", " ", "\n", "x" * 50_000, "\U0001f600")) == 5


@pytest.mark.parametrize("make", WORKING)
async def test_its_space_is_named_and_stays_the_same(
    make: Callable[[], Embedder],
) -> None:
    first, second = make(), make()
    assert first.space == second.space != ""
    await first.aclose()
    await second.aclose()


@pytest.mark.parametrize("make", WORKING)
async def test_it_can_be_cancelled(make: Callable[[], Embedder]) -> None:
    with trio.CancelScope() as scope:
        scope.cancel()
        await embed(make, "green tea")
    assert scope.cancelled_caught


@pytest.mark.parametrize("make", BUSY)
async def test_what_may_pass_is_busy(make: Callable[[], Embedder]) -> None:
    with pytest.raises(ModelBusyError):
        await embed(make, "green tea", "two cats")


@pytest.mark.parametrize("make", REFUSED)
async def test_what_will_not_pass_is_refused_and_shows_no_key(
    make: Callable[[], Embedder],
) -> None:
    with pytest.raises(ModelRefusedError) as caught:
        await embed(make, "green tea")
    assert KEY not in str(caught.value)


@pytest.mark.parametrize(
    ("config", "path"), [(OPENAI, "/v1/embeddings"), (OLLAMA, "/api/embed")]
)
async def test_the_endpoint_is_sent_the_texts_and_the_settings(
    config: Config, path: str
) -> None:
    seen: list[httpx.Request] = []
    await embed(lambda: endpoint(config, seen=seen), "tea " * 100, "")
    (request,) = seen
    asked = msgspec.json.decode(await request.aread(), type=Asked)
    assert request.url.path == path
    assert request.headers["authorization"] == f"Bearer {KEY}"
    assert asked.model == config.model
    assert [len(text) for text in asked.input] == [100, 1]
    assert asked.dimensions == config.dimensions


async def test_a_slow_endpoint_is_busy_in_time(autojump_clock: MockClock) -> None:
    del autojump_clock

    async def respond(_: httpx.Request) -> httpx.Response:
        await trio.sleep_forever()
        raise AssertionError

    transport = httpx.MockTransport(respond)
    slow = HttpEmbedder(OPENAI, wall_clock=lambda: 0.0, transport=transport)
    began = trio.current_time()
    with pytest.raises(ModelBusyError, match="30 s"):
        await embed(lambda: slow, "tea")
    assert trio.current_time() - began < 31


@pytest.mark.parametrize("bad", ["ftp://x", "nonsense", "http://"])
def test_an_address_that_is_none_is_told(bad: str) -> None:
    with pytest.raises(SettingsError):
        HttpEmbedder(OpenAIEmbedderConfig(base_url=bad), wall_clock=lambda: 0.0)


async def test_the_embedded_one_is_the_same_on_every_machine() -> None:
    """Vectors that are stored are compared with those of later releases."""
    (vector,) = await HashingEmbedder(16).embed(["Café con leche"])
    assert vector == pack(list(memoryview(vector).cast("b")))
    assert vector.hex() == "d6d600006a000000007f40002a000000"
