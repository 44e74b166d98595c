"""Any provider that speaks OpenAI's Chat Completions.

What is sent is in `request.py`, what comes back in `stream.py`, what
went wrong in `errors.py`; the talking is `connectors/models/http/client.py`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from connectors.models.format import Question
from connectors.models.http.client import HttpModel
from connectors.models.http.reading import SseFraming
from connectors.models.names import ToolNames
from connectors.models.openai import errors as openai_errors
from connectors.models.openai.request import encode_request
from connectors.models.openai.stream import Assembly

if TYPE_CHECKING:
    from collections.abc import Callable

    import httpx

    from actors.messages.inbound import ModelRequest
    from connectors.config.models import OpenAIModelConfig
    from connectors.models.provider_errors import ErrorContext, Said

PATH = "/chat/completions"


class OpenAIFormat:
    """OpenAI's Chat Completions; see `wire.Format`.

    Args:
        config: the account.
    """

    takes_names = True
    stream_type = "text/event-stream"
    request_id_header = "x-request-id"

    def __init__(self, config: OpenAIModelConfig) -> None:
        self._config = config

    def headers(self, key: str) -> dict[str, str]:
        """Send the key as a bearer token."""
        return {"Authorization": f"Bearer {key}"} if key else {}

    def framing(self) -> SseFraming:
        """Cut a stream into server-sent events."""
        return SseFraming()

    def ask(self, request: ModelRequest, provider: ErrorContext) -> Question:
        """Write a request."""
        config = self._config
        names = ToolNames(request.tools)
        body = encode_request(
            request, names, config.max_tokens_name, stream=config.stream
        )
        return Question(PATH, body, Assembly(request, names, provider))

    def read_error(self, body: bytes) -> Said:
        """Find the error in a response's body."""
        return openai_errors.read_error(body)


def make_model(
    config: OpenAIModelConfig,
    wall_clock: Callable[[], float],
    transport: httpx.AsyncBaseTransport | None = None,
) -> HttpModel:
    """Make the model that an account's settings describe; see `HttpModel`."""
    form = OpenAIFormat(config)
    return HttpModel(config, form, wall_clock=wall_clock, transport=transport)
