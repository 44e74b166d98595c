"""The rows of durable storage, and the commits that change them.

Shapes only; `port.py` says what a store does with them. Bodies are bytes made by the
caller; the store never looks into them. Every time is Unix seconds given by the
caller.

Every durable row carries its *part* (0 to 255, a stable hash of its conversation),
the *epoch* of the store that wrote it, and its dedup key: (connector,
platform_id) in the inbox, (stream, sequence) in the journal, id in the outbox,
(kind, id) among the records.

A commit writes rows of one part. What it has to write in another one it hands over
(`Handover`): then who owns that part stores it, in a commit of its own.

Records follow from events and can be made anew. Entries do not: an entry is changed in
place, and has a version, so that two writers who read it cannot both change it.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Literal, Protocol, TypeVar

import msgspec

from runtime.store.facts import FactChange


class Entry(msgspec.Struct, frozen=True, kw_only=True):
    """A new value for one entry, or its end."""

    kind: str
    """The table, so to speak: `person`, …"""

    id: str
    owner: str = ""
    """What entries of one kind can be listed by; may be empty."""

    part: int
    body: bytes | None
    """JSON text; None forgets the entry."""

    expected: int | None = None
    """Its version as the writer has seen it, 0 if there was none; None: whichever."""


class StoredEntry(msgspec.Struct, frozen=True):
    """One entry; `version` grows by one with each change."""

    kind: str
    id: str
    owner: str
    part: int
    epoch: int
    version: int
    body: bytes
    at: float
    """Unix seconds of its last change."""


PARTS = 256
"""How many parts conversations are spread over; never changes."""

MAX_ROWS = 10_000
"""Most rows one reading call may ask for."""

BY_HAND = "tried again by hand"
"""The reason of a message that was given up, and is accepted once more; and what stands
in the receipt's place of a delivery that had ended, and is to be said once more."""

InboxState = Literal["accepted", "running", "replied", "dropped", "cancelled", "dead"]
SettledState = Literal["replied", "dropped", "cancelled", "dead"]
DeliveryState = Literal["pending", "sending", "sent", "unknown", "dead"]
ReceivedState = Literal["sent", "unknown", "dead"]


TableName = Literal["inbox", "journal", "outbox", "snapshot", "record", "entry", "fact"]


class StoredRow(Protocol):
    """A row as the store gives it."""

    @property
    def body(self) -> bytes:
        """What its writer made."""
        ...


T = TypeVar("T")


def decoded(row: StoredRow, shape: type[T]) -> T | None:
    """Read the JSON of a row's body; None: another release wrote it."""
    try:
        return msgspec.json.decode(row.body, type=shape)
    except (msgspec.MsgspecError, UnicodeDecodeError):
        return None


class AnyRow(msgspec.Struct, frozen=True):
    """A row of any table, for who goes through all of them."""

    table: TableName
    kind: str
    """Of an event, a record, an entry or a fact; else the connector, or empty."""

    id: str
    """Of an event and a snapshot: the stream."""

    owner: str
    """Of a fact: its scope; of a delivery: its chat."""

    key: str
    """Of an event: the message that it is one of, or empty; of a delivery: its
    correlation id; of a fact: its agent."""

    body: bytes


class Accept(msgspec.Struct, frozen=True, kw_only=True):
    """Store an inbound message as an inbox row in state `accepted`."""

    id: str
    """Unique over all nodes; refused when it has been used before."""

    connector: str
    platform_id: str
    """With `connector` the dedup key: a second one is refused."""

    part: int
    stream: str
    """The chat it came from; for people who read the table."""

    body: bytes
    at: float
    """Unix seconds at which it was received."""

    priority: int = 5
    """1 to 10, lower is more urgent."""


class Claim(msgspec.Struct, frozen=True):
    """Begin work on an accepted message, which becomes `running`."""

    inbox_id: str
    attempt: int
    """Which attempt this is, from 1; the row remembers the last one."""


class Defer(msgspec.Struct, frozen=True):
    """Stop work on a message; it becomes `accepted` again, and waits."""

    inbox_id: str
    attempts: int
    """How many attempts count; may be fewer than were claimed."""

    due_at: float
    """Unix seconds before which nobody is to begin again; 0: at once."""

    reason: str = ""
    """Why the last attempt failed, for people."""


