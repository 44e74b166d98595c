"""Any provider that speaks OpenAI's Chat Completions, or its Responses API.

What is sent is in `request.py`, what comes back in `stream.py`; for the Responses API
in `responses_request.py` and `responses_stream.py`. What went wrong is in `errors.py`;
the talking is `connectors/models/http/client.py`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from connectors.config.models import OpenAIModelConfig, OpenAIResponsesModelConfig
from connectors.models.format import Question
from connectors.models.http.client import HttpModel
from connectors.models.http.reading import SseFraming
from connectors.models.names import ToolNames
from connectors.models.openai import errors as openai_errors
from connectors.models.openai import responses_request, responses_stream
from connectors.models.openai.request import encode_request
from connectors.models.openai.stream import Assembly

if TYPE_CHECKING:
    from collections.abc import Callable

    import httpx

    from actors.messages.inbound import ModelRequest
    from connectors.models.provider_errors import ErrorContext, Said


class OpenAIManners:
    """What both formats have in common; see `format.Format`."""

    stream_type = "text/event-stream"
    request_id_header = "x-request-id"

    def headers(self, key: str) -> dict[str, str]:
        """Send the key as a bearer token."""
        return {"Authorization": f"Bearer {key}"} if key else {}

    def framing(self) -> SseFraming:
        """Cut a stream into server-sent events."""
        return SseFraming()

    def read_error(self, body: bytes) -> Said:
        """Find the error in a response's body."""
        return openai_errors.read_error(body)


class OpenAIFormat(OpenAIManners):
    """OpenAI's Chat Completions."""

    takes_names = True

    def __init__(self, config: OpenAIModelConfig) -> None:
        self._config = config

    def ask(self, request: ModelRequest, provider: ErrorContext) -> Question:
        """Write a request."""
        config = self._config
        names = ToolNames(request.tools)
        body = encode_request(
            request, names, config.max_tokens_name, stream=config.stream
        )
        return Question("/chat/completions", body, Assembly(request, names, provider))


class OpenAIResponsesFormat(OpenAIManners):
    """OpenAI's Responses API."""

    takes_names = False

    def __init__(self, config: OpenAIResponsesModelConfig) -> None:
        self._config = config
        self._thoughts = responses_request.Thoughts()

    def ask(self, request: ModelRequest, provider: ErrorContext) -> Question:
        """Write a request."""
        names, thoughts = ToolNames(request.tools), self._thoughts
        body = responses_request.encode_request(
            request, names, thoughts, stream=self._config.stream
        )
        assembly = responses_stream.Assembly(request, names, provider, thoughts)
        return Question("/responses", body, assembly)


def make_model(
    config: OpenAIModelConfig | OpenAIResponsesModelConfig,
    wall_clock: Callable[[], float],
    transport: httpx.AsyncBaseTransport | None = None,
) -> HttpModel:
    """Make the model that an account's settings describe; see `HttpModel`."""
    form = (
        OpenAIResponsesFormat(config)
        if isinstance(config, OpenAIResponsesModelConfig)
        else OpenAIFormat(config)
    )
    return HttpModel(config, form, wall_clock=wall_clock, transport=transport)
