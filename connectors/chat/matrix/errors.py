"""What a homeserver's refusal means; pure.

The kinds are those of `connectors/chat/errors.py`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from connectors.chat import errors as faults
from connectors.chat.errors import (
    LONGEST_ASKED,
    LONGEST_QUOTE,
    BusyError,
    PlatformError,
    RefusedError,
    ShutOutError,
)
from connectors.chat.lenient_json import Json, decode, text, whole

if TYPE_CHECKING:
    from collections.abc import Mapping

UNAUTHORIZED, TOO_MANY, SERVER_FAULT = 401, 429, 500

NOT_LET_IN = frozenset({"M_UNKNOWN_TOKEN", "M_MISSING_TOKEN", "M_USER_DEACTIVATED"})


def read_error(status: int, headers: Mapping[str, str], body: bytes) -> PlatformError:
    """Return the error that an answer other than 200 means."""
    try:
        said = decode(body)
    except ValueError:
        said = Json()
    code = text(said.get("errcode"))
    words = " ".join(text(said.get("error")).split())[:LONGEST_QUOTE]
    told = ": ".join(part for part in (f"HTTP {status}", code, words) if part)
    if status == TOO_MANY or code == "M_LIMIT_EXCEEDED":
        return BusyError(told, wait_asked(said, headers))
    if status == UNAUTHORIZED or code in NOT_LET_IN:
        return ShutOutError(told)
    if status >= SERVER_FAULT:
        # Why busy: what carries an id is seen once however often it is asked, and all
        # else only reads; so an outage behind a proxy may last.
        return BusyError(told, wait_asked(said, headers))
    return RefusedError(told, code, status)


def wait_asked(said: Json, headers: Mapping[str, str]) -> float | None:
    """Return the seconds that a server asks to wait; None if it does not say.

    No more than `LONGEST_ASKED`.

    Source: `retry_after_ms` is the older and finer one; `Retry-After` is rounded up.
    """
    milliseconds = whole(said.get("retry_after_ms"))
    if milliseconds > 0:
        return min(milliseconds / 1000, LONGEST_ASKED)
    return faults.wait_asked(headers)