class Amend(msgspec.Struct, frozen=True):
    """Replace the body of a message that is not settled."""

    inbox_id: str
    body: bytes
    """Takes the place of the one it was accepted with, which is gone."""


class Settle(msgspec.Struct, frozen=True):
    """Give a message that is not settled its one terminal state."""

    inbox_id: str
    state: SettledState
    reason: str = ""


class NewEvent(msgspec.Struct, frozen=True):
    """One event that is not stored yet."""

    kind: str
    body: bytes


class Append(msgspec.Struct, frozen=True, kw_only=True):
    """Add events at the end of a stream; without events only `expected` is checked."""

    stream: str
    expected: int
    """Number of the last event the writer has seen; 0 for an empty stream."""

    part: int
    events: tuple[NewEvent, ...]
    inbox_id: str = ""
    """The message whose own events these are, all of the stream: they are forgotten
    with it. Empty: they are kept for ever."""


class Snapshot(msgspec.Struct, frozen=True, kw_only=True):
    """The state of a stream after one of its events; replaces an older snapshot."""

    stream: str
    sequence: int
    """Number of the last event that is in it."""

    schema: int
    """Version of the body's shape; a reader that knows another one replays."""

    part: int
    body: bytes


class Enqueue(msgspec.Struct, frozen=True, kw_only=True):
    """Store an outbound message as an outbox row in state `pending`."""

    delivery_id: str
    """Unique over all nodes; refused when it has been used before."""

    connector: str
    chat: str
    """Deliveries of one chat keep the order in which they were enqueued."""

    correlation_id: str
    beside: str = ""
    """Id of the message whose answer is still to come: once it is settled, the delivery
    is refused. Empty: it does not depend on any."""

    part: int
    body: bytes


class SendAttempt(msgspec.Struct, frozen=True):
    """Note that the platform is about to be called; the delivery becomes `sending`."""

    delivery_id: str
    attempt: int
    """Which one, from 1; the row remembers the last."""


class NotSaid(msgspec.Struct, frozen=True):
    """Note that the platform surely did not take a delivery; it is `pending` again."""

    delivery_id: str
    why: str
    """What it waits for, for people; stands in the receipt's place."""


class Receipt(msgspec.Struct, frozen=True):
    """Give a delivery that is not settled its one terminal state."""

    delivery_id: str
    state: ReceivedState
    receipt: str = ""
    """The platform's id of the message, or what is known instead."""

    attempts: int = 1
    """How often the platform was asked."""


class Record(msgspec.Struct, frozen=True, kw_only=True):
    """A row for people to read; replaces the one of the same kind and id.

    Most follow from events and are stored with them, so they can be made anew.
    """

    kind: str
    """The table, so to speak: `conversation`, `audit`, …"""

    id: str
    owner: str
    """Whose it is: what records of one kind are listed by; may be empty."""

    part: int
    body: bytes
    """JSON text."""


class Handover(msgspec.Struct, frozen=True, kw_only=True):
    """Rows of another part than the rest of a commit, for its owner to store.

    Who owns that part as well stores them with the commit. Otherwise they wait, and the
    owner stores them once, a moment later and in the order in which they were handed
    over (`Store.take_over`).
    """

    part: int
    """That of all its rows."""

    source: int
    """The part of what caused it; while it waits, it lies there."""

    key: str
    """Made from what caused it: while one waits, a second one with its key is dropped;
    so a cause hands over to a part once."""

    rows: Commit
    """Only what is added: messages, deliveries, records, entries and facts."""


