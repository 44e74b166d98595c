"""Recordings become words and words become sound, over endpoints like OpenAI's.

Made from `[media.transcriber]` and `[media.speaker]`. Servers for home use speak these
too: faster-whisper-server, whisper.cpp and LocalAI for `audio/transcriptions`,
Kokoro-FastAPI, openedai-speech and LocalAI for `audio/speech`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar, Generic, TypeVar

import httpx
import msgspec

from actors.ports import Speaker, Transcriber
from connectors.config.tools import SpeakerConfig, TranscriberConfig
from connectors.models.http.client import HEADERS, SingleAnswerParts, answer
from connectors.models.http.connections import likely_base
from connectors.models.provider_errors import ErrorContext

ENDINGS = {
    "audio/aac": "aac",
    "audio/flac": "flac",
    "audio/m4a": "m4a",
    "audio/mp4": "m4a",
    "audio/mpeg": "mp3",
    "audio/ogg": "ogg",
    "audio/wav": "wav",
    "audio/webm": "webm",
    "audio/x-wav": "wav",
}
"""The endpoint tells formats by the file's name."""

MEDIA_TYPES = {
    "mp3": "audio/mpeg",
    "opus": "audio/ogg",
    "aac": "audio/aac",
    "flac": "audio/flac",
    "wav": "audio/wav",
}

MOST_WORDS = 4 * 1024 * 1024
"""Bytes of a transcript; a day of speech is one."""

MOST_SOUND = 32 * 1024 * 1024
"""Bytes of a recording; an hour of MP3 at 64 kbit/s is 28."""

C = TypeVar("C", TranscriberConfig, SpeakerConfig)


class Transcript(msgspec.Struct, frozen=True):
    """The answer of `audio/transcriptions`."""

    text: str


class AudioEndpoint(Generic[C]):
    """One endpoint of a provider, and the connections to it.

    Args:
        wall_clock: gives Unix seconds, for a `Retry-After` that is a date.
        transport: what carries the requests; None is the network.
    """

    path: ClassVar[str]
    """Follows `base_url`."""

    most: ClassVar[int]
    """Bytes of an answer."""

    def __init__(
        self,
        config: C,
        *,
        wall_clock: Callable[[], float],
        transport: httpx.AsyncBaseTransport | None = None,
    ) -> None:
        self._config: C = config
        key = config.api_key.reveal().strip() if config.api_key else ""
        place = config.api_key.place if config.api_key else ""
        self._url = config.base_url.rstrip("/") + self.path
        name = f"{httpx.URL(self._url).host} ({config.model})"
        self._provider = ErrorContext(name, key, place, likely_base(config))
        self._parts = SingleAnswerParts(
            self._provider, self.most, config.timeout, wall_clock
        )
        self._client = httpx.AsyncClient(
            transport=transport,
            headers=HEADERS | ({"Authorization": f"Bearer {key}"} if key else {}),
            timeout=httpx.Timeout(config.timeout, connect=10.0),
            trust_env=False,
        )

    async def aclose(self) -> None:
        """Close the connections."""
        await self._client.aclose()


class OpenAITranscriber(AudioEndpoint[TranscriberConfig]):
    """Writes down recordings."""

    path = "/audio/transcriptions"
    most = MOST_WORDS

    async def transcribe(self, recording: bytes, media_type: str) -> str:
        """Give the words of one recording."""
        name = f"recording.{ENDINGS.get(media_type, 'ogg')}"
        fields = {"model": self._config.model, "response_format": "json"}
        if self._config.language:
            fields["language"] = self._config.language
        files = {"file": (name, recording, media_type)}
        request = self._client.build_request(
            "POST", self._url, data=fields, files=files
        )
        body = await answer(self._client, request, self._parts)
        try:
            return msgspec.json.decode(body, type=Transcript).text
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            raise self._provider.broken("its answer is no transcript") from error


class OpenAISpeaker(AudioEndpoint[SpeakerConfig]):
    """Speaks texts."""

    path = "/audio/speech"
    most = MOST_SOUND

    @property
    def media_type(self) -> str:
        """What `speak` gives."""
        return MEDIA_TYPES[self._config.format]

    @property
    def max_chars(self) -> int:
        """Longest text that is spoken."""
        return self._config.max_chars

    async def speak(self, text: str, voice: str = "") -> bytes:
        """Give a recording of one text."""
        asked = {
            "model": self._config.model,
            "input": text,
            "voice": voice or self._config.voice,
            "response_format": self._config.format,
        }
        request = self._client.build_request("POST", self._url, json=asked)
        body = await answer(self._client, request, self._parts)
        if not body or body[:1] == b"{":
            raise self._provider.broken("its answer is no recording")
        return body


def make_transcriber(
    config: TranscriberConfig, wall_clock: Callable[[], float]
) -> Transcriber:
    """Make the transcriber that the settings describe."""
    return OpenAITranscriber(config, wall_clock=wall_clock)


def make_speaker(config: SpeakerConfig, wall_clock: Callable[[], float]) -> Speaker:
    """Make the speaker that the settings describe."""
    return OpenAISpeaker(config, wall_clock=wall_clock)
