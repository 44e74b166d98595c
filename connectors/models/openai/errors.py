"""What a Chat Completions provider's errors say.

Pure. Reads OpenAI's own shape and those of the many that speak its language.
"""

from __future__ import annotations

import msgspec

from actors.errors import ModelFault
from connectors.models.provider_errors import Said

CODES: dict[str, ModelFault] = {
    # OpenAI
    "insufficient_quota": "quota",
    "billing_hard_limit_reached": "quota",
    "billing_not_active": "quota",
    "access_terminated": "quota",
    "rate_limit_exceeded": "rate",
    "context_length_exceeded": "context",
    "string_above_max_length": "context",
    "invalid_api_key": "auth",
    "content_policy_violation": "content",
    "invalid_prompt": "content",
    "bio_policy": "content",
    "misalignment_policy_violation": "content",
    "image_content_policy_violation": "content",
    # Azure
    "content_filter": "content",
    "ResponsibleAIPolicyViolation": "content",
    # llama.cpp
    "exceed_context_size_error": "context",
    # types, which come without a code
    "authentication_error": "auth",
    "permission_error": "auth",
    "server_error": "overload",
    "overloaded_error": "overload",
}
"""Code or type → what it is; where both are known the code counts."""

WRONG_REQUEST = frozenset(
    {
        "invalid_request_error",
        "not_found_error",
        "model_not_found",
        # of pictures, where a status can no longer be sent
        "invalid_image",
        "invalid_image_format",
        "invalid_base64_image",
        "image_too_large",
        "image_too_small",
        "image_parse_error",
        "image_file_too_large",
        "unsupported_image_media_type",
        "empty_image_file",
    }
)
"""Types and codes that say no more than a status of 400 does."""


class Flagged(msgspec.Struct, frozen=True):
    """OpenRouter's reasons why a text was not let through."""

    reasons: list[str] | None = None


class ErrorBody(msgspec.Struct, frozen=True):
    """The object under `error`."""

    message: str | None = None
    type: str | None = None
    code: str | int | float | None = None
    metadata: Flagged | None = None


class ErrorEnvelope(msgspec.Struct, frozen=True):
    """An error response as the API documents it, and as others write it."""

    error: ErrorBody | str | None = None
    message: str | None = None
    detail: str | None = None


def read_error(body: bytes) -> Said:
    """Find the error in a response's body, whatever shape it has."""
    try:
        envelope = msgspec.json.decode(body, type=ErrorEnvelope)
    except (ValueError, RecursionError):
        return Said()
    if isinstance(envelope.error, ErrorBody):
        return said_by(envelope.error)
    return Said(envelope.error or envelope.message or envelope.detail)


def said_by(error: ErrorBody | str) -> Said:
    """Read the object under `error`."""
    if isinstance(error, str):
        return Said(error)
    # Some put the HTTP status here that they can no longer send.
    code = error.code if isinstance(error.code, int) else 0
    status = code if 400 <= code < 600 else 0
    if not status and WRONG_REQUEST & {error.type, error.code}:
        status = 400
    kind = CODES.get(str(error.code)) or CODES.get(error.type or "")
    if error.metadata is not None and error.metadata.reasons:
        kind = "content"
    return Said(error.message, kind, status=status)
