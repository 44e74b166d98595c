"""What a refusal of Slack's means; pure.

The kinds are those of `connectors/chat/errors.py`.
"""

from __future__ import annotations

from collections.abc import Mapping

from connectors.chat.errors import (
    BusyError,
    LostError,
    PlatformError,
    RefusedError,
    ShutOutError,
    wait_asked,
)
from connectors.chat.lenient_json import Json, text

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


def read_error(status: int, headers: Mapping[str, str], said: Json) -> PlatformError:
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
        return ShutOutError(told)
    if status >= SERVER_FAULT or code in LOST or not code:
        return LostError(told)
    if code == "missing_scope":
        needed = text(said.get("needed"))[:LONGEST_CODE]
        told = f"{told}: give the app the scope {needed} and install it again"
    return RefusedError(told, code)


def response_error(status: int, headers: Mapping[str, str]) -> PlatformError:
    """Say what it means that an answer to a command is not taken.

    Source: docs.slack.dev, "Handling user interaction": such an address takes five
    answers within half an hour.

    Args:
        status: of HTTP.
        headers: by their small names.
    """
    if status < SERVER_FAULT and status != TOO_MANY:
        return RefusedError(f"Slack answers with HTTP {status}")
    return read_error(status, headers, {})
