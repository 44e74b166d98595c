"""The settings of a model: one Struct for each wire format that is spoken.

What they share stands once, in `HttpModelConfig`. Only shapes, bounds and defaults;
`config.py` puts them into the whole file.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

from msgspec import Meta, Struct

from actors.config import Count, Seconds
from runtime.secret import Secret

Price = Annotated[float, Meta(ge=0)]
Connections = Annotated[int, Meta(ge=1, le=10_000)]


class ScriptedModelConfig(
    Struct, frozen=True, forbid_unknown_fields=True, tag_field="kind", tag="scripted"
):
    """The embedded model: answers by rules, without a key or a network."""

    script: Path
    """Rules file, relative to the settings file."""


class HttpModelConfig(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """One account with a provider that is asked over HTTP."""

    model: str
    """The provider's name of the model."""

    base_url: str
    """Address that all requests begin with."""

    api_key: Secret | None = None
    """Leave it out for a server that asks for none."""

    stream: bool = True
    """Whether answers are read word by word, as they are written, or in one piece."""

    takes_images: bool = True
    """Whether the model can see; a picture is named to one that cannot."""

    takes_tools: bool = True
    """Whether the model can call tools; they are kept from one that cannot."""

    connect_timeout: Seconds = 10.0
    """Seconds until the connection stands, encryption included."""

    first_byte_timeout: Seconds = 60.0
    """Seconds from asking to the first byte of the answer, connecting included."""

    idle_timeout: Seconds = 60.0
    """Seconds between two pieces of a streamed answer."""

    total_timeout: Seconds = 280.0
    """Seconds for the whole call; below `limits.turn_timeout`, so that the person
    hears which part was slow."""

    max_connections: Connections = 128
    """Calls at once; more wait up to `connect_timeout`."""

    input_price: Price = 0.0
    """US dollars for a million tokens read, for the ledger."""

    output_price: Price = 0.0
    """US dollars for a million tokens written, for the ledger."""


class OpenAIModelConfig(HttpModelConfig, frozen=True, tag_field="kind", tag="openai"):
    """Any server that speaks OpenAI's Chat Completions."""

    base_url: str = "https://api.openai.com/v1"
    """Address up to and without `/chat/completions`."""

    max_tokens_name: Literal["max_tokens", "max_completion_tokens"] = "max_tokens"
    """How the provider calls the bound on an answer's tokens."""


class AnthropicModelConfig(
    HttpModelConfig, frozen=True, tag_field="kind", tag="anthropic"
):
    """Anthropic's Messages, or any server that speaks it."""

    base_url: str = "https://api.anthropic.com/v1"
    """Address up to and without `/messages`."""

    max_tokens: Count = 8_192
    """Most tokens of an answer where the agent says nothing: the API wants a number."""


class GoogleModelConfig(HttpModelConfig, frozen=True, tag_field="kind", tag="google"):
    """Google's generateContent."""

    base_url: str = "https://generativelanguage.googleapis.com/v1beta"
    """Address up to and without `/models/`."""


class OllamaModelConfig(HttpModelConfig, frozen=True, tag_field="kind", tag="ollama"):
    """An Ollama server."""

    base_url: str = "http://127.0.0.1:11434"
    """Address up to and without `/api/chat`."""

    takes_images: bool = False
    """Whether the model can see; most that run at home cannot."""

    context_tokens: Count | None = None
    """Tokens the model reads at most; unset leaves it to the server, which drops what
    is too long without a word."""


ModelConfig = (
    ScriptedModelConfig
    | OpenAIModelConfig
    | AnthropicModelConfig
    | GoogleModelConfig
    | OllamaModelConfig
)
