"""What a homeserver's refusal means; pure.

MatrixError
├── BusyError      not carried out, or safe to ask again; may know after how long
├── LostError      asked, and nobody knows whether it was carried out
├── RefusedError   asking again cannot help
└── TokenError     the account is not let in
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from connectors.chat.matrix.wire import Json, decode, text, whole

if TYPE_CHECKING:
    from collections.abc import Mapping

LONGEST_QUOTE = 200
"""Characters of a server's own words that are told."""

# Chosen: whatever a server asks for, whether it has changed its mind is found out
# within an hour; an account is never switched off by one wrong number.
LONGEST_ASKED = 3600.0
"""Seconds of waiting that a server is granted at most."""

UNAUTHORIZED, TOO_MANY, SERVER_FAULT = 401, 429, 500

NOT_LET_IN = frozenset({"M_UNKNOWN_TOKEN", "M_MISSING_TOKEN", "M_USER_DEACTIVATED"})


class MatrixError(Exception):
    """A homeserver did not do what it was asked."""


class BusyError(MatrixError):
    """It could not be reached, or has too much to do.

    Args:
        text: what happened.
        retry_after: seconds it asked us to wait, or None.
    """

    def __init__(self, text: str, retry_after: float | None = None) -> None:
        super().__init__(text)
        self.retry_after = retry_after


class LostError(MatrixError):
    """It was asked, and its answer got lost."""


class RefusedError(MatrixError):
    """It will never do this.

    Args:
        text: what happened.
        code: the server's word for it, as `M_FORBIDDEN`; empty if it has none.
        status: the HTTP status.
    """

    def __init__(self, text: str, code: str = "", status: int = 0) -> None:
        super().__init__(text)
        self.code = code
        self.status = status


class TokenError(MatrixError):
    """The account's token or password is not taken."""


def read_error(status: int, headers: Mapping[str, str], body: bytes) -> MatrixError:
    """Say what an answer other than 200 means."""
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
        return TokenError(told)
    if status >= SERVER_FAULT:
        # Why busy: what carries an id is seen once however often it is asked, and all
        # else only reads; so an outage behind a proxy may last.
        return BusyError(told, wait_asked(said, headers))
    return RefusedError(told, code, status)


def wait_asked(said: Json, headers: Mapping[str, str]) -> float | None:
    """Give the seconds that a server asks to wait; None if it does not say.

    No more than `LONGEST_ASKED`.

    Source: `retry_after_ms` is the older and finer one; `Retry-After` is rounded up.
    """
    milliseconds = whole(said.get("retry_after_ms"))
    if milliseconds > 0:
        return min(milliseconds / 1000, LONGEST_ASKED)
    seconds = headers.get("retry-after", "")
    is_number = seconds.isascii() and seconds.isdigit()
    return min(float(seconds), LONGEST_ASKED) if is_number else None
