"""A stored message that nobody has heard yet, and how it is read from its row."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from actors.messages import Inbound
from actors.rules.message_state import Past
from runtime.logs import EventLog

if TYPE_CHECKING:
    from collections import Counter
    from collections.abc import Container

    from runtime.rows import StoredMessage
    from runtime.store import Store

LOG = EventLog("router")

PAGE = 1000
UNTRIED = Past()


class Unheard(msgspec.Struct, frozen=True):
    """A stored message that nobody has heard yet."""

    inbound: Inbound
    number: int = 0
    """Its number in the inbox; 0 if it is not known."""

    past: Past = UNTRIED
    arrived_at: float = 0.0
    """Monotonic seconds when it came in; 0 if an earlier process took it in."""

    at: float = 0.0
    """Unix seconds at which it was stored; 0: just now."""

    copied: frozenset[str] = frozenset()
    """Agents that have a stored copy of it, as far as somebody has looked."""


class Standing(msgspec.Struct, frozen=True):
    """The little of a stored message that says whose it is and where it stands.

    Read where ten thousand are looked through: it takes a tenth of the time.
    """

    correlation_id: str = ""
    copy_of: int = 0


STANDING = msgspec.json.Decoder(Standing)


def standing(row: StoredMessage) -> Standing | None:
    """Read that little; None if it cannot be read."""
    try:
        return STANDING.decode(row.body)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return None  # whoever hands it out says so in the log


def place(row: StoredMessage) -> tuple[int, int]:
    """Say where a message stands among what was accepted."""
    found = standing(row)
    return (found and found.copy_of) or row.number, row.number


async def read_open(store: Store) -> list[StoredMessage]:
    """Read all messages that are not settled, in the order of their numbers.

    Raises:
        StoreError: the disk fails.
    """
    found: list[StoredMessage] = []
    while True:
        rows = await store.unsettled(found[-1].number if found else 0, PAGE)
        found.extend(rows)
        if len(rows) < PAGE:
            return found


def read_back(row: StoredMessage) -> tuple[Unheard, ...]:
    """Read a stored message; nothing if that cannot be done."""
    try:
        inbound = msgspec.json.decode(row.body, type=Inbound)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        # Left as it is: a later release may read it, and it keeps nobody else.
        LOG.fault("message cannot be read", error, message=row.id)
        return ()
    return (Unheard(inbound, row.number, as_past(row), at=row.at),)


def as_past(row: StoredMessage) -> Past:
    """Say what the store knows of earlier attempts at a message."""
    return Past(
        attempts=row.attempts,
        was_running=row.state == "running",
        started_at=row.started_at,
        due_at=row.due_at,
        was_read=True,
    )


def tell_found(found: Counter[str], running: Container[str]) -> None:
    """Say in the log what an earlier process left, and what of it is left alone."""
    for connector, count in found.items():
        if connector in running:
            LOG.info("messages taken up again", connector=connector, count=count)
        else:
            LOG.warning(
                "messages left alone: their connector is not running",
                connector=connector,
                count=count,
            )
