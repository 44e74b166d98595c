"""Whose memory is meant: who may read what, and where something new belongs.

Pure. A scope is a text: `person:<connector>/<sender>` (or the id that several such
accounts are linked under), `chat:<connector>/<chat>/<thread>` for groups, and `agent`
for what an agent knows wherever it is. What a person tells in private is not read in a
group, where others would hear it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

    from actors.messages import Address

AGENT = "agent"
"""What an agent knows in every chat; only owners and settings write it."""


def person(person_id: str) -> str:
    """Name a person's scope; the id is `connector/sender_id` until it is linked."""
    return f"person:{person_id}"


def is_persons(scope: str) -> bool:
    """Whether a scope is one person's alone, and no group's."""
    return scope.startswith("person:")


def chat(address: Address) -> str:
    """Name a group's scope; two different ones never have the same name."""
    # Source: RFC 6901 (JSON Pointer) 3; a chat's id may hold any character.
    parts = (address.connector, address.chat, address.thread)
    return f"chat:{'/'.join(p.replace('~', '~0').replace('/', '~1') for p in parts)}"


def writing(address: Address, person_id: str, *, is_direct: bool) -> str:
    """Say where what is told here belongs: to the person, or to the group."""
    return person(person_id) if is_direct else chat(address)


def reading(
    address: Address,
    persons: Iterable[str],
    *,
    is_direct: bool,
    person_in_groups: bool = False,
) -> tuple[str, ...]:
    """Say whose memory may be read here, the nearest first.

    Args:
        address: where the answer goes.
        persons: who asks: the ids of all accounts of theirs.
        is_direct: whether nobody else reads the answer.
        person_in_groups: whether in a group, too, it is known what the asking person
            told in private (F145); everybody there can hear it then.
    """
    own = tuple(map(person, persons))
    if is_direct:
        return (*own, AGENT)
    return (chat(address), *(own if person_in_groups else ()), AGENT)
