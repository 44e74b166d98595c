"""Proves that no slow, stuck or cut connection passes for an answer."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial

import httpx
import pytest
import trio
import trio.testing

from actors.errors import ModelBusyError
from actors.messages.inbound import ModelAnswer, ModelRequest, ToolSpec, TranscriptLine
from connectors.config.models import OpenAIModelConfig
from connectors.models.openai.model import make_model
from tests.fakes.models.openai_server import END, call_delta, delta, spoken, usage
from tests.fakes.models.server import FakeProvider, Step, chunked, open_raw_server

CLOCK = ToolSpec("clock", "Tell the time.", b"{}")
REQUEST = ModelRequest(
    model="m",
    agent="anna",
    correlation_id="c",
    system="",
    lines=(TranscriptLine("user", "hello"),),
    tools=(CLOCK,),
)
RECORDED = b"".join(
    [
        b": hello\n\n",
        delta(content="Жёлтый 🐈"),
        call_delta(0, "a", "clock", '{"x":'),
        call_delta(0, "", "", "1}"),
        delta("tool_calls"),
        usage(7, 5),
        END,
    ]
)
KEEP_ALIVE = b": still thinking\n\n"
THINKING: list[Step] = [KEEP_ALIVE, 4.0] * 99


def deaf(_: str) -> None:
    """Hear nothing."""


async def ask(
    base_url: str = "http://provider/v1",
    transport: httpx.AsyncBaseTransport | None = None,
    speak: Callable[[str], None] = deaf,
) -> ModelAnswer:
    config = OpenAIModelConfig(
        model="m",
        base_url=base_url,
        first_byte_timeout=20,
        idle_timeout=5,
        total_timeout=60,
    )
    model = make_model(config, lambda: 0.0, transport)
    try:
        return await model.answer(REQUEST, speak)
    finally:
        await model.aclose()


async def hang(_: httpx.Request) -> list[Step]:
    await trio.sleep_forever()
    return []


@pytest.mark.parametrize(
    ("provider", "seconds", "text"),
    [
        (FakeProvider(hang), 20, "no answer within 20 s"),
        (FakeProvider.streaming(math.inf), 20, "no answer within 20 s"),
        (FakeProvider.streaming(19.0, delta(content="x"), 6.0), 24, "silent for 5 s"),
        (FakeProvider.streaming(*THINKING), 60, "not done after 60 s"),
    ],
)
async def test_every_wait_has_its_deadline(
    provider: FakeProvider,
    seconds: float,
    text: str,
    autojump_clock: trio.testing.MockClock,
) -> None:
    del autojump_clock
    start = trio.current_time()
    with pytest.raises(ModelBusyError, match=text):
        await ask(transport=provider.transport)
    assert trio.current_time() - start == seconds
    assert provider.open_responses == 0


async def test_a_slow_answer_within_the_deadlines_is_whole(
    autojump_clock: trio.testing.MockClock,
) -> None:
    del autojump_clock
    steps: list[Step] = [19.0, KEEP_ALIVE]
    for step in spoken("slow, but sure"):
        steps += [4.0, step]
    provider = FakeProvider.streaming(*steps)
    assert (await ask(transport=provider.transport)).text == "slow, but sure"


@pytest.mark.parametrize("last", [math.inf, httpx.RemoteProtocolError("cut")])
async def test_a_whole_answer_does_not_depend_on_what_follows(
    last: Step, autojump_clock: trio.testing.MockClock
) -> None:
    del autojump_clock
    start = trio.current_time()
    provider = FakeProvider.streaming(*spoken("done"), last)
    assert (await ask(transport=provider.transport)).text == "done"
    assert trio.current_time() - start <= 1
    assert provider.open_responses == 0


@pytest.mark.parametrize(
    "error",
    [httpx.ConnectError("refused"), httpx.ConnectTimeout(""), httpx.PoolTimeout("")],
)
async def test_a_connection_that_fails_may_be_tried_again(error: Exception) -> None:
    async def fail(_: httpx.Request) -> list[Step]:
        await trio.lowlevel.checkpoint()
        raise error

    with pytest.raises(ModelBusyError, match="connection failed") as caught:
        await ask(transport=FakeProvider(fail).transport)
    assert caught.value.__cause__ is error


async def test_a_refused_response_is_closed_although_nobody_waits_any_more() -> None:
    scope = trio.CancelScope()

    async def leave(_: httpx.Request) -> list[Step]:
        await trio.lowlevel.checkpoint()
        scope.cancel()
        return []

    provider = FakeProvider(leave, media_type="text/html")
    with scope:
        await ask(transport=provider.transport)
    assert scope.cancelled_caught
    assert provider.open_responses == 0


# From here on over TCP, on the machine's own clock.


@pytest.mark.parametrize(
    "response",
    [
        b"",
        b"SSH-2.0-OpenSSH_9.2\r\n",
        b"HTTP/1.1 200\r\nContent-Length: 9\r\nContent-Type: text/event-stream\r\n\r\n",
        b"HTTP/1.1 200 OK\r\n" + b"X: y\r\n" * 100_000,
        b"\x16\x03\x01\x00\xa5",
    ],
)
async def test_what_is_no_http_is_an_error(response: bytes) -> None:
    async with open_raw_server(lambda: response, keep_open=False) as server:
        with pytest.raises(ModelBusyError, match="connection failed"):
            await ask(server.base_url)


async def test_nobody_listening_is_an_error() -> None:
    async with open_raw_server(lambda: b"", keep_open=False) as server:
        base_url = server.base_url
    text = r"127.0.0.1 \(m\): connection failed.*all attempts to connect"
    with pytest.raises(ModelBusyError, match=text):
        await ask(base_url)


@pytest.mark.parametrize(
    "received", [b"", chunked(delta(content="a"))[:-5], b"HTTP/1.1 200 OK\r\n"]
)
async def test_cancelling_closes_the_connection(received: bytes) -> None:
    async with open_raw_server(lambda: received, keep_open=True) as server:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(partial(ask, server.base_url))
            while not server.requests:
                await trio.lowlevel.checkpoint()
            nursery.cancel_scope.cancel()
        with trio.fail_after(5):
            await server.client_left.wait()


async def test_a_broken_stream_closes_the_connection() -> None:
    response = chunked(b"data: oops\n\n")[:-5]
    async with open_raw_server(lambda: response, keep_open=True) as server:
        with pytest.raises(ModelBusyError, match="not as the API says"):
            await ask(server.base_url)
        with trio.fail_after(5):
            await server.client_left.wait()


async def test_answers_one_after_the_other_share_a_connection() -> None:
    async with open_raw_server(lambda: chunked(RECORDED), keep_open=True) as server:
        config = OpenAIModelConfig(model="m", base_url=server.base_url)
        model = make_model(config, lambda: 0.0)
        for _ in range(5):
            await model.answer(REQUEST, deaf)
        await model.aclose()
        assert (server.connections, server.requests) == (1, 5)
