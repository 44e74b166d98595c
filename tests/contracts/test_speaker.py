"""Proves that every speaker keeps what the port `Speaker` promises."""

from __future__ import annotations

import json
from collections.abc import Callable

import httpx
import pytest
import trio

from actors.errors import ModelBusyError, ModelRefusedError
from actors.ports import Speaker
from connectors.config.tools import SpeakerConfig
from connectors.models.audio import OpenAISpeaker
from runtime.secret import Secret
from tests.fakes.media import FakeSpeaker

KEY = "sk-speaker-key-of-ours"
MP3 = b"ID3\x04 and so on"
Answer = httpx.Response | Exception


def endpoint(answer: Answer, seen: list[httpx.Request] | None = None) -> Speaker:
    """Make the real one, with an endpoint that answers so."""

    def respond(request: httpx.Request) -> httpx.Response:
        if seen is not None:
            seen.append(request)
        if isinstance(answer, Exception):
            raise answer
        return answer

    config = SpeakerConfig(api_key=Secret(KEY), voice="nova", format="opus")
    transport = httpx.MockTransport(respond)
    return OpenAISpeaker(config, wall_clock=lambda: 0.0, transport=transport)


def status(code: int, message: str = "no", **headers: str) -> httpx.Response:
    return httpx.Response(code, json={"error": {"message": message}}, headers=headers)


SPEAKING: list[Callable[[], Speaker]] = [
    lambda: endpoint(httpx.Response(200, content=MP3)),
    lambda: FakeSpeaker(MP3),
]
BUSY: list[Callable[[], Speaker]] = [
    lambda: endpoint(status(429, **{"Retry-After": "7"})),
    lambda: endpoint(status(503)),
    lambda: endpoint(httpx.ReadTimeout("late")),
    lambda: endpoint(httpx.ConnectError("gone")),
    lambda: endpoint(httpx.Response(200, content=b"")),
    lambda: endpoint(httpx.Response(200, json={"texts": 1})),
    lambda: endpoint(httpx.Response(200, content=b"x" * (33 * 1024 * 1024))),
    lambda: FakeSpeaker(ModelBusyError("busy")),
]
REFUSED: list[Callable[[], Speaker]] = [
    lambda: endpoint(status(401, f"the key {KEY} is wrong")),
    lambda: endpoint(status(400, "unknown voice")),
    lambda: FakeSpeaker(ModelRefusedError("refused")),
]


async def speak(make: Callable[[], Speaker], voice: str = "") -> bytes:
    speaker = make()
    try:
        return await speaker.speak("good morning", voice)
    finally:
        with trio.CancelScope(shield=True):
            await speaker.aclose()


@pytest.mark.parametrize("make", SPEAKING)
async def test_a_recording_of_the_text_is_given(make: Callable[[], Speaker]) -> None:
    assert await speak(make) == MP3
    speaker = make()
    assert speaker.media_type.startswith("audio/")
    assert speaker.max_chars > 0
    await speaker.aclose()


@pytest.mark.parametrize("make", BUSY)
async def test_what_may_pass_is_busy(make: Callable[[], Speaker]) -> None:
    with pytest.raises(ModelBusyError):
        await speak(make)


@pytest.mark.parametrize("make", REFUSED)
async def test_what_will_not_pass_is_refused_and_shows_no_key(
    make: Callable[[], Speaker],
) -> None:
    with pytest.raises(ModelRefusedError) as caught:
        await speak(make)
    assert KEY not in str(caught.value)


@pytest.mark.parametrize(("voice", "told"), [("", "nova"), ("echo", "echo")])
async def test_the_endpoint_is_told_text_voice_and_format(
    voice: str, told: str
) -> None:
    seen: list[httpx.Request] = []
    answer = httpx.Response(200, content=MP3)
    await speak(lambda: endpoint(answer, seen), voice)
    (request,) = seen
    assert request.url.path == "/v1/audio/speech"
    assert request.headers["authorization"] == f"Bearer {KEY}"
    assert json.loads(request.content) == {
        "model": "gpt-4o-mini-tts",
        "input": "good morning",
        "voice": told,
        "response_format": "opus",
    }
