"""Anthropic's Messages, or any server that speaks it.

What is sent is in `request.py`, what comes back in `stream.py`,
what went wrong in `errors.py`; the talking is `connectors/models/http/client.py`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from connectors.models.anthropic import errors as anthropic_errors
from connectors.models.anthropic.request import encode_request
from connectors.models.anthropic.stream import Assembly
from connectors.models.format import Question
from connectors.models.http.client import HttpModel
from connectors.models.http.reading import SseFraming
from connectors.models.names import ToolNames

if TYPE_CHECKING:
    from collections.abc import Callable

    import httpx

    from actors.messages.inbound import ModelRequest
    from connectors.config.models import AnthropicModelConfig
    from connectors.models.provider_errors import ErrorContext, Said

PATH = "/messages"
VERSION = "2023-06-01"
"""The API's only version to date; it never changes what a version means."""


class AnthropicFormat:
    """Anthropic's Messages; see `format.Format`."""

    takes_names = False
    stream_type = "text/event-stream"
    request_id_header = "request-id"

    def __init__(self, config: AnthropicModelConfig) -> None:
        self._config = config

    def headers(self, key: str) -> dict[str, str]:
        """Send the API's version, and the key in a header of its own."""
        headers = {"anthropic-version": VERSION}
        return headers | {"x-api-key": key} if key else headers

    def framing(self) -> SseFraming:
        """Cut a stream into server-sent events."""
        return SseFraming()

    def ask(self, request: ModelRequest, provider: ErrorContext) -> Question:
        """Write a request."""
        config = self._config
        names = ToolNames(request.tools)
        body = encode_request(request, names, config.max_tokens, stream=config.stream)
        return Question(PATH, body, Assembly(request, names, provider))

    def read_error(self, body: bytes) -> Said:
        """Find the error in a response's body."""
        return anthropic_errors.read_error(body)


def make_model(
    config: AnthropicModelConfig,
    wall_clock: Callable[[], float],
    transport: httpx.AsyncBaseTransport | None = None,
) -> HttpModel:
    """Make the model that an account's settings describe; see `HttpModel`."""
    form = AnthropicFormat(config)
    return HttpModel(config, form, wall_clock=wall_clock, transport=transport)
