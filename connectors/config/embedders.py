"""The settings of memory at the edges: who makes vectors, where daily logs lie.

Only shapes, bounds and defaults; `app.py` puts them together.
"""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta, Struct

from actors.config.memory import MemoryConfig
from actors.config.values import Count, Seconds
from runtime.config.shape import GivenSecret, WrittenPath

Dimensions = Annotated[int, Meta(ge=16, le=8_192)]


class HttpEmbedderConfig(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """An embedder that is asked over HTTP."""

    model: str
    """The provider's name of the model."""

    base_url: str
    """Address that all requests begin with."""

    api_key: GivenSecret | None = None
    """Sent as a bearer token; leave it out for a server that asks for none."""

    dimensions: Dimensions | None = None
    """Asked of models that can make shorter vectors; unset: the model's own."""

    max_text_chars: Count = 8_000
    """Most characters of a text that are sent; of a longer one the beginning."""

    timeout: Seconds = 30.0
    """Seconds for one request; a question waits half of `memory.recall_timeout`."""


class OpenAIEmbedderConfig(
    HttpEmbedderConfig, frozen=True, kw_only=True, tag_field="kind", tag="openai"
):
    """OpenAI's embeddings, or any server that speaks them."""

    model: str = "text-embedding-3-small"
    """The provider's name of the model."""

    base_url: str = "https://api.openai.com/v1"
    """Address up to and without `/embeddings`."""


class OllamaEmbedderConfig(
    HttpEmbedderConfig, frozen=True, kw_only=True, tag_field="kind", tag="ollama"
):
    """An Ollama server."""

    model: str = "nomic-embed-text"
    """The server's name of the model."""

    base_url: str = "http://127.0.0.1:11434"
    """Address up to and without `/api/embed`."""


EmbedderConfig = OpenAIEmbedderConfig | OllamaEmbedderConfig

HASHING = "hashing"
OFF = "off"


class MemorySettings(MemoryConfig, frozen=True, kw_only=True):
    """What agents remember, how it is found, where it is written down."""

    folder: WrittenPath = "var/memory"
    """The folder of the daily logs, `<folder>/<agent>/memory/YYYY-MM-DD.md`; no tool of
    an agent reaches it."""

    embedder: str = HASHING
    """Who makes vectors of what is remembered: `hashing` (embedded; by words and their
    parts), `off`, or one of `[embedders.<name>]`."""
