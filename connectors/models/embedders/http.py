"""Embedders behind HTTP: OpenAI's format, which many servers speak, and Ollama's."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import httpx
import msgspec
import trio

from actors.ports import Embedder
from connectors.config.models import HttpEmbedderConfig, OllamaEmbedderConfig
from connectors.models.http.client import HEADERS, SingleAnswerParts, answer
from connectors.models.http.connections import (
    KeptConnections,
    address,
    check_address,
    likely_base,
)
from connectors.models.provider_errors import ErrorContext
from runtime.errors import SettingsError
from runtime.store.facts import MAX_DIMENSIONS
from runtime.store.vectors import pack

AT_ONCE = 8
"""Requests at once; more wait."""

MOST_ANSWER = 64 * 1024 * 1024
"""Bytes; 256 vectors of 8,192 dimensions are some 25 million."""

WRITE_TIMEOUT = 30.0
"""Seconds for sending a request."""


class Place(msgspec.Struct, frozen=True):
    """One vector in OpenAI's answer."""

    embedding: list[float]
    index: int = 0


class OpenAIAnswer(msgspec.Struct, frozen=True):
    """OpenAI's answer."""

    data: list[Place]


class OllamaAnswer(msgspec.Struct, frozen=True):
    """Ollama's answer."""

    embeddings: list[list[float]]


def read_openai(body: bytes) -> list[list[float]]:
    """Give the vectors in the order of the texts."""
    places = msgspec.json.decode(body, type=OpenAIAnswer).data
    return [each.embedding for each in sorted(places, key=lambda each: each.index)]


def read_ollama(body: bytes) -> list[list[float]]:
    """Give the vectors in the order of the texts."""
    return msgspec.json.decode(body, type=OllamaAnswer).embeddings


class HttpEmbedder:
    """Has a provider embed texts.

    Args:
        wall_clock: gives Unix seconds, for a `Retry-After` that is a date.
        transport: what carries the requests; None is the network.

    Raises:
        SettingsError: `base_url` is no HTTP address, or the key cannot be sent.
    """

    def __init__(
        self,
        config: HttpEmbedderConfig,
        *,
        wall_clock: Callable[[], float],
        transport: httpx.AsyncBaseTransport | None = None,
    ) -> None:
        self._config = config
        self._wall_clock = wall_clock
        self._is_ollama = isinstance(config, OllamaEmbedderConfig)
        url = check_address(config.base_url)
        key = config.api_key.reveal().strip() if config.api_key else ""
        place = config.api_key.place if config.api_key else ""
        if not (key.isascii() and key.isprintable()):
            raise SettingsError(
                "api_key holds characters that cannot be sent; copy it again"
            )
        name = f"{url.host} ({config.model})"
        self._provider = ErrorContext(name, key, place, likely_base(config))
        self._url = address(
            config.base_url, "/api/embed" if self._is_ollama else "/embeddings"
        )
        self._client = httpx.AsyncClient(
            transport=transport
            or KeptConnections(
                url,
                most=AT_ONCE,
                connect_timeout=min(config.timeout, 10.0),
                write_timeout=WRITE_TIMEOUT,
            ),
            headers=HEADERS | ({"Authorization": f"Bearer {key}"} if key else {}),
            timeout=httpx.Timeout(None),  # `embed` has one for all of it
            trust_env=False,
        )

    @property
    def space(self) -> str:
        """Name what its vectors can be compared with."""
        config = self._config
        return f"{self._url.host}/{config.model}/{config.dimensions or 'own'}"

    async def embed(self, texts: Sequence[str]) -> tuple[bytes, ...]:
        """Give one vector for each text, in order; see the port."""
        if not texts:
            await trio.lowlevel.checkpoint()
            return ()
        timeout = self._config.timeout
        with trio.move_on_after(timeout):
            return self._read(await self._ask(texts), len(texts))
        raise self._provider.busy(f"not done after {timeout:g} s", "timeout")

    async def aclose(self) -> None:
        """Close the connections."""
        await self._client.aclose()

    async def _ask(self, texts: Sequence[str]) -> bytes:
        config = self._config
        asked: dict[str, object] = {
            "model": config.model,
            # An empty text is refused by some; a blank one has a place nowhere.
            "input": [text[: config.max_text_chars] or " " for text in texts],
        }
        if config.dimensions is not None:
            asked["dimensions"] = config.dimensions
        if self._is_ollama:
            asked["truncate"] = True
        request = self._client.build_request(
            "POST",
            self._url,
            content=msgspec.json.encode(asked),
            headers={"Content-Type": "application/json"},
        )
        asking = SingleAnswerParts(
            self._provider, MOST_ANSWER, config.timeout, self._wall_clock
        )
        return await answer(self._client, request, asking)

    def _read(self, body: bytes, count: int) -> tuple[bytes, ...]:
        try:
            vectors = read_ollama(body) if self._is_ollama else read_openai(body)
            packed = tuple([pack(vector) for vector in vectors])
        except (ValueError, RecursionError) as error:
            raise self._provider.broken("its answer holds no vectors") from error
        if len(packed) != count or not all(
            1 <= len(vector) <= MAX_DIMENSIONS for vector in packed
        ):
            raise self._provider.broken(
                f"its answer holds {len(packed)} vectors for {count} texts, or one of"
                f" more than {MAX_DIMENSIONS} dimensions"
            )
        return packed


def make_embedder(
    config: HttpEmbedderConfig, wall_clock: Callable[[], float]
) -> Embedder:
    """Make the embedder that the settings describe."""
    return HttpEmbedder(config, wall_clock=wall_clock)
