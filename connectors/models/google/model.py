"""Google's generateContent: the Gemini API.

What is sent is in `request.py`, what comes back in `stream.py`, what
went wrong in `errors.py`; the talking is `connectors/models/http/client.py`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING
from urllib.parse import quote

from connectors.models.format import Question
from connectors.models.google import errors as google_errors
from connectors.models.google.request import Signatures, encode_request
from connectors.models.google.stream import Assembly
from connectors.models.http.client import HttpModel
from connectors.models.http.reading import SseFraming
from connectors.models.names import ToolNames

if TYPE_CHECKING:
    from collections.abc import Callable

    import httpx

    from actors.messages.inbound import ModelRequest
    from connectors.config.models import GoogleModelConfig
    from connectors.models.provider_errors import ErrorContext, Said


class GoogleFormat:
    """Google's generateContent; see `format.Format`."""

    takes_names = False
    stream_type = "text/event-stream"
    request_id_header = ""

    def __init__(self, config: GoogleModelConfig) -> None:
        self._verb = "streamGenerateContent?alt=sse"
        if not config.stream:
            self._verb = "generateContent"
        self._signatures = Signatures()

    def headers(self, key: str) -> dict[str, str]:
        """Send the key in a header of its own."""
        return {"x-goog-api-key": key} if key else {}

    def framing(self) -> SseFraming:
        """Cut a stream into server-sent events."""
        return SseFraming()

    def ask(self, request: ModelRequest, provider: ErrorContext) -> Question:
        """Write a request."""
        names = ToolNames(request.tools)
        body = encode_request(request, names, self._signatures)
        assembly = Assembly(request, names, provider, self._signatures)
        path = f"/{resource(request.model)}:{self._verb}"
        return Question(path, body, assembly)

    def read_error(self, body: bytes) -> Said:
        """Find the error in a response's body."""
        return google_errors.read_error(body)


def resource(model: str) -> str:
    """Name a model as an address does: `models/` unless it says where it is."""
    return quote(model if "/" in model else f"models/{model}", safe="/")


def make_model(
    config: GoogleModelConfig,
    wall_clock: Callable[[], float],
    transport: httpx.AsyncBaseTransport | None = None,
) -> HttpModel:
    """Make the model that an account's settings describe; see `HttpModel`."""
    form = GoogleFormat(config)
    return HttpModel(config, form, wall_clock=wall_clock, transport=transport)
