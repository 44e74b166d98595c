"""Proves that every transcriber keeps what the port `Transcriber` promises."""

from __future__ import annotations

from collections.abc import Callable

import httpx
import pytest
import trio

from actors.errors import ModelBusyError, ModelRefusedError
from actors.ports import Transcriber
from connectors.config.tools import TranscriberConfig
from connectors.models.audio import OpenAITranscriber
from runtime.secret import Secret
from tests.fakes.media import OGG, FakeTranscriber

KEY = "sk-transcriber-key"
Answer = httpx.Response | Exception


def endpoint(answer: Answer, seen: list[httpx.Request] | None = None) -> Transcriber:
    """Make the real one, with an endpoint that answers so."""

    def respond(request: httpx.Request) -> httpx.Response:
        if seen is not None:
            seen.append(request)
        if isinstance(answer, Exception):
            raise answer
        return answer

    config = TranscriberConfig(api_key=Secret(KEY), language="de")
    transport = httpx.MockTransport(respond)
    return OpenAITranscriber(config, wall_clock=lambda: 0.0, transport=transport)


def status(code: int, message: str = "no", **headers: str) -> httpx.Response:
    return httpx.Response(code, json={"error": {"message": message}}, headers=headers)


SPEAKING: list[Callable[[], Transcriber]] = [
    lambda: endpoint(httpx.Response(200, json={"text": "good morning"})),
    lambda: FakeTranscriber("good morning"),
]
BUSY: list[Callable[[], Transcriber]] = [
    lambda: endpoint(status(429, **{"Retry-After": "7"})),
    lambda: endpoint(status(503)),
    lambda: endpoint(httpx.ReadTimeout("late")),
    lambda: endpoint(httpx.ConnectError("gone")),
    lambda: endpoint(httpx.Response(200, content=b"<html>")),
    lambda: endpoint(httpx.Response(200, json={"texts": 1})),
    lambda: endpoint(httpx.Response(200, content=b"x" * (5 * 1024 * 1024))),
    lambda: FakeTranscriber(ModelBusyError("busy")),
]
REFUSED: list[Callable[[], Transcriber]] = [
    lambda: endpoint(status(401, f"the key {KEY} is wrong")),
    lambda: endpoint(status(400, "unknown format")),
    lambda: FakeTranscriber(ModelRefusedError("refused")),
]


async def transcribe(make: Callable[[], Transcriber]) -> str:
    transcriber = make()
    try:
        return await transcriber.transcribe(OGG, "audio/ogg")
    finally:
        with trio.CancelScope(shield=True):
            await transcriber.aclose()


@pytest.mark.parametrize("make", SPEAKING)
async def test_the_words_of_a_recording_are_given(
    make: Callable[[], Transcriber],
) -> None:
    assert await transcribe(make) == "good morning"


@pytest.mark.parametrize("make", BUSY)
async def test_what_may_pass_is_busy(make: Callable[[], Transcriber]) -> None:
    with pytest.raises(ModelBusyError):
        await transcribe(make)


@pytest.mark.parametrize("make", REFUSED)
async def test_what_will_not_pass_is_refused_and_shows_no_key(
    make: Callable[[], Transcriber],
) -> None:
    with pytest.raises(ModelRefusedError) as caught:
        await transcribe(make)
    assert KEY not in str(caught.value)


async def test_the_endpoint_is_sent_the_file_its_type_and_the_settings() -> None:
    seen: list[httpx.Request] = []
    answer = httpx.Response(200, json={"text": "x"})
    await transcribe(lambda: endpoint(answer, seen))
    (request,) = seen
    body = await request.aread()
    assert request.url.path == "/v1/audio/transcriptions"
    assert request.headers["authorization"] == f"Bearer {KEY}"
    assert b'filename="recording.ogg"' in body
    assert b"Content-Type: audio/ogg" in body
    assert b"whisper-1" in body
    assert OGG in body
