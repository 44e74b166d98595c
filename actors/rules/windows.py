"""Whom each agent answered a short time ago, in which chat; pure.

Such a person need not call it again for a while (F063). Bounded: of too many, those
that were answered longest ago are forgotten, which only means that they have to call.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from actors.rules.keys import SessionKey

if TYPE_CHECKING:
    from collections.abc import Mapping

    from actors.messages import Inbound

KIND = "reply_window"
"""The kind of their entries in the store."""

# Chosen: everybody who was answered in a group within a day, on a busy server.
MOST_WINDOWS = 20_000

MINUTE = 60.0
NONE_KNOWN: Mapping[str, float] = {}


class Place(msgspec.Struct, frozen=True):
    """One person in one chat."""

    connector: str
    chat: str
    thread: str
    sender: str


def place_of(inbound: Inbound) -> Place:
    """Say who wrote a message, and where."""
    address = inbound.address
    return Place(address.connector, address.chat, address.thread, inbound.sender_id)


def key_of(agent: str, place: Place) -> SessionKey:
    """Name the window of an agent for somebody; its text is the entry's id."""
    return SessionKey(agent, place.connector, place.chat, place.thread, place.sender)


class Windows:
    """When each agent last answered each person in each chat.

    Args:
        most: windows that are kept.
    """

    def __init__(self, most: int = MOST_WINDOWS) -> None:
        self._most = most
        self._at: dict[tuple[Place, str], float] = {}
        """Unix seconds; whoever was answered last is last."""

        self._by_place: dict[Place, dict[str, float]] = {}
        """The same once more, as it is asked for."""

    def __len__(self) -> int:
        """Count the windows that are kept."""
        return len(self._at)

    def answered(self, agent: str, place: Place, at: float) -> tuple[SessionKey, ...]:
        """Note an answer.

        Args:
            agent: who gave it.
            place: to whom, and where.
            at: Unix seconds.

        Returns:
            Windows that are forgotten for it.
        """
        self._at.pop((place, agent), None)
        self._at[(place, agent)] = at
        self._by_place.setdefault(place, {})[agent] = at
        dropped: list[SessionKey] = []
        while len(self._at) > self._most:
            dropped.append(self._forget(*next(iter(self._at))))
        return tuple(dropped)

    def of(self, place: Place) -> Mapping[str, float]:
        """Give when each agent last answered somebody: Unix seconds, by name."""
        return self._by_place.get(place, NONE_KNOWN)

    def expire(
        self, lengths: Mapping[str, float], now: float
    ) -> tuple[SessionKey, ...]:
        """Forget what is over.

        Args:
            lengths: minutes that the windows of each agent are open, by its name; the
                windows of whoever is missing are over.
            now: Unix seconds.

        Returns:
            Names of those.
        """
        over = [
            (place, agent)
            for (place, agent), at in self._at.items()
            if now - at > lengths.get(agent, 0.0) * MINUTE
        ]
        return tuple(self._forget(*each) for each in over)

    def _forget(self, place: Place, agent: str) -> SessionKey:
        del self._at[(place, agent)]
        there = self._by_place[place]
        del there[agent]
        if not there:
            del self._by_place[place]
        return key_of(agent, place)
