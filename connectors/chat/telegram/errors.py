"""What a refusal of the Bot API means; pure.

The kinds are those of `connectors/chat/errors.py`, and two finer ones: of `BusyError`,
`ConflictError`, and of `RefusedError`, `MovedError`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from connectors.chat.errors import (
    LONGEST_ASKED,
    LONGEST_QUOTE,
    BusyError,
    LostError,
    PlatformError,
    RefusedError,
    ShutOutError,
)

if TYPE_CHECKING:
    from connectors.chat.telegram.types import Parameters

UNAUTHORIZED, NOT_FOUND, CONFLICT, TOO_MANY, SERVER_FAULT = 401, 404, 409, 429, 500


class ConflictError(BusyError):
    """Another program asks for this bot's messages, or a webhook gets them."""


class MovedError(RefusedError):
    """The group became a supergroup."""

    def __init__(self, text: str, chat: int) -> None:
        super().__init__(text)
        self.chat = chat


def error_of(
    status: int, description: str, parameters: Parameters, *, is_known: bool = True
) -> PlatformError:
    """Say what an answer that is no result means.

    Args:
        status: of HTTP.
        description: Telegram's words.
        parameters: what it tells beside.
        is_known: whether the bot was let in before. A 404 means an unknown token, or
            an unknown method.
    """
    words = " ".join(description.split())[:LONGEST_QUOTE]
    told = f"HTTP {status}: {words}" if words else f"HTTP {status}"
    if parameters.migrate_to_chat_id:
        return MovedError(told, parameters.migrate_to_chat_id)
    if status == TOO_MANY:
        asked = max(parameters.retry_after, 0.0)
        return BusyError(told, min(asked, LONGEST_ASKED) if asked else None)
    if status == CONFLICT:
        return ConflictError(told)
    if status == UNAUTHORIZED or (status == NOT_FOUND and not is_known):
        return ShutOutError(told)
    if status >= SERVER_FAULT or status < 400:
        return LostError(told)
    return RefusedError(told)
