"""Which chats there are on the page, and who is in them; pure.

A chat with an agent alone is `person/agent`, a room is `#name`: that is how settings
name them, too (`approval_chat = "page/#lobby"`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from actors.rules.globs import globs

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from connectors.page_config import PageConfig

ROOM = "#"


class Place(msgspec.Struct, frozen=True):
    """One chat."""

    chat: str
    """As addresses name it."""

    title: str
    agents: tuple[str, ...]
    """Who is in it, besides people."""

    person: str = ""
    """Whose it is alone; empty: a room, which is everybody's."""

    @property
    def is_room(self) -> bool:
        """Whether everybody reads it."""
        return not self.person

    @property
    def path(self) -> str:
        """Where the page shows it."""
        name = self.chat.removeprefix(ROOM) if self.is_room else self.agents[0]
        return f"/chat/room/{name}" if self.is_room else f"/chat/with/{name}"


def place_of(
    chat: str, config: PageConfig, agents: Iterable[str] | None = None
) -> Place | None:
    """Say what a chat is; None: there is none of this name.

    Args:
        chat: as addresses name it.
        config: settings of the page.
        agents: who can be spoken to now; None: not asked for an agent's chat, which
            goes on to be read when its agent has gone.
    """
    known = None if agents is None else tuple(agents)
    if chat.startswith(ROOM):
        name = chat.removeprefix(ROOM)
        room = config.rooms.get(name)
        if room is None:
            return None
        fit = globs(room.agents).fit
        inside = tuple(each for each in known or () if fit(each))
        return Place(chat, room.title or name, inside)
    person, _, agent = chat.partition("/")
    is_there = bool(agent) and (known is None or agent in known)
    if person not in config.people or not is_there:
        return None
    return Place(chat, agent, (agent,), person)


def places_of(
    person: str, config: PageConfig, agents: Iterable[str]
) -> Iterator[Place]:
    """Give all chats that somebody can write in, in the order of the page."""
    known = tuple(agents)
    for name in (*(f"{person}/{each}" for each in known), *map(in_room, config.rooms)):
        place = place_of(name, config, known)
        if place is not None:
            yield place


def in_room(name: str) -> str:
    """Name the chat of a room."""
    return f"{ROOM}{name}"


def may_read(person: str, place: Place) -> bool:
    """Whether somebody may see what is said in a chat."""
    return place.is_room or place.person == person
