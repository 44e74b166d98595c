"""What is known of one room: who is there, and whether it can be read; pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from connectors.chat.loose_json import Json, table, text, texts, whole
from connectors.chat.shown_name import shown_name

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

# Chosen: more than that is no conversation; of further members only numbers matter.
MOST_MEMBERS = 10_000

FIRST_WITH_CREATORS = 12
"""The version of rooms from which on their creators stand above all levels."""

ADMIN, MODERATOR = 100, 50
"""Power levels, as all clients name them."""


class Member(msgspec.Struct, frozen=True):
    """Somebody who is in the room, or invited."""

    name: str
    is_in: bool


class Room:
    """One room, as its state events tell; feeding one twice does no harm."""

    def __init__(self) -> None:
        self.name = ""
        self.is_encrypted = False
        self._members: dict[str, Member] = {}
        self._is_crowded = False
        self._levels: dict[str, int] = {}
        self._usual_level = 0
        self._creators = frozenset[str]()
        """Who stands above all levels."""

    def apply_all(self, events: Iterable[Json]) -> None:
        """Take in state events, oldest first."""
        for event in events:
            self.apply(event)

    def apply(self, event: Json) -> None:
        """Take in one event; those that are no state change nothing."""
        key = event.get("state_key")
        if not isinstance(key, str):
            return
        content = table(event.get("content"))
        match event.get("type"):
            case "m.room.member":
                self._take_member(key, content)
            case "m.room.encryption":
                self.is_encrypted = True  # it cannot be switched off
            case "m.room.create":
                self._creators = creators(event, content)
            case "m.room.name":
                self.name = shown_name(text(content.get("name")))
            case "m.room.power_levels":
                users = table(content.get("users"))
                self._levels = {user: whole(users[user]) for user in users}
                self._usual_level = whole(content.get("users_default"))
            case _:
                pass

    def _take_member(self, user: str, content: Json) -> None:
        membership = content.get("membership")
        if membership not in {"join", "invite"}:
            self._members.pop(user, None)
        elif user in self._members or len(self._members) < MOST_MEMBERS:
            name = shown_name(text(content.get("displayname")))
            self._members[user] = Member(name or local_part(user), membership == "join")
        else:
            self._is_crowded = True

    def note_joined(self, user: str) -> None:
        """Take in that one of our own accounts is here, crowded or not."""
        known = self._members.get(user)
        name = known.name if known is not None else local_part(user)
        self._members[user] = Member(name, is_in=True)

    def note_left(self, user: str) -> None:
        """Take in that one of our own accounts is no longer here."""
        self._members.pop(user, None)

    def is_in(self, user: str) -> bool:
        """Tell whether somebody is here."""
        member = self._members.get(user)
        return member is not None and member.is_in

    def present(self, users: Mapping[str, str]) -> tuple[str, ...]:
        """Give which of our agents are here, by name.

        Args:
            users: agents by the ids of their accounts.
        """
        return tuple(agent for user, agent in users.items() if self.is_in(user))

    def is_direct(self, users: Mapping[str, str]) -> bool:
        """Tell whether one agent and one other are alone here, invited ones counted."""
        ours = sum(user in users for user in self._members)
        return not self._is_crowded and ours == 1 and len(self._members) == 2

    def name_of(self, user: str) -> str:
        """Give how somebody is called here; nobody else's word for it."""
        member = self._members.get(user)
        return member.name if member is not None else local_part(user)

    def roles_of(self, user: str) -> tuple[str, ...]:
        """Give what somebody is here."""
        level = self._levels.get(user, self._usual_level)
        if level >= ADMIN or user in self._creators:
            return ("admin",)
        return ("moderator",) if level >= MODERATOR else ()


def creators(event: Json, content: Json) -> frozenset[str]:
    """Give who has every right in a room, whatever its levels say.

    Source: spec, room version 12; before, creators had the level they were given.
    """
    version = text(content.get("room_version"))
    is_number = version.isascii() and version.isdigit() and len(version) < 9
    if not is_number or int(version) < FIRST_WITH_CREATORS:
        return frozenset()
    further = texts(content.get("additional_creators"))
    return frozenset({text(event.get("sender")), *further})


def local_part(user: str) -> str:
    """Give `zoe` of `@zoe:example.org`."""
    return user.removeprefix("@").partition(":")[0]
