"""Scopes: whose memory a turn may read, and where a new fact belongs.

Pure. A scope is a text: `person:<connector>/<sender>` (or the id that several such
accounts are linked under), `chat:<connector>/<chat>/<thread>` for groups, and `agent`
for what an agent knows wherever it is. What a person tells in private is not read in a
group, where others would hear it.

One rule for all that writes, be it marks, tools, or what is found when a conversation
is gone through: what is said in private belongs to the person, what is said in a group
to the group. Where each sender in a group has a conversation of their own
(`sessions.session_scope = "sender"`), it belongs to that *member*: to the sender, in
that group (`chat:…/<sender>`). Not to the person, who would then either not be reminded
of it there, or of what they told in private.

Whose memory holds nothing, so that nobody needs to look; pure.

Most messages come from people of whom nothing is known. That is looked up once, and
holds until something is written there. What is remembered after a look began is
counted, so that a look that came too early settles nothing.
"""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from actors.messages.inbound import Address, Inbound
from actors.messages.keys import SessionScope
from actors.rules.text.limits import RecentMap

AGENT = "agent"
"""What an agent knows in every chat; only owners and settings write it."""

_SLASHES = 2


def person(person_id: str) -> str:
    """Name a person's scope; the id is `connector/sender_id` until it is linked."""
    return f"person:{person_id}"


def is_persons(scope: str) -> bool:
    """Whether a scope is one person's alone, and no group's."""
    # A group's has three parts, a member's a fourth one; no part holds a slash.
    return scope.startswith("person:") or scope.count("/") > _SLASHES


def chat(address: Address, member: str = "") -> str:
    """Name a group's scope, or a member's in it; no two have the same name."""
    # Source: RFC 6901 (JSON Pointer) 3; a chat's id may hold any character.
    own = (member,) if member else ()
    parts = (address.connector, address.chat, address.thread, *own)
    return f"chat:{'/'.join(p.replace('~', '~0').replace('/', '~1') for p in parts)}"


def member_of(inbound: Inbound, scope: SessionScope) -> str:
    """Name whoever has a conversation of their own in a group; empty: nobody has.

    Args:
        scope: `sessions.session_scope`.
    """
    return "" if inbound.is_direct or scope != "sender" else inbound.sender_id


def writing(
    address: Address, person_id: str, *, is_direct: bool, member: str = ""
) -> str:
    """Say where what is told here belongs: to the person, the group, or its member."""
    return person(person_id) if is_direct else chat(address, member)


def reading(
    address: Address,
    persons: Iterable[str],
    *,
    is_direct: bool,
    member: str = "",
    person_in_groups: bool = False,
) -> tuple[str, ...]:
    """Say whose memory may be read here, the nearest first.

    Args:
        persons: who asks: the ids of all accounts of theirs.
        is_direct: whether nobody else reads the answer.
        member: as `member_of` gives it.
        person_in_groups: whether in a group, too, it is known what the asking person
            told in private; everybody there can hear it then.
    """
    own = tuple(map(person, persons))
    if is_direct:
        return (*own, AGENT)
    here = (chat(address, member), chat(address))[not member :]
    return (*here, *(own if person_in_groups else ()), AGENT)


MOST = 10_000
"""Scopes known to be blank; one more makes the oldest unknown again."""

VALID = 600.0
"""Seconds. Why not for ever: another program may write to the same database, and
nobody tells of that."""


class ReadStarted(msgspec.Struct, frozen=True):
    """The moment at which a read of memory began."""

    written: int
    """How often something had been written by then."""

    at: float
    """Seconds of a clock that only goes forward."""


class EmptyScopes:
    """Scopes known to hold no facts.

    Args:
        most: how many are known at once.
    """

    __slots__ = ("_seen", "_written")

    def __init__(self, most: int = MOST) -> None:
        self._seen: RecentMap[str, float] = RecentMap(most)
        self._written = 0

    def look(self, now: float) -> ReadStarted:
        """Begin to look; give what `found` is told afterwards."""
        return ReadStarted(self._written, now)

    def found(self, scopes: Iterable[str], look: ReadStarted) -> None:
        """Take in that a look found nothing in these scopes, nor anything expired."""
        if look.written == self._written:
            for scope in scopes:
                self._seen[scope] = look.at

    def wrote(self, scopes: Iterable[str]) -> None:
        """Take in that something was written there."""
        self._written += 1
        for scope in scopes:
            self._seen.pop(scope, None)

    def cover(self, scopes: tuple[str, ...], now: float) -> bool:
        """Tell whether all of these scopes, one at least, hold nothing."""
        never = now - VALID
        return bool(scopes) and all(
            self._seen.get(scope, never) > never for scope in scopes
        )
