"""The ids of the ElizaOS API: UUIDs, derived from a text where there is no UUID; pure.

Source: `stringToUuid` of @elizaos/core 1.7.2. SHA-1 over the percent-encoded text, its
first 16 bytes, with version 0 and the RFC's variant. "Eliza" gives
b850bc30-45f8-0041-a00a-83df46d8555d.

Each agent has its own ids for channels (its *rooms*), servers (its *worlds*), people
and messages: the UUID of `<id>:<agent's id>`. Its own id is the same everywhere.
Source: `createUniqueUuid` of @elizaos/core 1.7.2.

ULIDs of this program are shown as the UUID of the same 128 bits, so that a client can
name them again.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from functools import lru_cache
from typing import Annotated
from urllib.parse import quote
from uuid import UUID

from msgspec import Meta

from runtime.ids import ALPHABET

UUID_TEXT = r"^[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}$"
SHAPE = re.compile(UUID_TEXT)

Uuid = Annotated[str, Meta(pattern=UUID_TEXT)]
"""A UUID of any version, the zero UUID included."""

ZERO = "00000000-0000-0000-0000-000000000000"
"""The id of the server that every company has."""

UNQUOTED = "!~*'()-_."
"""Characters that JavaScript's `encodeURIComponent` does not escape."""


def is_uuid(text: str) -> bool:
    """Whether a text is a UUID."""
    return SHAPE.fullmatch(text) is not None


def to_uuid(text: str) -> str:
    """Give the UUID of a text; of a UUID, itself in lower case."""
    if is_uuid(text):
        return text.lower()
    digest = bytearray(hashlib.sha1(quote(text, safe=UNQUOTED).encode()).digest()[:16])  # noqa: S324  no secret: the API's rule
    digest[6] &= 0x0F
    digest[8] = digest[8] & 0x3F | 0x80
    return str(UUID(bytes=bytes(digest)))


class AgentIds:
    """The UUIDs of agents: those of what people call them.

    Args:
        shown: what people call each agent, by its name in the settings.
    """

    def __init__(self, shown: Mapping[str, str]) -> None:
        self._shown = shown
        self._names = {to_uuid(text): name for name, text in shown.items()}
        self._known = {to_uuid(name): name for name in shown} | self._names
        """With ids from before an agent had a display name."""

    def name(self, agent_id: str) -> str:
        """Give an agent's name by an id or a name of it; empty: it does not exist."""
        return self._known.get(to_uuid(agent_id), "")

    def shown(self, name: str) -> str:
        """Give what people call an agent; of one that has gone, its name."""
        return self._shown.get(name, name)

    def id(self, agent: str) -> str:
        """Give the id of an agent by an id or a name of it, as of nobody's name."""
        return to_uuid(self.shown(self.name(agent) or agent))

    def all(self) -> dict[str, str]:
        """Give all names by id."""
        return dict(self._names)

    def among(self, ids: tuple[str, ...]) -> tuple[str, ...]:
        """Give the names of those ids that are agents, in their order."""
        found = (self._known[each] for each in ids if each in self._known)
        return tuple(dict.fromkeys(found))


ULID = re.compile(rf"[0-7][{ALPHABET}]{{25}}")

LONGEST = 26


@lru_cache(maxsize=16_384)
def own_id(agent_id: str, name: str) -> str:
    """Give the id that an agent has for something.

    Args:
        agent_id: the agent.
        name: id of a channel, server, person or message; a UUID.
    """
    return agent_id if name == agent_id else to_uuid(f"{name}:{agent_id}")


def as_uuid(ulid: str) -> str:
    """Write a ULID as a UUID; any other id becomes the UUID of its text."""
    if not ULID.fullmatch(ulid):
        return to_uuid(ulid)
    number = 0
    for letter in ulid:
        number = number << 5 | ALPHABET.index(letter)
    return str(UUID(int=number))


def as_ulid(uuid: str) -> str:
    """Give the ULID that `as_uuid` wrote as this UUID."""
    number, letters = UUID(uuid).int, ""
    for _ in range(LONGEST):
        letters = ALPHABET[number & 31] + letters
        number >>= 5
    return letters
