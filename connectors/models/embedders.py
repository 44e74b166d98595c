"""Embedders: vectors of texts, for memory that is searched by meaning.

The memory asks through the port `Embedder`. Two are behind HTTP: OpenAI's format, which
many servers speak, and Ollama's. The embedded one places texts by words and their
parts, without a key or a network, deterministic and the same on every machine. Each
word and each run of three letters of a word adds to one dimension, chosen by a checksum
("the hashing trick", Weinberger and others 2009). So *kitchens* lies near *kitchen*,
and misspelt words near the right ones; what only means the same lies nowhere near: for
that, ask a model.
"""

from __future__ import annotations

import math
import zlib
from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING

import httpx
import msgspec
import trio

from actors.rules.text.similarity import words_of
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

if TYPE_CHECKING:
    from collections.abc import Callable

    from actors.ports import Embedder


PART = 3
"""Letters of the parts of a word."""

OF_PARTS = 0.4
"""What one part counts; a whole word counts 1."""

AT_ONCE = 8
"""Texts after which others get their turn: one takes up to a millisecond."""


class HashingEmbedder:
    """Embeds by words.

    Args:
        dimensions: of its vectors; more keep more words apart.
    """

    def __init__(self, dimensions: int = 256) -> None:
        self._dimensions = dimensions
        self._space = f"hashing-1/{dimensions}"

    @property
    def space(self) -> str:
        """Name what its vectors can be compared with."""
        return self._space

    async def embed(self, texts: Sequence[str]) -> tuple[bytes, ...]:
        """Give one vector for each text; one without words has no direction."""
        vectors: list[bytes] = []
        for number, text in enumerate(texts):
            if number % AT_ONCE == 0:
                await trio.lowlevel.checkpoint()
            vectors.append(self._place(text))
        return tuple(vectors)

    async def aclose(self) -> None:
        """Do nothing: there is nothing to close."""

    def _place(self, text: str) -> bytes:
        place = [0.0] * self._dimensions
        for feature, often in features(text).items():
            # Source: the checksum's lowest bit is the sign, so that words which share
            # a dimension by chance rather cancel out than add up.
            number = zlib.crc32(feature.encode())
            weight = 1.0 if feature.startswith(" ") else OF_PARTS
            sign = 1.0 if number & 1 else -1.0
            place[(number >> 1) % self._dimensions] += sign * weight * math.log1p(often)
        return pack(place)


def features(text: str) -> Counter[str]:
    """Count the words of a text, a blank before each, and the parts of its words."""
    found: Counter[str] = Counter()
    for word in words_of(text):
        found[f" {word}"] += 1
        whole = f"^{word}$"
        found.update(whole[at : at + PART] for at in range(len(whole) - PART + 1))
    return found


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
        config: where, and by which model.
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
