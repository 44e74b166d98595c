"""What agents of ElizaOS call things: each has ids of its own for them; pure.

Source: `createUniqueUuid` of @elizaos/core 1.7.2. Its own id an agent leaves as it is;
what else there is (a channel: its *room*; a server: its *world*; a person, a message)
it calls by the UUID of `<id>:<agent's id>`.

What this program keeps under ids of its own (ULIDs) is shown as the UUID of the same
128 bits, so that a client can name it again.
"""

from __future__ import annotations

import re
from functools import lru_cache
from uuid import UUID

from connectors.web.eliza.ids import to_uuid
from runtime.ids import ALPHABET

ULID = re.compile(rf"[0-7][{ALPHABET}]{{25}}")

LONGEST = 26


@lru_cache(maxsize=16_384)
def own_id(agent_id: str, name: str) -> str:
    """Give what an agent calls something.

    Args:
        agent_id: its id.
        name: id of a channel, server, person or message; a UUID.
    """
    return agent_id if name == agent_id else to_uuid(f"{name}:{agent_id}")


def as_uuid(ulid: str) -> str:
    """Write an id of ours as a UUID; one that is no ULID becomes that of its text."""
    if not ULID.fullmatch(ulid):
        return to_uuid(ulid)
    number = 0
    for letter in ulid:
        number = number << 5 | ALPHABET.index(letter)
    return str(UUID(int=number))


def as_ulid(uuid: str) -> str:
    """Give the id of ours that `as_uuid` wrote so, if it was a ULID.

    Args:
        uuid: a UUID.
    """
    number, letters = UUID(uuid).int, ""
    for _ in range(LONGEST):
        letters = ALPHABET[number & 31] + letters
        number >>= 5
    return letters
