"""Errors as an HTTP client gets them: OpenAI's error shape, the right status.

The only place where an error of the kernel or the domain becomes a status. Every
refused request is one line in the log, without a traceback.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import msgspec
import pykka
from starlette.responses import Response

from actors.errors import (
    NOT_STORED,
    ChatError,
    MessageRefusedError,
    MisdirectedError,
    OverloadedError,
    SenderRefusedError,
    StoppingError,
    UnknownAgentError,
)
from runtime.errors import KernelError, MisuseError, StoreError
from runtime.telemetry.logs import EventLog

if TYPE_CHECKING:
    from starlette.types import Scope

LOG = EventLog("http")
REFUSALS = LOG.limited(60)
"""Anybody may be refused as often as they like, so the log takes so many a minute."""

RETRY_SOON = 1.0
"""Seconds until a client may retry when too many requests are in flight."""

RETRY_LATER = 5.0

MISDIRECTED = 421
"""Source: RFC 9110 15.5.20; another node works on that chat."""

"""Seconds until a client may retry when the kernel cannot accept a message."""

# Chosen: a client that is told to wait a day would not learn of a free account.
RETRY_LATEST = 3600.0
"""Most seconds that a client is told to wait."""

TROUBLE_STATUS: dict[str, tuple[str, int, float | None]] = {
    "busy": ("conversation_busy", 429, RETRY_SOON),
    "unavailable": ("model_unavailable", 503, RETRY_LATER),
    "refused": ("model_refused", 502, None),
    "budget": ("insufficient_quota", 429, None),
    "timeout": ("turn_timeout", 504, None),
    "dropped": ("dropped", 422, None),
}
"""A delivery's trouble over HTTP: code, status, seconds until a retry may help; None:
a retry cannot help."""

EXPECTED_ERRORS = (ChatError, KernelError, pykka.ActorDeadError, pykka.Timeout)
"""What the kernel may raise for a request; anything else is a bug."""


class ApiError(Exception):
    """A request that gets an error instead of an answer.

    Args:
        status: HTTP status.
        text: what is wrong, why, and what to do; shown to the client.
        code: short word for programs, as OpenAI's `code`.
        param: the field of the request that is wrong, as `messages[0].role`.
        retry_after: seconds after which trying again may help, or None.
        may_repeat: False if the message was accepted: sent again, it would count
            twice. Clients repeat 408, 409, 429 and 5xx by themselves.
    """

    def __init__(
        self,
        status: int,
        text: str,
        *,
        code: str,
        param: str | None = None,
        retry_after: float | None = None,
        may_repeat: bool = True,
    ) -> None:
        super().__init__(text)
        self.status = status
        self.text = text
        self.code = code
        self.param = param
        self.retry_after = retry_after
        self.may_repeat = may_repeat

    @property
    def type(self) -> str:
        """OpenAI's coarse kind of error; follows from the status."""
        if self.status == 429:
            return "rate_limit_error"
        return "server_error" if self.status >= 500 else "invalid_request_error"


class ApiErrorFields(msgspec.Struct, frozen=True):
    """What OpenAI's clients read from an error."""

    message: str
    type: str
    param: str | None
    code: str


class ApiErrorBody(msgspec.Struct, frozen=True):
    """The body of every error."""

    error: ApiErrorFields


def error_body(error: ApiError) -> bytes:
    """Write an error as JSON in OpenAI's shape."""
    fields = ApiErrorFields(error.text, error.type, error.param, error.code)
    return msgspec.json.encode(ApiErrorBody(fields))


def error_headers(error: ApiError) -> dict[str, str]:
    """Give the headers that belong to an error, besides the content type."""
    headers: dict[str, str] = {}
    if error.retry_after is not None:
        headers["retry-after"] = str(math.ceil(error.retry_after))
    if not error.may_repeat:
        # Source: the official clients obey this header over their own list.
        headers["x-should-retry"] = "false"
    if error.status == 401:
        headers["www-authenticate"] = "Bearer"
    return headers


def refuse(
    scope: Scope, error: ApiError, headers: dict[str, str] | None = None
) -> Response:
    """Log one line and make the response to a refused request."""
    log_refusal(scope, error)
    return Response(
        error_body(error),
        status_code=error.status,
        headers=error_headers(error) | (headers or {}),
        media_type="application/json",
    )


def log_refusal(scope: Scope, error: ApiError) -> None:
    """Write the one line that a refused request leaves in the log."""
    client = scope.get("client")
    cause = error.__cause__
    why = {"why": str(cause)} if isinstance(cause, StoreError) else {}
    write = REFUSALS.warning if error.status >= 500 else REFUSALS.info
    write(
        "request refused",
        method=str(scope.get("method", "?")),
        path=str(scope.get("path", "?")),
        client=client[0] if client else "?",
        status=error.status,
        code=error.code,
        error=error.text,
        **why,
    )


def translate(error: Exception) -> ApiError:
    """Make the error for a message that was not accepted.

    Args:
        error: one of `EXPECTED_ERRORS`, raised before anything was stored.
    """
    match error:
        case UnknownAgentError():
            return unknown_model(error.name, error.known)
        case MessageRefusedError():
            return refused_error(error)
        case OverloadedError():
            return ApiError(429, str(error), code="overloaded", retry_after=RETRY_SOON)
        case MisdirectedError() | StoppingError():
            status, code = 503, "stopping"
            if isinstance(error, MisdirectedError):
                status, code = MISDIRECTED, "misdirected"
            return ApiError(status, str(error), code=code, retry_after=RETRY_LATER)
        case MisuseError():
            return ApiError(500, str(error), code="internal_error", may_repeat=False)
        case _:
            text = f"the message was not taken: {error}"
            if isinstance(error, StoreError):
                text = f"{NOT_STORED}; try again later"
            return ApiError(503, text, code="unavailable", retry_after=RETRY_LATER)


def refused_error(error: MessageRefusedError) -> ApiError:
    """Make the error for a message of a kind, or a user, that is not accepted."""
    if isinstance(error, SenderRefusedError):
        return ApiError(403, str(error), code="not_admitted", param="user")
    return ApiError(400, str(error), code="message_refused", param="messages")


def trouble_error(trouble: str, text: str, seconds: float | None = None) -> ApiError:
    """Make the error for a message that was accepted and cannot be answered.

    Args:
        trouble: as in a delivery, not empty.
        text: what people would read in a chat.
        seconds: until a retry may succeed; None: not known.
    """
    code, status, wait = TROUBLE_STATUS.get(trouble, ("no_answer", 500, None))
    if wait is not None and seconds is not None:
        wait = min(max(seconds, RETRY_SOON), RETRY_LATEST)
    return ApiError(
        status, text, code=code, retry_after=wait, may_repeat=wait is not None
    )


def unknown_model(name: str, known: tuple[str, ...]) -> ApiError:
    """Make the error for a `model` that is no agent."""
    return ApiError(
        404,
        f"the model {name[:64]!r} does not exist: a model here is an agent's name; "
        f"known: {', '.join(known) or 'none'}",
        code="model_not_found",
        param="model",
    )
