"""What the kernel asks of durable storage: one port, and the rows it speaks of.

Knows no engine and no process: `sqlite_store.py` keeps the rows in a file,
`memory_store.py` in memory, both pass `tests/contracts/test_store.py`, and a
database server could. Bodies are bytes made by the caller; the store never looks
into them. It has no clock either: every time is Unix seconds given by the caller.

Every durable row carries its *part* (0 to 255, a stable hash of its conversation),
the *epoch* of the store that wrote it, and its dedup key: (connector,
platform_id) in the inbox, (stream, sequence) in the journal, id in the outbox.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Literal, Protocol

import msgspec

from runtime.errors import MisuseError

PARTS = 256
"""How many parts conversations are spread over; never changes."""

MAX_ROWS = 10_000
"""Most rows one reading call may ask for."""

InboxState = Literal["accepted", "replied", "dropped", "cancelled", "dead"]
SettledState = Literal["replied", "dropped", "cancelled", "dead"]
DeliveryState = Literal["pending", "sent", "unknown", "dead"]
ReceivedState = Literal["sent", "unknown", "dead"]


class Accept(msgspec.Struct, frozen=True, kw_only=True):
    """A message that came in; becomes an inbox row in state `accepted`."""

    id: str
    """Unique over all nodes; refused when it has been used before."""

    connector: str
    platform_id: str
    """With `connector` the dedup key: a second one is refused."""

    part: int
    stream: str
    """The journal stream of the conversation it belongs to."""

    body: bytes
    at: float
    """Unix seconds at which it was received."""


class NewEvent(msgspec.Struct, frozen=True):
    """One thing that happened, not yet stored."""

    kind: str
    body: bytes


class Append(msgspec.Struct, frozen=True, kw_only=True):
    """Events for the end of one stream; without events only `expected` is checked."""

    stream: str
    expected: int
    """Number of the last event the writer has seen; 0 for an empty stream."""

    part: int
    events: tuple[NewEvent, ...]


class Enqueue(msgspec.Struct, frozen=True, kw_only=True):
    """A message to say; becomes an outbox row in state `pending`."""

    delivery_id: str
    """Unique over all nodes; refused when it has been used before."""

    connector: str
    chat: str
    """Deliveries of one chat keep the order in which they were enqueued."""

    correlation_id: str
    part: int
    body: bytes


class Settle(msgspec.Struct, frozen=True):
    """An accepted message reaches its one terminal state."""

    inbox_id: str
    state: SettledState
    reason: str = ""


class Receipt(msgspec.Struct, frozen=True):
    """A pending delivery reaches its one terminal state."""

    delivery_id: str
    state: ReceivedState
    receipt: str = ""
    """The platform's id of the message, or what is known instead."""

    attempts: int = 1
    """How often the platform was asked."""


class Commit(msgspec.Struct, frozen=True, kw_only=True):
    """What is stored together or not at all, in the order of the fields.

    So one commit may accept a message and settle it, or enqueue a delivery and
    record its receipt.
    """

    at: float
    """Unix seconds; stored with events, deliveries, settles and receipts."""

    accepts: tuple[Accept, ...] = ()
    appends: tuple[Append, ...] = ()
    deliveries: tuple[Enqueue, ...] = ()
    settles: tuple[Settle, ...] = ()
    receipts: tuple[Receipt, ...] = ()


class Committed(msgspec.Struct, frozen=True):
    """The numbers that a durable commit was given."""

    accepted: tuple[int, ...] = ()
    """The inbox number of each accept."""

    sequences: tuple[int, ...] = ()
    """The number of the last event of each append's stream."""

    enqueued: tuple[int, ...] = ()
    """The outbox number of each delivery."""


class StoredEvent(msgspec.Struct, frozen=True):
    """One event of a stream; `sequence` counts from 1 without a gap."""

    stream: str
    sequence: int
    kind: str
    body: bytes
    part: int
    epoch: int
    at: float


class StoredMessage(msgspec.Struct, frozen=True):
    """One accepted message; `number` grows in the order of acceptance."""

    number: int
    id: str
    connector: str
    platform_id: str
    part: int
    epoch: int
    stream: str
    body: bytes
    at: float


class StoredDelivery(msgspec.Struct, frozen=True):
    """One pending delivery; `number` grows in the order of enqueueing."""

    number: int
    id: str
    connector: str
    chat: str
    correlation_id: str
    part: int
    epoch: int
    body: bytes
    at: float


class Counts(msgspec.Struct, frozen=True):
    """How many rows stand in each state; a state without rows may be missing."""

    inbox: dict[InboxState, int]
    outbox: dict[DeliveryState, int]


class Pruned(msgspec.Struct, frozen=True):
    """How many rows one call removed; call again while either equals the limit."""

    inbox: int
    outbox: int


Done = Callable[[Committed | Exception], object]
"""Told what became of a commit."""


