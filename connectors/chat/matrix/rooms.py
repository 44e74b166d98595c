"""The rooms of all accounts: who is there, and how long one may hold up the others.

A batch is done when all of its rooms are. A room that the server cannot tell of, while
it answers all else, is given up for that batch; a server that is away is waited for,
because then no room is better off, and what was said would be lost for nothing.

`MatrixShared` is what all accounts of one homeserver share: metrics, settings, caches.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Literal, TypeVar

import msgspec
import trio

from actors.rules.text.limits import RecentMap
from connectors.chat.accounts import Family, PlatformCounters, PlatformMetrics
from connectors.chat.inbound import SeenMessages, shown_name
from connectors.chat.matrix.account import (
    Homeserver,
    MatrixAccount,
    MatrixCall,
    path_of,
)
from connectors.chat.matrix.events import Reason
from connectors.chat.requests import (
    BusyError,
    Json,
    LostError,
    PlatformError,
    RefusedError,
    table,
    tables,
    text,
    texts,
    until_answered,
    whole,
)

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable, Mapping

    from connectors.chat.accounts import Bookmarks
    from connectors.chat.matrix.inbound import Quotes
    from connectors.chat.matrix.listener import InvitePolicy
    from connectors.chat.matrix.platform import MatrixConfig
    from runtime.clock import Clock
    from runtime.ids import IdSource


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
        """Note that one of our own accounts is here, crowded or not."""
        known = self._members.get(user)
        name = known.name if known is not None else local_part(user)
        self._members[user] = Member(name, is_in=True)

    def note_left(self, user: str) -> None:
        """Note that one of our own accounts is no longer here."""
        self._members.pop(user, None)

    def is_in(self, user: str) -> bool:
        """Return whether somebody is here."""
        member = self._members.get(user)
        return member is not None and member.is_in

    def present(self, users: Mapping[str, str]) -> tuple[str, ...]:
        """Return which of our agents are here, by name."""
        return tuple(agent for user, agent in users.items() if self.is_in(user))

    def is_direct(self, users: Mapping[str, str]) -> bool:
        """Return whether one agent and one other are alone here, or invited."""
        ours = sum(user in users for user in self._members)
        return not self._is_crowded and ours == 1 and len(self._members) == 2

    def name_of(self, user: str) -> str:
        """Return how somebody is called here; nobody else's word for it."""
        member = self._members.get(user)
        return member.name if member is not None else local_part(user)

    def roles_of(self, user: str) -> tuple[str, ...]:
        """Return what somebody is here."""
        level = self._levels.get(user, self._usual_level)
        if level >= ADMIN or user in self._creators:
            return ("admin",)
        return ("moderator",) if level >= MODERATOR else ()


def creators(event: Json, content: Json) -> frozenset[str]:
    """Return who has every right in a room, whatever its levels say.

    Source: spec, room version 12; before, creators had the level they were given.
    """
    version = text(content.get("room_version"))
    is_number = version.isascii() and version.isdigit() and len(version) < 9
    if not is_number or int(version) < FIRST_WITH_CREATORS:
        return frozenset()
    further = texts(content.get("additional_creators"))
    return frozenset({text(event.get("sender")), *further})


def local_part(user: str) -> str:
    """Return `zoe` of `@zoe:example.org`."""
    return user.removeprefix("@").partition(":")[0]


# Chosen: rooms where something was said of late; a room that is forgotten is asked
# for again.
MOST_ROOMS = 2_000


class MatrixRooms:
    """All known rooms; the accounts share them."""

    def __init__(self, most: int = MOST_ROOMS) -> None:
        self._rooms: RecentMap[str, Room] = RecentMap(most)

    async def get(self, room_id: str, account: MatrixAccount) -> Room:
        """Return a room, asking by this account if nobody knows it.

        Raises:
            RefusedError: this account is not there.
            BusyError: not now.
            LostError: no whole answer came.
            ShutOutError: the account is not let in.
        """
        room = self._rooms.get(room_id)
        if room is None:
            path = path_of("rooms", room_id, "state")
            call = MatrixCall(method="GET", path=path, timeout=account.timeout)
            state = tables((await account.ask(call)).get("chunk"))
            # Another account may have been quicker.
            room = self._rooms.get(room_id) or Room()
            room.apply_all(state)
        self._rooms[room_id] = room
        return room

    def note_left(self, room_id: str, user: str) -> None:
        """Note that one of our accounts is no longer in a room."""
        room = self._rooms.get(room_id)
        if room is not None:
            room.note_left(user)

    def note_joined(self, room_id: str, user: str) -> None:
        """Note that one of our accounts came into a room."""
        room = self._rooms.get(room_id)
        if room is not None:
            room.note_joined(user)


