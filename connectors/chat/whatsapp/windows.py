"""Until when people may be written to: 24 hours after their own last message; pure.

What an earlier process heard is not known: then WhatsApp is asked, and says it
(131047).
"""

from __future__ import annotations

from actors.rules.recent import Recent

OPEN_FOR = 86_400.0
"""Seconds."""

# Chosen: people of a day; who is forgotten is simply asked about.
MOST_CHATS = 20_000

CLOSED = float("-inf")


class Windows:
    """When each person wrote last.

    Args:
        most: people who are remembered.
    """

    def __init__(self, most: int = MOST_CHATS) -> None:
        self._heard: Recent[str, float] = Recent(most)

    def heard(self, chat: str, at: float) -> None:
        """Note that somebody wrote.

        Args:
            chat: whose chat.
            at: Unix seconds, as WhatsApp says; an older one than is known changes
                nothing.
        """
        self._heard[chat] = max(at, self._heard.get(chat, CLOSED))

    def refused(self, chat: str) -> None:
        """Note that WhatsApp says the window is closed."""
        self._heard[chat] = CLOSED

    def is_closed(self, chat: str, now: float) -> bool:
        """Tell whether the window is surely closed at `now` (Unix seconds)."""
        return now - self._heard.get(chat, now) >= OPEN_FOR
