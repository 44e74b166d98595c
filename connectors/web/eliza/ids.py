"""The ids of the ElizaOS API: UUIDs, made from text where there is only text; pure.

Source: `stringToUuid` of @elizaos/core 1.7.2. SHA-1 over the percent-encoded text, its
first 16 bytes, with version 0 and the RFC's variant. "Eliza" gives
b850bc30-45f8-0041-a00a-83df46d8555d.
"""

from __future__ import annotations

import hashlib
import re
from typing import Annotated
from urllib.parse import quote
from uuid import UUID

from msgspec import Meta

UUID_TEXT = r"^[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}$"
SHAPE = re.compile(UUID_TEXT)

Uuid = Annotated[str, Meta(pattern=UUID_TEXT)]
"""Of any version; the zero UUID counts."""

ZERO = "00000000-0000-0000-0000-000000000000"
"""The id of the server that every company has."""

UNQUOTED = "!~*'()-_."
"""What JavaScript's `encodeURIComponent` leaves as it is beside letters and digits."""


def is_uuid(text: str) -> bool:
    """Tell whether a text is a UUID as the API takes it."""
    return SHAPE.fullmatch(text) is not None


def to_uuid(text: str) -> str:
    """Make the UUID of a text; a UUID stands for itself, in small letters."""
    if is_uuid(text):
        return text.lower()
    digest = bytearray(hashlib.sha1(quote(text, safe=UNQUOTED).encode()).digest()[:16])  # noqa: S324  no secret: the API's rule
    digest[6] &= 0x0F
    digest[8] = digest[8] & 0x3F | 0x80
    return str(UUID(bytes=bytes(digest)))


class AgentIds:
    """Which agent has which UUID: that of its name.

    Args:
        names: of all agents.
    """

    def __init__(self, names: tuple[str, ...]) -> None:
        self._names = {to_uuid(name): name for name in names}

    def name(self, agent_id: str) -> str:
        """Give an agent's name by its id, or by its name; empty: there is none."""
        return self._names.get(to_uuid(agent_id), "")

    def all(self) -> dict[str, str]:
        """Give all names by id."""
        return dict(self._names)

    def among(self, ids: tuple[str, ...]) -> tuple[str, ...]:
        """Give the names of those that are agents, in their order."""
        return tuple(self._names[each] for each in ids if each in self._names)
