"""Anthropic's Messages, or any server that speaks it.

What is sent is in `anthropic_request.py`, what comes back in `anthropic_stream.py`,
what went wrong in `anthropic_errors.py`; the talking is `http_model.py`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from connectors.models import anthropic_errors
from connectors.models.anthropic_request import encode_request
from connectors.models.anthropic_stream import Assembly
from connectors.models.http_model import HttpModel
from connectors.models.reading import SseFraming
from connectors.models.tool_names import ToolNames
from connectors.models.wire import Question

if TYPE_CHECKING:
    from collections.abc import Callable

    import httpx

    from actors.messages import ModelRequest
    from connectors.model_config import AnthropicModelConfig
    from connectors.models.provider import Provider, Said

PATH = "/messages"
VERSION = "2023-06-01"
"""The API's only version to date; it never changes what a version means."""


class AnthropicFormat:
    """Anthropic's Messages; see `wire.Format`.

    Args:
        config: the account.
    """

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

    def ask(self, request: ModelRequest, provider: Provider) -> Question:
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
