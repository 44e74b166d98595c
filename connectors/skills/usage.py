"""Which skills are in use, in which conversation; pure."""

from __future__ import annotations

from collections import OrderedDict
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from actors.messages.inbound import ToolContext

Conversation = tuple[str, str, str, str]
"""Agent, connector, chat and thread."""

MOST_CONVERSATIONS = 10_000


def conversation_of(context: ToolContext) -> Conversation:
    """Name the conversation in which something is asked."""
    address = context.address
    return (context.agent, address.connector, address.chat, address.thread)


class Using:
    """When each skill was last used, by conversation and altogether.

    Args:
        idle_after: seconds without a use after which it is no longer in use.
    """

    def __init__(self, idle_after: float) -> None:
        self.idle_after = idle_after
        self._uses: OrderedDict[Conversation, dict[str, float]] = OrderedDict()
        self._last: dict[str, float] = {}

    def note(self, conversation: Conversation, skill: str, now: float) -> None:
        """Note a use.

        Args:
            conversation: where.
            skill: its name.
            now: seconds on a clock that does not go backwards.
        """
        self._last[skill] = now
        self._uses.setdefault(conversation, {})[skill] = now
        self._uses.move_to_end(conversation)
        while len(self._uses) > MOST_CONVERSATIONS:
            self._uses.popitem(last=False)

    def skills(self, conversation: Conversation, now: float) -> tuple[str, ...]:
        """Name the skills in use in a conversation; those no longer are forgotten."""
        uses = self._uses.get(conversation, {})
        for skill in [name for name, at in uses.items() if not self._is_fresh(at, now)]:
            del uses[skill]
        if not uses:
            self._uses.pop(conversation, None)
        return tuple(uses)

    def is_used(self, skill: str, now: float) -> bool:
        """Tell whether a skill is in use anywhere."""
        return self._is_fresh(self._last.get(skill), now)

    def _is_fresh(self, at: float | None, now: float) -> bool:
        return at is not None and now - at < self.idle_after
