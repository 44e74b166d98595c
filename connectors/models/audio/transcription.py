"""Recordings become words, at an endpoint like OpenAI's `audio/transcriptions`.

Whisper servers for home use (faster-whisper-server, whisper.cpp, LocalAI) speak it too.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import httpx
import msgspec

from connectors.models.http.single_answer import HEADERS, SingleAnswerParts, answer
from connectors.models.provider_errors import ErrorContext

if TYPE_CHECKING:
    from collections.abc import Callable

    from actors.ports import Transcriber
    from connectors.config.tools import TranscriberConfig

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

MOST_ANSWER = 4 * 1024 * 1024
"""Bytes; a day of speech is one."""


class Transcript(msgspec.Struct, frozen=True):
    """The answer."""

    text: str


class OpenAITranscriber:
    """Writes down recordings.

    Args:
        config: where, and by which model.
        wall_clock: gives Unix seconds, for a `Retry-After` that is a date.
        transport: what carries the requests; None is the network.
    """

    def __init__(
        self,
        config: TranscriberConfig,
        *,
        wall_clock: Callable[[], float],
        transport: httpx.AsyncBaseTransport | None = None,
    ) -> None:
        self._config = config
        self._wall_clock = wall_clock
        key = config.api_key.reveal().strip() if config.api_key else ""
        self._url = config.base_url.rstrip("/") + "/audio/transcriptions"
        self._provider = ErrorContext(
            f"{httpx.URL(self._url).host} ({config.model})", key
        )
        self._client = httpx.AsyncClient(
            transport=transport,
            headers=HEADERS | ({"Authorization": f"Bearer {key}"} if key else {}),
            timeout=httpx.Timeout(config.timeout, connect=10.0),
            trust_env=False,
        )

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
        asking = SingleAnswerParts(
            self._provider, MOST_ANSWER, self._config.timeout, self._wall_clock
        )
        body = await answer(self._client, request, asking)
        try:
            return msgspec.json.decode(body, type=Transcript).text
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            raise self._provider.broken("its answer is no transcript") from error

    async def aclose(self) -> None:
        """Close the connections."""
        await self._client.aclose()


def make_transcriber(
    config: TranscriberConfig, wall_clock: Callable[[], float]
) -> Transcriber:
    """Make the transcriber that the settings describe."""
    return OpenAITranscriber(config, wall_clock=wall_clock)
