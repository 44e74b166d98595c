"""Which chats exist on the page, and who is in them; pure.

A direct chat is named `person/agent`, a room `#name`; settings use the same names
(`approval_chat = "page/#lobby"`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

import msgspec

from actors.rules.text.globs import globs
from connectors.web.page.platform import PageConfig

ROOM = "#"


class PageChat(msgspec.Struct, frozen=True):
    """One chat."""

    chat: str
    """Its name in addresses."""

    title: str
    agents: tuple[str, ...]
    """The agents in it."""

    person: str = ""
    """The only person who reads it; empty: a room, which everybody reads."""

    @property
    def is_room(self) -> bool:
        """Whether everybody reads it."""
        return not self.person

    @property
    def path(self) -> str:
        """Its path on the page."""
        name = self.chat.removeprefix(ROOM) if self.is_room else self.agents[0]
        return f"/chat/room/{name}" if self.is_room else f"/chat/with/{name}"


def find_chat(
    chat: str,
    config: PageConfig,
    agents: Iterable[str] | None = None,
    shown: Callable[[str], str] = str,
) -> PageChat | None:
    """Find a chat by its name; None: it does not exist.

    Args:
        agents: the agents that can be spoken to now; None: find chats of former
            agents, too.
        shown: gives what people call an agent.
    """
    known = None if agents is None else tuple(agents)
    if chat.startswith(ROOM):
        name = chat.removeprefix(ROOM)
        room = config.rooms.get(name)
        if room is None:
            return None
        fit = globs(room.agents).fit
        inside = tuple(each for each in known or () if fit(each))
        return PageChat(chat, room.title or name, inside)
    person, _, agent = chat.partition("/")
    is_there = bool(agent) and (known is None or agent in known)
    if person not in config.people or not is_there:
        return None
    return PageChat(chat, shown(agent), (agent,), person)


def chats_for(
    person: str,
    config: PageConfig,
    agents: Iterable[str],
    shown: Callable[[str], str] = str,
) -> Iterator[PageChat]:
    """Give all chats that a person can write in, in the order of the page."""
    known = tuple(agents)
    for name in (
        *(f"{person}/{each}" for each in known),
        *map(room_chat, config.rooms),
    ):
        place = find_chat(name, config, known, shown)
        if place is not None:
            yield place


def room_chat(name: str) -> str:
    """Give the chat's name of a room."""
    return f"{ROOM}{name}"


def may_read(person: str, place: PageChat) -> bool:
    """Whether a person may read a chat."""
    return place.is_room or place.person == person


def all_chats(config: PageConfig, agents: Iterable[str]) -> Iterator[str]:
    """Name all chats that can exist now."""
    yield from map(room_chat, config.rooms)
    for agent in agents:
        yield from (f"{person}/{agent}" for person in config.people)
