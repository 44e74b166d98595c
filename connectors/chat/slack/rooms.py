"""In which channels our apps are."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

# Chosen: an app that is in more hears them all; it only does not know of others there.
MOST_CHANNELS = 20_000


class Rooms:
    """Which agents are where, in the order of the settings.

    Args:
        agents: by name.
    """

    def __init__(self, agents: Iterable[str]) -> None:
        self._rooms: dict[str, set[str]] = {each: set() for each in agents}

    def note(self, agent: str, channel: str) -> None:
        """Note that an agent's app is in a channel."""
        known = self._rooms[agent]
        if len(known) < MOST_CHANNELS:
            known.add(channel)

    def note_all(self, agent: str, channels: Iterable[str]) -> None:
        """Note all channels that an agent's app is in."""
        self._rooms[agent].clear()
        for channel in channels:
            self.note(agent, channel)

    def note_left(self, agent: str, channel: str) -> None:
        """Note that an agent's app is no longer in a channel."""
        self._rooms[agent].discard(channel)

    def present(self, channel: str) -> tuple[str, ...]:
        """Give the agents whose apps are in a channel, as far as is known."""
        return tuple(agent for agent, known in self._rooms.items() if channel in known)
