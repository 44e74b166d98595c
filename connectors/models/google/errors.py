"""What the errors of Google's generateContent say.

Pure. Source: google.rpc.Status with its details `QuotaFailure`, `RetryInfo` and
`ErrorInfo`, and the Gemini API's page on troubleshooting.
"""

from __future__ import annotations

import re

import msgspec

from actors.errors import ModelFault
from connectors.models.provider_errors import Said, read_duration

STATUSES: dict[str, ModelFault] = {
    "UNAUTHENTICATED": "auth",
    "PERMISSION_DENIED": "auth",
    "RESOURCE_EXHAUSTED": "rate",
    "UNAVAILABLE": "overload",
    "INTERNAL": "overload",
    "ABORTED": "overload",
    "DEADLINE_EXCEEDED": "timeout",
}
BAD_KEYS = frozenset({"API_KEY_INVALID", "API_KEY_EXPIRED", "API_KEY_SERVICE_BLOCKED"})

# A day's share is used up, or there never was one: waiting a minute is no help. Both
# come under the same status and sentence as too many calls in a minute.
BY_DAY = re.compile(r"PerDay|Daily", re.IGNORECASE)
USED_UP = re.compile(r"limit: 0\b|prepa(y|id)|depleted|spend(ing)? cap", re.IGNORECASE)


class Violation(msgspec.Struct, frozen=True, rename="camel"):
    """A quota that was passed."""

    quota_id: str = ""
    quota_value: str | int = ""


class ErrorDetail(msgspec.Struct, frozen=True, rename="camel"):
    """One of the details; which fields it has depends on its type."""

    reason: str = ""
    retry_delay: str = ""
    violations: tuple[Violation, ...] = ()


class ErrorBody(msgspec.Struct, frozen=True):
    """The object under `error`."""

    code: int | None = None
    message: str | None = None
    status: str = ""
    details: tuple[msgspec.Raw, ...] = ()


class ErrorEnvelope(msgspec.Struct, frozen=True):
    """An error response."""

    error: ErrorBody | None = None


Envelopes = ErrorEnvelope | list[ErrorEnvelope]
"""A list where a stream without `alt=sse` would have been."""


def read_error(body: bytes) -> Said:
    """Find the error in a response's body."""
    try:
        decoded: Envelopes = msgspec.json.decode(body, type=Envelopes)
    except (ValueError, RecursionError):
        return Said()
    envelopes = decoded if isinstance(decoded, list) else [decoded]
    found = [envelope.error for envelope in envelopes if envelope.error is not None]
    return said_by(found[0]) if found else Said()


def said_by(error: ErrorBody) -> Said:
    """Read the object under `error`."""
    details = [detail for raw in error.details if (detail := read_detail(raw))]
    waits = [wait for each in details if (wait := read_duration(each.retry_delay))]
    kind = STATUSES.get(error.status)
    if kind == "rate" and is_used_up(error, details):
        kind = "quota"
    if any(detail.reason in BAD_KEYS for detail in details):
        kind = "auth"
    return Said(
        error.message,
        kind,
        retry_after=waits[0] if waits else None,
        status=error.code if error.code is not None and error.code >= 400 else 0,
    )


def read_detail(raw: msgspec.Raw) -> ErrorDetail | None:
    """Read a detail; None for one that is of no use here."""
    try:
        return msgspec.json.decode(raw, type=ErrorDetail)
    except (ValueError, RecursionError):
        return None


def is_used_up(error: ErrorBody, details: list[ErrorDetail]) -> bool:
    """Tell whether the account has nothing left, rather than too many calls now."""
    violations = [each for detail in details for each in detail.violations]
    return (
        any(BY_DAY.search(each.quota_id) for each in violations)
        or any(str(each.quota_value) == "0" for each in violations)
        or USED_UP.search(error.message or "") is not None
    )
