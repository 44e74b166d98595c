"""Errors as clients of the ElizaOS API read them: always an object, never a text.

The official client shows a text in `error` as "Unknown error". So every error here is
an object with code, message and, for a wrong field, details.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec
from starlette.responses import Response

from connectors.web.errors import ApiError, error_headers, log_refusal

if TYPE_CHECKING:
    from starlette.types import Scope

    from connectors.web.eliza.messages import Json

OFFICIAL = {
    "invalid_api_key": "UNAUTHORIZED",
    "overloaded": "SERVICE_OVERLOADED",
    "not_admitted": "FORBIDDEN",
}
"""Codes that have another name in this API; the others are written in capitals."""


def refuse(
    scope: Scope, error: ApiError, headers: dict[str, str] | None = None
) -> Response:
    """Log one line and make the response to a refused request."""
    log_refusal(scope, error)
    return Response(
        msgspec.json.encode(error_shown(error)),
        status_code=error.status,
        headers=error_headers(error) | (headers or {}),
        media_type="application/json",
    )


def error_shown(error: ApiError) -> Json:
    """Show an error; for a missing key, older clients read `message`."""
    shown: Json = {"success": False, "error": fields_of(error)}
    if error.status == 401:
        shown["message"] = error.text
    return shown


def fields_of(error: ApiError) -> Json:
    """Give the fields of an error."""
    code = OFFICIAL.get(error.code, error.code.upper())
    fields: Json = {"code": code, "message": error.text}
    if error.param:
        fields["details"] = f"field: {error.param}"
    return fields


def missing(what: str, name: str) -> ApiError:
    """Make the error for a thing that does not exist."""
    text = f"{what} {name} does not exist"
    return ApiError(404, text, code=f"{what.replace(' ', '_')}_not_found")


def wrong(text: str, field: str = "") -> ApiError:
    """Make the error for a request with a wrong field."""
    return ApiError(400, text, code="validation_error", param=field or None)


def forbidden(text: str) -> ApiError:
    """Make the error for something that this key may not do."""
    return ApiError(403, text, code="forbidden")


def full(text: str) -> ApiError:
    """Make the error for a limit of the settings."""
    return ApiError(429, text, code="limit_reached", may_repeat=False)
