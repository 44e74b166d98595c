"""Reply windows: whom each agent answered recently, in which chat. Pure.

Such a person need not mention the agent again for a while. Bounded: the oldest windows
are forgotten first, which only means that the person must mention the agent.
"""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from actors.messages.inbound import Inbound
from actors.messages.keys import SessionKey

KIND = "reply_window"
"""The kind of their entries in the store."""

# Chosen: everybody who was answered in a group within a day, on a busy server.
MOST_WINDOWS = 20_000

MINUTE = 60.0
NONE_KNOWN: Mapping[str, float] = {}


class PersonInChat(msgspec.Struct, frozen=True):
    """One person in one chat."""

    connector: str
    chat: str
    thread: str
    sender: str


def place_of(inbound: Inbound) -> PersonInChat:
    """Return the sender and chat of a message."""
    address = inbound.address
    return PersonInChat(
        address.connector, address.chat, address.thread, inbound.sender_id
    )


def key_of(agent: str, place: PersonInChat) -> SessionKey:
    """Return the key of an agent's window for a person; its text is the entry's id."""
    return SessionKey(agent, place.connector, place.chat, place.thread, place.sender)


class ReplyWindows:
    """Time of each agent's last answer to each person in each chat."""

    def __init__(self, most: int = MOST_WINDOWS) -> None:
        self._most = most
        self._at: dict[tuple[PersonInChat, str], float] = {}
        """Unix seconds; the latest answer comes last."""

        self._by_place: dict[PersonInChat, dict[str, float]] = {}
        """The same once more, as it is asked for."""

    def __len__(self) -> int:
        """Return the number of windows."""
        return len(self._at)

    def answered(
        self, agent: str, place: PersonInChat, at: float
    ) -> tuple[SessionKey, ...]:
        """Note an answer.

        Args:
            at: Unix seconds.

        Returns:
            Windows that were forgotten to make room.
        """
        self._at.pop((place, agent), None)
        self._at[(place, agent)] = at
        self._by_place.setdefault(place, {})[agent] = at
        dropped: list[SessionKey] = []
        while len(self._at) > self._most:
            dropped.append(self._forget(*next(iter(self._at))))
        return tuple(dropped)

    def of(self, place: PersonInChat) -> Mapping[str, float]:
        """Return the Unix time of each agent's last answer to a person, by agent."""
        return self._by_place.get(place, NONE_KNOWN)

    def expire(
        self, lengths: Mapping[str, float], now: float
    ) -> tuple[SessionKey, ...]:
        """Forget windows that have closed.

        Args:
            lengths: length of the windows in minutes, by agent name; windows of other
                agents are closed.
            now: Unix seconds.

        Returns:
            Keys of the closed windows.
        """
        over = [
            (place, agent)
            for (place, agent), at in self._at.items()
            if now - at > lengths.get(agent, 0.0) * MINUTE
        ]
        return tuple(self._forget(*each) for each in over)

    def _forget(self, place: PersonInChat, agent: str) -> SessionKey:
        del self._at[(place, agent)]
        there = self._by_place[place]
        del there[agent]
        if not there:
            del self._by_place[place]
        return key_of(agent, place)
