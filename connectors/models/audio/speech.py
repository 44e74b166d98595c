"""Texts become speech, at an endpoint like OpenAI's `audio/speech`.

Servers for home use (Kokoro-FastAPI, openedai-speech, LocalAI) speak it too.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import httpx

from connectors.models.http.single_answer import HEADERS, SingleAnswerParts, answer
from connectors.models.provider_errors import ErrorContext

if TYPE_CHECKING:
    from collections.abc import Callable

    from actors.ports import Speaker
    from connectors.config.tools import SpeakerConfig

MEDIA_TYPES = {
    "mp3": "audio/mpeg",
    "opus": "audio/ogg",
    "aac": "audio/aac",
    "flac": "audio/flac",
    "wav": "audio/wav",
}

MOST_ANSWER = 32 * 1024 * 1024
"""Bytes; an hour of MP3 at 64 kbit/s is 28."""


class OpenAISpeaker:
    """Speaks texts.

    Args:
        config: where, by which model and with whose voice.
        wall_clock: gives Unix seconds, for a `Retry-After` that is a date.
        transport: what carries the requests; None is the network.
    """

    def __init__(
        self,
        config: SpeakerConfig,
        *,
        wall_clock: Callable[[], float],
        transport: httpx.AsyncBaseTransport | None = None,
    ) -> None:
        self._config = config
        self._wall_clock = wall_clock
        key = config.api_key.reveal().strip() if config.api_key else ""
        self._url = config.base_url.rstrip("/") + "/audio/speech"
        self._provider = ErrorContext(
            f"{httpx.URL(self._url).host} ({config.model})", key
        )
        self._client = httpx.AsyncClient(
            transport=transport,
            headers=HEADERS | ({"Authorization": f"Bearer {key}"} if key else {}),
            timeout=httpx.Timeout(config.timeout, connect=10.0),
            trust_env=False,
        )

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
        config = self._config
        asked = {
            "model": config.model,
            "input": text,
            "voice": voice or config.voice,
            "response_format": config.format,
        }
        request = self._client.build_request("POST", self._url, json=asked)
        asking = SingleAnswerParts(
            self._provider, MOST_ANSWER, config.timeout, self._wall_clock
        )
        body = await answer(self._client, request, asking)
        if not body or body[:1] == b"{":
            raise self._provider.broken("its answer is no recording")
        return body

    async def aclose(self) -> None:
        """Close the connections."""
        await self._client.aclose()


def make_speaker(config: SpeakerConfig, wall_clock: Callable[[], float]) -> Speaker:
    """Make the speaker that the settings describe."""
    return OpenAISpeaker(config, wall_clock=wall_clock)
