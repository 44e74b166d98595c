"""Which of our bots are where, as far as was heard."""

from __future__ import annotations

from collections import OrderedDict

MOST_CHANNELS = 5_000
"""Channels that are remembered; the longest silent is forgotten."""


class Homes:
    """The bots that can read a channel, and what a thread belongs to.

    Args:
        most: channels that are remembered.
    """

    def __init__(self, most: int = MOST_CHANNELS) -> None:
        self._most = most
        self._present: OrderedDict[str, tuple[str, ...]] = OrderedDict()
        self._parents: OrderedDict[str, str] = OrderedDict()

    def learn(self, channel: str, present: tuple[str, ...]) -> None:
        """Remember who can read a channel."""
        self._present[channel] = present
        self._present.move_to_end(channel)
        while len(self._present) > self._most:
            self._present.popitem(last=False)

    def learn_parent(self, channel: str, parent: str) -> None:
        """Remember what a channel belongs to; empty: it is no thread."""
        self._parents[channel] = parent
        self._parents.move_to_end(channel)
        while len(self._parents) > self._most:
            self._parents.popitem(last=False)

    def present(self, channel: str) -> tuple[str, ...]:
        """Give who can read a channel; empty: nobody knows."""
        return self._present.get(channel, ())

    def parent(self, channel: str) -> str | None:
        """Give what a channel belongs to; None: nobody knows."""
        return self._parents.get(channel)
