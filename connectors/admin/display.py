"""Writes times and texts for people and programs, and reads the bodies of records.

Texts of people and agents are made safe for a terminal or a page first: control
characters could move the cursor, change colours or type into a shell, and marks that
reorder text could make a name look like another one. A message is shown as a `Job` of
the queue. Pure.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Literal, TypeVar

import msgspec

from actors.journal import records
from actors.messages.deliveries import GONE
from actors.messages.inbound import Inbound
from actors.messages.state import outcome_of
from runtime.store.database import DROPPED, Inspection
from runtime.store.rows import InboxState, StoredMessage, StoredRecord, decoded

Precision = Literal["seconds", "milliseconds"]

OVER = (DROPPED, GONE)
"""How the receipts of deliveries begin that count as no failure: an operator dropped
them, or the client that asked has gone."""

NONE = "-"
"""Stands for an empty value."""

UNITS = (("d", 86_400), ("h", 3600), ("m", 60), ("s", 1))


def when(at: float, precision: Precision = "seconds") -> str:
    """Write Unix seconds in ISO 8601, local with offset; 0 is `-`.

    What has no date, as a time in a damaged row may be, is written as the number it is.
    """
    if not at:
        return NONE
    try:
        there = datetime.fromtimestamp(at, UTC).astimezone()
    except (ValueError, OverflowError, OSError):
        return f"{at:g} s"
    return there.isoformat(timespec=precision)


def moment(at: float) -> str | None:
    """Write Unix seconds for programs; 0 is null."""
    return when(at, "milliseconds") if at else None


def lasting(seconds: float) -> str:
    """Write roughly how long: `3d`, `2h`, `45s`."""
    for unit, length in UNITS:
        if length <= seconds < math.inf:
            return f"{int(seconds // length)}{unit}"
    return "0s"


Body = TypeVar("Body", bound=msgspec.Struct)

Complain = Callable[[str], None]
"""Told of each row that is left out; one sentence for people."""


def read_record(
    row: StoredRecord, shape: type[Body], complain: Complain
) -> Body | None:
    """Read a record's body; None if it cannot be read, which is reported."""
    try:
        return msgspec.json.decode(row.body, type=shape)
    except ValueError as error:
        complain(
            f"the {row.kind} record {row.id!r} cannot be read and is left out: {error};"
            " see `callboard records check`"
        )
        return None


# Control characters but tab and line feed; then the marks that reorder text
# (bidirectional overrides and isolates), line and paragraph separators, and half
# surrogates, which no terminal can show.
UNSAFE = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]"
)


def make_safe(text: str) -> str:
    """Make control characters visible; carriage returns before line feeds vanish."""
    return UNSAFE.sub(visible, text.replace("\r\n", "\n"))


def visible(found: re.Match[str]) -> str:
    """Give the sign for one control character: Unicode's picture of it, or U+FFFD."""
    code = ord(found.group())
    if code < 0x20:
        return chr(0x2400 + code)
    return "\u2421" if code == 0x7F else "\ufffd"


Status = Literal["pending", "running", "completed", "failed", "cancelled"]

STATES: dict[str, tuple[InboxState, ...]] = {
    "pending": ("accepted",),
    "running": ("running",),
    "completed": ("replied",),
    "failed": ("dead",),
    "cancelled": ("dropped", "cancelled"),
}
"""Which states of a message each status stands for, as in the view `jobs`."""

STATUSES: dict[InboxState, str] = {
    state: status for status, states in STATES.items() for state in states
}


class AgentField(msgspec.Struct):
    """The one field of an audit or usage record that `agent_of` reads."""

    agent: str = ""


class QueueJob(msgspec.Struct, frozen=True, kw_only=True):
    """One message; times in ISO 8601, local with offset, null if there is none."""

    id: str
    status: str
    state: str
    priority: int
    attempts: int
    connector: str
    chat: str
    thread: str
    agent: str
    sender_id: str
    sender_name: str
    received_at: str | None
    started_at: str | None
    due_at: str | None
    settled_at: str | None
    reason: str
    text: str


def job_of(row: StoredMessage, rows: Inspection, complain: Complain) -> QueueJob:
    """Describe a message."""
    inbound = decoded(row, Inbound)
    place = None if inbound is None else inbound.address
    return QueueJob(
        id=row.id,
        status=status_of(row),
        state=row.state,
        priority=row.priority,
        attempts=row.attempts,
        connector=row.connector,
        chat=row.stream.partition("/")[2] if place is None else place.chat,
        thread="" if place is None else place.thread,
        agent=agent_of(row, inbound, rows, complain),
        sender_id="" if inbound is None else inbound.sender_id,
        sender_name="" if inbound is None else inbound.sender_name,
        received_at=moment(row.at),
        started_at=moment(row.started_at),
        due_at=moment(row.due_at),
        settled_at=moment(row.settled_at),
        reason=row.reason,
        text="(cannot be read by this release)" if inbound is None else inbound.text,
    )


def status_of(row: StoredMessage) -> str:
    """Name the status; who was only told why there is no answer has failed."""
    is_failed = outcome_of(row.state, row.reason) == "failed"
    return "failed" if is_failed else STATUSES[row.state]


def agent_of(
    row: StoredMessage, inbound: Inbound | None, rows: Inspection, complain: Complain
) -> str:
    """Give the agent that answers a message: the named one, or the one that tried."""
    if inbound is not None and inbound.agent:
        return inbound.agent
    tries = [f"{row.id}#{attempt}" for attempt in range(row.attempts, 0, -1)]
    names = [(records.USAGE, name) for name in tries]
    names.append((records.AUDIT, row.id))
    for kind, name in names:
        found = rows.record(kind, name)
        body = None if found is None else read_record(found, AgentField, complain)
        if body is not None:
            return body.agent
    return ""
