"""Shows that an answer is being written; WhatsApp takes it back after 25 seconds."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from actors.rules.recent import Recent
from connectors.chat.limits import LIMITS

if TYPE_CHECKING:
    from connectors.chat.whatsapp.shared import Shared

TYPING_FOR = LIMITS["whatsapp"].typing_for
"""Seconds; a message of ours ends it, too."""

AGAIN_AFTER = TYPING_FOR - 5.0
"""Seconds until it is told again."""

MOST_CHATS = 5_000


class Typist:
    """Tells WhatsApp that numbers are writing, no more often than it must hear it.

    Args:
        shared: what all numbers share.
    """

    def __init__(self, shared: Shared) -> None:
        self._shared = shared
        self._shown: Recent[str, tuple[str, float]] = Recent(MOST_CHATS)

    def show(self, chat: str, now: float) -> None:
        """Have it shown; it stands below a message, so that there must be one.

        Args:
            chat: where.
            now: seconds on a monotonic clock.
        """
        shared = self._shared
        message_id = shared.newest.get(chat, "")
        number = shared.numbers.get(chat.partition(":")[0])
        before, at = self._shown.get(chat, ("", 0.0))
        is_shown = before == message_id and now - at < AGAIN_AFTER
        if not message_id or number is None or is_shown:
            return
        self._shown[chat] = message_id, now
        read = partial(number.read, message_id, is_typing=True)
        if not shared.errands.add("show that an answer is being written", read):
            shared.figures.event(number.agent, "errand_left_out")

    def end(self, chat: str) -> None:
        """Note that a message of ours has ended it."""
        self._shown.pop(chat, None)
