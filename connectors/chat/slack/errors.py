"""What a refusal of Slack's means; pure.

SlackError
├── BusyError      not carried out; may know after how long to ask again
├── LostError      asked, and nobody knows whether it was carried out
│   └── GoneError  the way itself has ended: another is to be opened
├── RefusedError   asking again cannot help
└── TokenError     the app is not let in
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from connectors.chat.matrix.wire import Json, text

if TYPE_CHECKING:
    from collections.abc import Mapping

LONGEST_ASKED = 3600.0
"""Seconds of waiting that Slack is granted at most."""

LONGEST_CODE = 100
"""Characters of Slack's own word that are told."""

TOO_MANY, SERVER_FAULT = 429, 500

NOT_LET_IN = frozenset(
    {
        "access_denied",
        "account_inactive",
        "app_uninstalled",
        "invalid_auth",
        "not_allowed_token_type",
        "not_authed",
        "org_login_required",
        "token_expired",
        "token_revoked",
    }
)

BUSY = frozenset(
    {
        "accesslimited",
        "rate_limited",
        "ratelimited",
        "service_unavailable",
        "team_added_to_org",
    }
)

# Source: "It's possible some aspect of the operation succeeded before the error was
# raised" (chat.postMessage, of both).
LOST = frozenset({"fatal_error", "internal_error", "request_timeout"})


class SlackError(Exception):
    """Slack did not do what it was asked."""


class BusyError(SlackError):
    """It could not be reached, or has too much to do.

    Args:
        text: what happened.
        retry_after: seconds it asked us to wait, or None.
    """

    def __init__(self, text: str, retry_after: float | None = None) -> None:
        super().__init__(text)
        self.retry_after = retry_after


class LostError(SlackError):
    """It was asked, and its answer got lost."""


class GoneError(LostError):
    """The loop that carries the requests has ended."""


class RefusedError(SlackError):
    """It will never do this.

    Args:
        text: what happened.
        code: Slack's word for it, as `channel_not_found`; empty if it has none.
    """

    def __init__(self, text: str, code: str = "") -> None:
        super().__init__(text)
        self.code = code


class TokenError(SlackError):
    """The app's token is not taken."""


def read_error(status: int, headers: Mapping[str, str], said: Json) -> SlackError:
    """Say what an answer that is not `ok` means.

    Args:
        status: of HTTP; Slack says most of its errors with 200.
        headers: by their small names.
        said: the body, as far as it is JSON.
    """
    code = text(said.get("error"))[:LONGEST_CODE]
    told = f"Slack says {code}" if code else f"Slack answers with HTTP {status}"
    if status == TOO_MANY or code in BUSY:
        return BusyError(told, wait_asked(headers))
    if code in NOT_LET_IN:
        return TokenError(told)
    if status >= SERVER_FAULT or code in LOST or not code:
        return LostError(told)
    if code == "missing_scope":
        needed = text(said.get("needed"))[:LONGEST_CODE]
        told = f"{told}: give the app the scope {needed} and install it again"
    return RefusedError(told, code)


def wait_asked(headers: Mapping[str, str]) -> float | None:
    """Give the seconds that Slack asks to wait; None if it does not say."""
    seconds = headers.get("retry-after", "")
    is_number = seconds.isascii() and seconds.isdigit()
    return min(float(seconds), LONGEST_ASKED) if is_number else None
