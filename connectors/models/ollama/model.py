"""An Ollama server, by its own chat interface.

What is sent is in `request.py`, what comes back in `stream.py`; the
talking is `connectors/models/http/client.py`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from connectors.models.format import Question
from connectors.models.http.client import HttpModel
from connectors.models.http.reading import LineFraming
from connectors.models.names import ToolNames
from connectors.models.ollama.request import encode_request
from connectors.models.ollama.stream import Assembly
from connectors.models.provider_errors import ErrorContext, Said

if TYPE_CHECKING:
    from collections.abc import Callable

    import httpx

    from actors.messages.inbound import ModelRequest
    from connectors.config.models import OllamaModelConfig

PATH = "/api/chat"


class ErrorBody(msgspec.Struct, frozen=True):
    """An error response."""

    error: str | None = None


class OllamaFormat:
    """Ollama's chat; see `format.Format`."""

    takes_names = False
    stream_type = "application/x-ndjson"
    request_id_header = ""

    def __init__(self, config: OllamaModelConfig) -> None:
        self._config = config

    def headers(self, key: str) -> dict[str, str]:
        """Send the key, which only servers behind a gate ask for, as a bearer token."""
        return {"Authorization": f"Bearer {key}"} if key else {}

    def framing(self) -> LineFraming:
        """Cut a stream into lines."""
        return LineFraming()

    def ask(self, request: ModelRequest, provider: ErrorContext) -> Question:
        """Write a request."""
        config = self._config
        names = ToolNames(request.tools)
        body = encode_request(
            request, names, config.context_tokens, stream=config.stream
        )
        return Question(PATH, body, Assembly(request, names, provider))

    def read_error(self, body: bytes) -> Said:
        """Find the error in a response's body: a sentence, without any code."""
        try:
            return Said(msgspec.json.decode(body, type=ErrorBody).error)
        except (ValueError, RecursionError):
            return Said()


def make_model(
    config: OllamaModelConfig,
    wall_clock: Callable[[], float],
    transport: httpx.AsyncBaseTransport | None = None,
) -> HttpModel:
    """Make the model that an account's settings describe; see `HttpModel`."""
    form = OllamaFormat(config)
    return HttpModel(config, form, wall_clock=wall_clock, transport=transport)
