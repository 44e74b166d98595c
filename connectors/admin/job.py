"""A message as a job of the queue."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

import msgspec

from actors.journal import records
from actors.messages.inbound import Inbound
from actors.messages.state import outcome_of
from connectors.admin.display import Complain, moment, read_record

if TYPE_CHECKING:
    from runtime.store.database import Inspection
    from runtime.store.rows import InboxState, StoredMessage

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


def read_inbound(row: StoredMessage) -> Inbound | None:
    """Read the message in a row; None: another release wrote it."""
    try:
        return msgspec.json.decode(row.body, type=Inbound)
    except ValueError:
        return None


def job_of(row: StoredMessage, rows: Inspection, complain: Complain) -> QueueJob:
    """Describe a message.

    Args:
        row: of the inbox.
        rows: where it is looked up which agent answers it.
        complain: told of rows that cannot be read.
    """
    inbound = read_inbound(row)
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
