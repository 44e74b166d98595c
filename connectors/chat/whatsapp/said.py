"""What our numbers said of late, and what became of it."""

from __future__ import annotations

import trio

from actors.messages import Quoted
from actors.rules.recent import Recent

# Chosen: an hour of answers of a busy number.
MOST = 5_000

LONGEST_QUOTE = 2_000
"""Characters of a message that somebody may reply to."""


class Said:
    """Our messages by marker, and everybody's words by id.

    Args:
        most: messages that are remembered.
    """

    def __init__(self, most: int = MOST) -> None:
        self._sent: Recent[str, str] = Recent(most)
        self._chats: Recent[str, str] = Recent(most)
        self._quotes: Recent[tuple[str, str], Quoted] = Recent(most)
        self._awaited: dict[str, trio.Event] = {}

    def find(self, marker: str) -> str:
        """Give the id of a message of ours; empty: nobody knows of it."""
        return self._sent.get(marker, "")

    def intend(self, marker: str, chat: str) -> None:
        """Note where a message is about to be said."""
        self._chats[marker] = chat

    def chat_of(self, marker: str) -> str:
        """Give the chat of a message of ours; empty: nobody knows."""
        return self._chats.get(marker, "")

    def note(self, marker: str, message_id: str) -> None:
        """Note that WhatsApp has a message of ours."""
        self._sent[marker] = message_id
        awaited = self._awaited.get(marker)
        if awaited is not None:
            awaited.set()

    async def wait(self, marker: str, seconds: float) -> str:
        """Wait for a sign that WhatsApp has a message; empty: none came in time."""
        awaited = self._awaited.setdefault(marker, trio.Event())
        try:
            with trio.move_on_after(seconds):
                if not self.find(marker):
                    await awaited.wait()
        finally:
            self._awaited.pop(marker, None)
        return self.find(marker)

    def learn(
        self, chat: str, message_id: str, text: str, name: str = "", agent: str = ""
    ) -> None:
        """Remember a message's words, for who replies to it."""
        quoted = Quoted(text=text[:LONGEST_QUOTE], sender_name=name, agent=agent)
        self._quotes[chat, message_id] = quoted

    def quote(self, chat: str, message_id: str) -> Quoted | None:
        """Give what a message of a chat says; None: nobody knows.

        Why the chat: what somebody replies to is for their phone to say, and another's
        may say anything.
        """
        return self._quotes.get((chat, message_id))
