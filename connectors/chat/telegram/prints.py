"""Which numbers each bot has for one message, where they do not share them.

In a group that is no supergroup each bot numbers the messages for itself. What two bots
hear there is one message if chat, sender, second, words and files are the same; what
somebody says twice within a second is told apart by its order.
"""

from __future__ import annotations

import hashlib
from collections import OrderedDict
from typing import TYPE_CHECKING

from connectors.chat.telegram.names import MessageName, fingerprint

if TYPE_CHECKING:
    from connectors.chat.telegram.updates import Spoken

# Chosen: answers come within the time of a turn. Of a message that is forgotten the
# answer is no reply; it is said all the same.
MOST_PRINTS = 5_000
"""Messages whose numbers are remembered."""


class Prints:
    """The numbers of messages, by bot.

    Args:
        most: messages that are remembered.
    """

    def __init__(self, most: int = MOST_PRINTS) -> None:
        self._most = most
        self._heard: OrderedDict[str, dict[str, list[int]]] = OrderedDict()
        """By what all see alike: each bot's numbers, in the order of hearing."""

        self._names: OrderedDict[str, tuple[str, int]] = OrderedDict()
        """By a message's name: what all see alike, and its place there."""

    def name(self, spoken: Spoken, agent: str) -> MessageName:
        """Name a message as all bots would.

        Args:
            spoken: the message.
            agent: whose bot hears it.
        """
        alike = fingerprint(spoken)
        numbers = self._heard.setdefault(alike, {}).setdefault(agent, [])
        if spoken.message_id not in numbers:
            numbers.append(spoken.message_id)
        place = numbers.index(spoken.message_id)
        digest = hashlib.sha256(f"{alike}/{place}".encode()).hexdigest()[:32]
        name = MessageName(spoken.chat, 0, print=f"~{digest}")
        self._names[name.text] = (alike, place)
        for table in (self._heard, self._names):
            while len(table) > self._most:
                table.popitem(last=False)
        return name

    def number(self, name: MessageName, agent: str) -> int:
        """Give a bot's number of a message; 0: it has none, or it is forgotten."""
        if name.agent not in {"", agent}:
            return 0
        if not name.print:
            return name.number
        alike, place = self._names.get(name.text, ("", 0))
        numbers = self._heard.get(alike, {}).get(agent, [])
        return numbers[place] if place < len(numbers) else 0
