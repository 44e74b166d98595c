"""What a refusal of the Bot API means; pure.

TelegramError
├── BusyError       not carried out, or safe to ask again; may know after how long
│   └── ConflictError  somebody else hears this bot's messages
├── LostError       asked, and nobody knows whether it was carried out
├── RefusedError    asking again cannot help
│   └── MovedError  the group has another id now
└── TokenError      the bot is not let in
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from connectors.chat.telegram.wire import Parameters

LONGEST_QUOTE = 200
"""Characters of Telegram's own words that are told."""

# Chosen: whatever it asks for, whether it has changed its mind is found out within an
# hour; a chat is never switched off by one wrong number.
LONGEST_ASKED = 3600.0
"""Seconds of waiting that are granted at most."""

UNAUTHORIZED, NOT_FOUND, CONFLICT, TOO_MANY, SERVER_FAULT = 401, 404, 409, 429, 500


class TelegramError(Exception):
    """Telegram did not do what it was asked."""


class BusyError(TelegramError):
    """It could not be reached, or has too much to do.

    Args:
        text: what happened.
        retry_after: seconds it asked us to wait, or None.
    """

    def __init__(self, text: str, retry_after: float | None = None) -> None:
        super().__init__(text)
        self.retry_after = retry_after


class ConflictError(BusyError):
    """Another program asks for this bot's messages, or a webhook gets them."""


class LostError(TelegramError):
    """It was asked, and its answer got lost."""


class RefusedError(TelegramError):
    """It will never do this."""

    def says(self, *words: str) -> bool:
        """Tell whether its text has one of these words; they are written small."""
        text = str(self).casefold()
        return any(each in text for each in words)


class MovedError(RefusedError):
    """The group became a supergroup.

    Args:
        text: what happened.
        chat: its id from now on.
    """

    def __init__(self, text: str, chat: int) -> None:
        super().__init__(text)
        self.chat = chat


class TokenError(TelegramError):
    """The bot's token is not taken."""


def error_of(
    status: int, description: str, parameters: Parameters, *, is_known: bool = True
) -> TelegramError:
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
        return TokenError(told)
    if status >= SERVER_FAULT or status < 400:
        return LostError(told)
    return RefusedError(told)
