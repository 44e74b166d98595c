"""What the errors of Anthropic's Messages say.

Pure. Source: the API's page on errors, and the wording of its billing errors.
"""

from __future__ import annotations

import re

import msgspec

from actors.errors import ModelFault
from connectors.models.provider_errors import Said

TYPES: dict[str, ModelFault] = {
    "authentication_error": "auth",
    "permission_error": "auth",
    "billing_error": "quota",
    "rate_limit_error": "rate",
    "request_too_large": "context",
    "overloaded_error": "overload",
    "api_error": "overload",
    "timeout_error": "timeout",
}
WRONG_REQUEST = frozenset({"invalid_request_error", "not_found_error"})

# Some of these come as `invalid_request_error` (400) or `rate_limit_error` (429).
USED_UP = re.compile(
    r"credit balance is too low|spend.?limit|usage limits?\b.*regain access"
    r"|workspace api usage limits",
    re.IGNORECASE,
)
FILTERED = re.compile(r"blocked by content filtering|usage policy", re.IGNORECASE)


class ErrorBody(msgspec.Struct, frozen=True):
    """The object under `error`."""

    type: str | None = None
    message: str | None = None


class ErrorEnvelope(msgspec.Struct, frozen=True):
    """An error response."""

    error: ErrorBody | None = None


def read_error(body: bytes) -> Said:
    """Find the error in a response's body."""
    try:
        envelope = msgspec.json.decode(body, type=ErrorEnvelope)
    except (ValueError, RecursionError):
        return Said()
    return said_by(envelope.error or ErrorBody())


def said_by(error: ErrorBody) -> Said:
    """Read the object under `error`."""
    kind = TYPES.get(error.type or "")
    message = error.message or ""
    if USED_UP.search(message):
        kind = "quota"
    elif FILTERED.search(message):
        kind = "content"
    return Said(error.message, kind, status=400 if error.type in WRONG_REQUEST else 0)