class Store(Protocol):
    """Durable rows: inbox, journal, outbox.

    Implemented by `runtime/memory_store.py` (start there) and
    `runtime/sqlite_store.py`; both pass `tests/contracts/test_store.py`. Used from
    trio tasks; many may call at once. After `aclose` every call raises
    `StoreUnavailableError`.
    """

    @property
    def epoch(self) -> int:
        """What is written on every row; grows when another node takes over."""
        ...

    @property
    def healthy(self) -> bool:
        """False from a failed write until one succeeds; readiness follows it."""
        ...

    async def commit(self, commit: Commit) -> Committed:
        """Store one unit, and come back when it is durable.

        A commit that raises has written nothing, and none of its neighbours is
        touched by that. A caller that is cancelled while waiting learns nothing:
        the commit may still happen; committed again, it raises `DuplicateError`
        or `SequenceConflictError` if it did.

        Raises:
            DuplicateError: a dedup key was used before, or a row to be settled or
                receipted has its terminal state already.
            SequenceConflictError: `expected` is not the stream's last event.
            StoreUnavailableError: disk full or failing, the queue is full, or the
                store is closed; try again later. If the very flush failed and the
                process ends before a later write succeeds, the commit may turn up
                whole after the restart, as after a cancelled wait.
            CorruptError: the rows are damaged.
            MisuseError: no such row to settle or receipt, a part outside 0 to
                255, text that is not Unicode, or more bytes than ever fit.
        """
        ...

    def submit(self, commit: Commit, done: Done) -> None:
        """Store one unit without waiting: the way for actors, which must not.

        `done` is called once, on the trio thread, with what `commit` would have
        returned or raised; never before this returns. What one caller submits is
        stored, and told of, in that order; only a refusal (overload, misuse, closed)
        may be told before the commits submitted earlier.

        Args:
            commit: what to store.
            done: must neither wait nor raise; usually it tells an actor.
        """
        ...

    async def read(
        self, stream: str, after: int = 0, limit: int = 1000
    ) -> tuple[StoredEvent, ...]:
        """Give the events of a stream whose sequence is above `after`, in order.

        All reading calls raise `MisuseError` for a limit outside 1 to `MAX_ROWS`,
        and `StoreUnavailableError` or `CorruptError` when the disk fails.
        """
        ...

    async def unsettled(
        self, after: int = 0, limit: int = 1000
    ) -> tuple[StoredMessage, ...]:
        """Give messages still in state `accepted` whose number is above `after`."""
        ...

    async def undelivered(
        self, connector: str | None = None, after: int = 0, limit: int = 1000
    ) -> tuple[StoredDelivery, ...]:
        """Give deliveries still `pending` whose number is above `after`.

        Args:
            connector: only this one's; None for all.
            after: number of the last one seen; 0 from the first.
            limit: most rows to give.
        """
        ...

    async def counts(self) -> Counts:
        """Count inbox and outbox rows by state, as of one moment."""
        ...

    async def prune(self, before: float, limit: int = 1000) -> Pruned:
        """Forget what reached its terminal state before `before`, oldest first.

        With them go their dedup keys: `before` must lie further back than any
        platform redelivers. Journals are kept.

        Args:
            before: Unix seconds.
            limit: most rows to remove of each table.
        """
        ...

    async def probe(self) -> None:
        """Write something and take it away again, so that `healthy` is up to date.

        Raises:
            StoreUnavailableError: the disk is still full or failing.
        """
        ...

    async def aclose(self) -> None:
        """End it: what was committed before is durable; also when cancelled."""
        ...


def refuse_misuse(commit: Commit) -> None:
    """Check what no engine needs to be asked for.

    Raises:
        MisuseError: see `Store.commit`.
    """
    parts = [row.part for row in commit.accepts]
    parts += [row.part for row in commit.appends]
    parts += [row.part for row in commit.deliveries]
    for part in parts:
        if not 0 <= part < PARTS:
            raise MisuseError(f"part {part} is not in 0 to {PARTS - 1}; see `Commit`")
    for at in (commit.at, *(row.at for row in commit.accepts)):
        if not math.isfinite(at):
            raise MisuseError(f"{at} is not a time; give Unix seconds")
    for text in texts(commit):
        if not text.isascii():
            refuse_half_character(text)


def refuse_half_character(text: str) -> None:
    """Check that a text can be stored.

    Raises:
        MisuseError: it holds half a character (a lone surrogate).
    """
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise MisuseError(
            f"{text!a} holds half a character and cannot be stored; the edge that"
            " made it must replace what it cannot decode"
        ) from error


def refuse_limit(limit: int) -> None:
    """Check a row limit.

    Raises:
        MisuseError: it is outside 1 to `MAX_ROWS`.
    """
    if not 1 <= limit <= MAX_ROWS:
        raise MisuseError(f"limit {limit} is not in 1 to {MAX_ROWS}; page with `after`")


def texts(commit: Commit) -> list[str]:
    """All text of a commit, which must be Unicode to be stored."""
    found: list[str] = []
    for accept in commit.accepts:
        found += (accept.id, accept.connector, accept.platform_id, accept.stream)
    for append in commit.appends:
        found.append(append.stream)
        found.extend(event.kind for event in append.events)
    for row in commit.deliveries:
        found += (row.delivery_id, row.connector, row.chat, row.correlation_id)
    for settle in commit.settles:
        found += (settle.inbox_id, settle.reason)
    for receipt in commit.receipts:
        found += (receipt.delivery_id, receipt.receipt)
    return found


def body_bytes(commit: Commit) -> int:
    """How many bytes the bodies of a commit have together."""
    return (
        sum(len(row.body) for row in commit.accepts)
        + sum(len(event.body) for row in commit.appends for event in row.events)
        + sum(len(row.body) for row in commit.deliveries)
    )