class Commit(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Changes that are stored together or not at all, in the order of the fields.

    So one commit may accept a message and settle it, or enqueue a delivery and
    record its receipt.
    """

    at: float
    """Unix seconds; stored with all but `accepts`, which bring their own."""

    accepts: tuple[Accept, ...] = ()
    amends: tuple[Amend, ...] = ()
    claims: tuple[Claim, ...] = ()
    defers: tuple[Defer, ...] = ()
    appends: tuple[Append, ...] = ()
    snapshots: tuple[Snapshot, ...] = ()
    deliveries: tuple[Enqueue, ...] = ()
    settles: tuple[Settle, ...] = ()
    send_attempts: tuple[SendAttempt, ...] = ()
    not_said: tuple[NotSaid, ...] = ()
    receipts: tuple[Receipt, ...] = ()
    records: tuple[Record, ...] = ()
    entries: tuple[Entry, ...] = ()

    may_wait: bool = False
    """Whether a store may keep it back for some milliseconds, to store it with the
    next commit: for what nobody waits for, and whose loss does no harm."""
    facts: tuple[FactChange, ...] = ()
    """What is remembered and what is forgotten, one after the other."""

    handovers: tuple[Handover, ...] = ()
    """What it has to write in other parts."""


class Committed(msgspec.Struct, frozen=True):
    """The numbers that a durable commit was given."""

    accepted: tuple[int, ...] = ()
    """The inbox number of each accept."""

    sequences: tuple[int, ...] = ()
    """The number of the last event of each append's stream."""

    enqueued: tuple[int, ...] = ()
    """The outbox number of each delivery."""

    waiting: tuple[int, ...] = ()
    """Parts whose rows were handed over, and wait for their owner."""


ANY_KIND = "*"
"""Stands for all kinds of rows, where nobody knows which."""


def kinds_of(commit: Commit, parts: Collection[int] | None = None) -> set[str]:
    """Name what kinds of rows a commit adds or changes.

    Args:
        parts: those whose rows it stores at once although they were handed over; None:
            all.

    Returns:
        Kinds of its entries and records, `fact` and `outbox`, and `inbox` for messages
        that are new.
    """
    found = {row.kind for row in commit.entries}
    found |= {row.kind for row in commit.records}
    for name, rows in (
        ("inbox", commit.accepts),
        ("outbox", commit.deliveries),
        ("fact", commit.facts),
    ):
        if rows:
            found.add(name)
    for handed in commit.handovers:
        if parts is None or handed.part in parts:
            found |= kinds_of(handed.rows)
    return found


class StoredEvent(msgspec.Struct, frozen=True):
    """One event of a stream; `sequence` counts from 1 without a gap."""

    stream: str
    sequence: int
    kind: str
    body: bytes
    part: int
    epoch: int
    at: float


class StoredSnapshot(msgspec.Struct, frozen=True):
    """The newest snapshot of a stream."""

    stream: str
    sequence: int
    schema: int
    body: bytes
    part: int
    epoch: int
    at: float


class StoredMessage(msgspec.Struct, frozen=True):
    """One message of the inbox; `number` grows in the order of acceptance."""

    number: int
    id: str
    connector: str
    platform_id: str
    part: int
    epoch: int
    stream: str
    body: bytes
    at: float
    priority: int
    state: InboxState
    attempts: int
    """How often work on it was begun."""

    started_at: float
    """Unix seconds of the last claim, or of when it was put off after that; 0 if
    nothing of the kind happened."""

    due_at: float
    """Unix seconds before which nobody is to begin; 0: at once."""

    reason: str
    """Why the last attempt failed, or why it is settled as it is."""

    settled_at: float
    """Unix seconds; 0 until it is settled."""


class MessageKey(msgspec.Struct, frozen=True):
    """What identifies one message of the inbox, without its body."""

    number: int
    id: str
    connector: str
    platform_id: str
    part: int


class StoredDelivery(msgspec.Struct, frozen=True):
    """One delivery of the outbox; `number` grows in the order of enqueueing."""

    number: int
    id: str
    connector: str
    chat: str
    correlation_id: str
    part: int
    epoch: int
    body: bytes
    at: float
    state: DeliveryState
    attempts: int
    """How often the platform was asked, as far as that was stored."""

    receipt: str
    """Empty until it is settled, or waits because of its platform; see `BY_HAND`."""

    settled_at: float
    """Unix seconds; 0 until it is settled."""


class StoredRecord(msgspec.Struct, frozen=True):
    """One record; `number` grows with every writing of any record."""

    number: int
    kind: str
    id: str
    owner: str
    part: int
    epoch: int
    body: bytes
    at: float


class Answered(msgspec.Struct, frozen=True):
    """A message, and all deliveries with its correlation id, in their order."""

    message: StoredMessage
    deliveries: tuple[StoredDelivery, ...]


class Counts(msgspec.Struct, frozen=True):
    """How many rows stand in each state; a state without rows may be missing."""

    inbox: dict[InboxState, int]
    outbox: dict[DeliveryState, int]


class Pruned(msgspec.Struct, frozen=True):
    """How many rows one call removed; call again until it removes none."""

    inbox: int
    outbox: int
    events: int = 0
    """Of the journal: what belonged to the messages."""
