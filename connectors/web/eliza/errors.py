"""Errors as clients of the ElizaOS API read them: always an object, never a text.

The official client shows a text in `error` as "Unknown error", so that every refusal
here has code, message and, where there is more to say, details.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec
from starlette.responses import Response

from connectors.web.errors import ApiError, error_headers, log_refusal

if TYPE_CHECKING:
    from starlette.types import Scope

    from connectors.web.eliza.shapes import Json

OFFICIAL = {
    "invalid_api_key": "UNAUTHORIZED",
    "overloaded": "SERVICE_OVERLOADED",
    "not_admitted": "FORBIDDEN",
}
"""Codes that the API has a word of its own for; others are written in capitals."""


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
    """Show an error; who read the old text of a missing key finds that beside it."""
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
    """Make the error for a thing that there is not."""
    text = f"{what} {name} does not exist"
    return ApiError(404, text, code=f"{what.replace(' ', '_')}_not_found")


def wrong(text: str, field: str = "") -> ApiError:
    """Make the error for a request that says what cannot be."""
    return ApiError(400, text, code="validation_error", param=field or None)


def forbidden(text: str) -> ApiError:
    """Make the error for what this key may not do."""
    return ApiError(403, text, code="forbidden")


def full(text: str) -> ApiError:
    """Make the error for a limit of the settings that is reached."""
    return ApiError(429, text, code="limit_reached", may_repeat=False)