# Chosen: a join over federation may take half a minute. Longer, and a room on a server
# that is gone would keep the account from hearing anybody.
ANSWERED_WITHIN = 60.0
"""Seconds until a room that cannot be joined or left is let be."""


async def come_or_go(
    account: MatrixAccount, call: MatrixCall, note: Callable[[PlatformError], object]
) -> str:
    """Join a room, or leave it, as soon as the server answers.

    Returns:
        Why it is not done; empty: it is.

    Raises:
        ShutOutError: the account is not let in.
    """
    try:
        with trio.fail_after(ANSWERED_WITHIN):
            await until_answered(lambda: account.ask(call), note)
    except RefusedError as error:
        return str(error)
    except trio.TooSlowError:
        return account.trouble or f"no answer within {ANSWERED_WITHIN:g} s"
    return ""


# Chosen: the restart of a server's worker takes less, and nobody in another room
# believes for much longer that an answer will come.
ROOM_WITHIN = 60.0
"""Seconds that a question about a room is asked again and again."""

MOST_STUCK = 1_000
"""Rooms that are remembered to have been given up; the oldest is forgotten first."""

T = TypeVar("T")


class RoomDeadlines:
    """Asks about rooms, and gives up one that the server cannot tell of."""

    def __init__(
        self, account: MatrixAccount, note: Callable[[PlatformError], object]
    ) -> None:
        self.note = note
        self._account = account
        self._stuck: dict[str, None] = {}

    async def ask(self, room_id: str, ask: Callable[[], Awaitable[T]]) -> T:
        """Ask until there is an answer, or the room is given up.

        A room that was given up before is asked about once, until it answers again.

        Raises:
            BusyError: given up, for now.
            LostError: given up, for now.
            RefusedError: asking again cannot help.
            ShutOutError: the account is not let in.
        """
        while True:
            if room_id not in self._stuck:
                with trio.move_on_after(ROOM_WITHIN):
                    return await until_answered(ask, self.note)
            if await self._is_well():
                return await self._ask_once(room_id, ask)

    async def _is_well(self) -> bool:
        """Whether the server answers at all; if it does not, that is waited for."""
        try:
            await self._account.open()
        except (BusyError, LostError) as error:
            self.note(error)
            await until_answered(self._account.open, self.note)
            return False
        return True

    async def _ask_once(self, room_id: str, ask: Callable[[], Awaitable[T]]) -> T:
        try:
            answer = await ask()
        except (BusyError, LostError):
            self._stuck[room_id] = None
            while len(self._stuck) > MOST_STUCK:
                del self._stuck[next(iter(self._stuck))]
            raise
        self._stuck.pop(room_id, None)
        return answer


Outcome = (
    Reason
    | Literal[
        "handed_in",
        "seen",
        "old",
        "encrypted_room",
        "refused",
        "lost",
        "joined",
        "declined",
        "not_joined",
        "media_left_out",
    ]
)
"""The outcomes of events, beside the reasons to skip one. A message was stored
(`handed_in`), refused by the company for good (`refused`), or not storable (`lost`).
`seen`: another account submitted it. `old`: it was written before the account joined.
`not_joined`: an invitation was accepted in vain. The rest is about invitations, rooms
and files."""

METRICS = partial(
    PlatformCounters,
    events=Family(
        "callboard_matrix_events",
        "What became of what homeservers sent, by account (the agent's name).",
        "outcome",
    ),
    heard=Family(
        "callboard_matrix_synced_timestamp_seconds",
        "When an account last heard from its homeserver, in Unix seconds.",
    ),
    up=Family("callboard_matrix_up", "1 while an account hears its homeserver."),
    reconnects=Family(
        "callboard_matrix_reconnects",
        "How often an account heard from its homeserver again after trouble.",
    ),
    gaps=Family(
        "callboard_matrix_gaps",
        "Gaps in a room's messages: filled, or left open.",
        "outcome",
    ),
)
"""Registers the metrics of all connectors of this platform."""


@dataclass(frozen=True)
class MatrixShared:
    """All that the accounts on one homeserver share."""

    connector: str
    """The name of the connector, as in the settings."""

    config: MatrixConfig
    users: Mapping[str, str]
    """Our agents by the ids of their accounts, in the order of the settings."""

    homeserver: Homeserver
    policy: InvitePolicy
    rooms: MatrixRooms
    seen: SeenMessages
    quotes: Quotes
    bookmarks: Bookmarks
    metrics: PlatformMetrics[Outcome]
    clock: Clock
    ids: IdSource
    received_sign: Callable[[], str]
    """Gives the sign at messages that are worked on; empty: there is none here."""
