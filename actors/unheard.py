"""A stored message that nobody has heard yet, and how it is read from its row."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from actors.messages import Inbound
from actors.rules.message_state import Past
from runtime.logs import EventLog

if TYPE_CHECKING:
    from runtime.rows import StoredMessage

LOG = EventLog("router")

UNTRIED = Past()


class Unheard(msgspec.Struct, frozen=True):
    """A stored message that nobody has heard yet."""

    inbound: Inbound
    number: int = 0
    """Its number in the inbox; 0 if it is not known."""

    past: Past = UNTRIED

    def place(self) -> tuple[int, int]:
        """Say where it stands among what was accepted."""
        return self.inbound.copy_of or self.number, self.number


def read_back(row: StoredMessage) -> tuple[Unheard, ...]:
    """Read a stored message; nothing if that cannot be done."""
    try:
        inbound = msgspec.json.decode(row.body, type=Inbound)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        # Left as it is: a later release may read it, and it keeps nobody else.
        LOG.fault("message cannot be read", error, message=row.id)
        return ()
    return (Unheard(inbound, row.number, as_past(row)),)


def as_past(row: StoredMessage) -> Past:
    """Say what the store knows of earlier attempts at a message."""
    return Past(
        attempts=row.attempts,
        was_running=row.state == "running",
        started_at=row.started_at,
        due_at=row.due_at,
        was_read=True,
    )
