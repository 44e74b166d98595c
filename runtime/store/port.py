"""The port of durable storage; `rows.py` has its shapes.

It names no engine: `runtime/sqlite/store.py` keeps the rows in a file, `in_memory.py`
in memory, and both pass `tests/contracts/store/test_store.py`. A store has no clock:
every time is Unix seconds given by the caller.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection
from typing import Protocol

from runtime.errors import MisuseError
from runtime.store.facts import (
    Facts,
    SaveFact,
    fact_bytes,
    fact_texts,
    refuse_fact_misuse,
)
from runtime.store.rows import (
    MAX_ROWS,
    PARTS,
    Accept,
    Amend,
    Answered,
    Append,
    Commit,
    Committed,
    Counts,
    Enqueue,
    Entry,
    MessageKey,
    Pruned,
    Record,
    Snapshot,
    StoredDelivery,
    StoredEntry,
    StoredEvent,
    StoredMessage,
    StoredRecord,
    StoredSnapshot,
)
from runtime.store.text import refuse_half_character

LEAST_URGENT = 10

Done = Callable[[Committed | Exception], object]
"""Called with the outcome of a commit."""


class Entries(Protocol):
    """Reads entries; for callers that only look somebody or something up."""

    async def entry(self, kind: str, name: str) -> StoredEntry | None:
        """Give one entry; None if there is none."""
        ...

    async def entries(
        self, kind: str, owner: str | None = None, after: str = "", limit: int = 1000
    ) -> tuple[StoredEntry, ...]:
        """Give entries of a kind in the order of their ids.

        Args:
            kind: which ones.
            owner: only this one's; None for all.
            after: the id of the last one seen; empty from the first.
            limit: most rows to give.
        """
        ...


class Store(Entries, Protocol):
    """Durable rows: inbox, journal, outbox, records, facts.

    Implemented by `runtime/store/in_memory.py` (start there) and
    `runtime/sqlite/store.py`; both pass `tests/contracts/store/test_store.py`. Used
    from trio tasks; many may call at once. After `aclose` every call raises
    `StoreUnavailableError`.
    """

    @property
    def epoch(self) -> int:
        """The epoch on every row written; grows when another node takes over."""
        ...

    @property
    def healthy(self) -> bool:
        """False while the disk fails; readiness follows it.

        From a failed write until one succeeds, and from a failed read until `probe`
        has done it again.
        """
        ...

    @property
    def damaged(self) -> bool:
        """Whether damage was found in the database: this store takes nothing more."""
        ...

    @property
    def facts(self) -> Facts:
        """Reads facts; a commit changes them."""
        ...

    async def commit(self, commit: Commit) -> Committed:
        """Store one unit, and come back when it is durable.

        A commit that raises has written nothing, and none of its neighbours is
        touched by that. A caller that is cancelled while waiting learns nothing:
        the commit may still happen; committed again, it raises `DuplicateError`
        or `SequenceConflictError` if it did.

        Raises:
            DuplicateError: a dedup key was used before, or a row to be changed, or
                the message beside which something is said, has its terminal state
                already.
            DeliveryKnownError: the id of a delivery was used before, and all that the
                commit settles was open.
            SequenceConflictError: `expected` is not the stream's last event, or not
                the version of the entry.
            StoreUnavailableError: disk full or failing, the queue is full, or the
                store is closed; try again later. If the very flush failed and the
                process ends before a later write succeeds, the commit may turn up
                whole after the restart, as after a cancelled wait.
            CorruptError: the rows are damaged.
            MisuseError: no such row to change, a part outside 0 to 255, a priority
                outside 1 to 10, attempts below 0, text that is not Unicode, or more
                bytes than ever fit.
        """
        ...

    def submit(self, commit: Commit, done: Done) -> None:
        """Store one unit without waiting: the way for actors, which must not.

        `done` is called once, on the trio thread, with what `commit` would have
        returned or raised; never before this returns. What one caller submits is
        stored, and told of, in that order; only a refusal (overload, misuse, closed)
        may be told before the commits submitted earlier.

        Args:
            commit: what to store; `Commit.may_wait` says whether at once.
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

    async def snapshot(self, stream: str) -> StoredSnapshot | None:
        """Give the newest snapshot of a stream, if it has one."""
        ...

    async def unsettled(
        self, after: int = 0, limit: int = 1000
    ) -> tuple[StoredMessage, ...]:
        """Give messages `accepted` or `running` whose number is above `after`."""
        ...

    async def unsettled_keys(
        self, after: int = 0, limit: int = 1000
    ) -> tuple[MessageKey, ...]:
        """Give the keys of such messages; their bodies, however long, are not read."""
        ...

    async def answered(self, connector: str, platform_id: str) -> Answered | None:
        """Give the message with this dedup key and its deliveries; None: not known."""
        ...

    async def messages(
        self, keys: Collection[tuple[str, str]]
    ) -> tuple[StoredMessage, ...]:
        """Give the messages that have one of these dedup keys, as of one moment.

        Args:
            keys: connector and platform id of each; those that are not known are left
                out, and each message is given once, in no promised order.

        Raises:
            MisuseError: more than `MAX_ROWS` keys, or a text with half a character.
        """
        ...

    async def exchanges(
        self, stream: str, before: int = 0, limit: int = 100
    ) -> tuple[Answered, ...]:
        """Give messages of a stream with their deliveries, the newest first.

        Args:
            stream: theirs, `Accept.stream`.
            before: only numbers below this one; 0 from the newest.
            limit: most messages to give.
        """
        ...

    async def undelivered(
        self, connector: str | None = None, after: int = 0, limit: int = 1000
    ) -> tuple[StoredDelivery, ...]:
        """Give deliveries `pending` or `sending` whose number is above `after`.

        Args:
            connector: only this one's; None for all.
            after: number of the last one seen; 0 from the first.
            limit: most rows to give.
        """
        ...

    async def records(
        self, kind: str, owner: str | None = None, before: int = 0, limit: int = 1000
    ) -> tuple[StoredRecord, ...]:
        """Give records of a kind, those written last first.

        Args:
            kind: which ones.
            owner: only this one's; None for all.
            before: only numbers below this one; 0 from the newest.
            limit: most rows to give.
        """
        ...

    async def records_since(
        self, kind: str, at: float, number: int = 0, limit: int = 1000
    ) -> tuple[StoredRecord, ...]:
        """Give records of a kind in the order of their times, then numbers.

        Args:
            kind: which ones.
            at: only those written at these Unix seconds or later,
            number: but of those written right then only numbers above this one. To
                read on, give both of the last record.
            limit: most rows to give.
        """
        ...

    async def counts(self) -> Counts:
        """Count inbox and outbox rows by state, as of one moment."""
        ...

    async def prune(self, before: float, limit: int = 1000) -> Pruned:
        """Forget rows that were settled before `before`, the oldest first.

        With them go their dedup keys, so `before` must lie further back than any
        platform redelivers, and the events that are a message's own
        (`Append.inbox_id`). Other events, and records, are kept.

        Args:
            before: Unix seconds.
            limit: most rows to remove of each table; the events of one message go
                together, however many they are.
        """
        ...

    async def prune_records(self, kind: str, before: float, limit: int = 1000) -> int:
        """Forget records of a kind written before `before` (Unix seconds).

        Returns:
            How many; call again while it equals the limit.
        """
        ...

    async def was_changed_outside(self) -> bool:
        """Whether another program wrote since the last call; False the first time.

        So `callboard queue retry` reaches a running server.
        """
        ...

    async def probe(self) -> None:
        """Write something and remove it again, so that `healthy` is up to date.

        A read that failed is done again.

        Raises:
            StoreUnavailableError: the disk is still full or failing.
            CorruptError: what is to be read is still damaged.
        """
        ...

    async def aclose(self) -> None:
        """Close it; earlier commits are durable, also when this call is cancelled."""
        ...


def refuse_misuse(commit: Commit) -> None:
    """Refuse a commit that no engine could store.

    Raises:
        MisuseError: see `Store.commit`.
    """
    refuse_numbers(commit)
    if commit.facts:
        refuse_fact_misuse(commit.facts)
    times = [commit.at, *[row.at for row in commit.accepts]]
    times += [row.due_at for row in commit.defers]
    for at in times:
        if not math.isfinite(at):
            raise MisuseError(f"{at} is not a time; give Unix seconds")
    given = texts(commit)
    if not "".join(given).isascii():
        for text in given:
            refuse_half_character(text)


def refuse_numbers(commit: Commit) -> None:
    """Check the whole numbers of a commit.

    Raises:
        MisuseError: one is out of its range.
    """
    placed: tuple[Accept | Append | Enqueue | Entry | Record | Snapshot, ...]
    placed = (*commit.accepts, *commit.appends, *commit.deliveries)
    placed += (*commit.entries, *commit.records, *commit.snapshots)
    parts = [row.part for row in placed]
    parts += [row.part for row in commit.facts if isinstance(row, SaveFact)]
    for part in parts:
        if not 0 <= part < PARTS:
            raise MisuseError(f"part {part} is not in 0 to {PARTS - 1}; see `Commit`")
    for accept in commit.accepts:
        if not 1 <= accept.priority <= LEAST_URGENT:
            raise MisuseError(
                f"priority {accept.priority} is not in 1 to {LEAST_URGENT}"
            )
    made = [row.attempt for row in commit.claims]
    made += [row.attempts for row in commit.defers]
    made += [row.attempt for row in commit.send_attempts]
    made += [row.attempts for row in commit.receipts]
    if made and min(made) < 0:
        raise MisuseError(f"{min(made)} attempts cannot have been made")


def refuse_limit(limit: int) -> None:
    """Check a row limit.

    Raises:
        MisuseError: it is outside 1 to `MAX_ROWS`.
    """
    if not 1 <= limit <= MAX_ROWS:
        raise MisuseError(f"limit {limit} is not in 1 to {MAX_ROWS}; page with `after`")


def refuse_keys(keys: Collection[tuple[str, str]]) -> None:
    """Refuse dedup keys that no message has, and more of them than are read at once.

    Raises:
        MisuseError: what is wrong with them.
    """
    if len(keys) > MAX_ROWS:
        raise MisuseError(f"{len(keys)} keys; at most {MAX_ROWS} are read at once")
    for connector, platform_id in keys:
        refuse_half_character(connector + platform_id)


def texts(commit: Commit) -> list[str]:
    """All text of a commit, which must be Unicode to be stored."""
    found: list[str] = []
    for accept in commit.accepts:
        found += (accept.id, accept.connector, accept.platform_id, accept.stream)
    for append in commit.appends:
        found += (append.stream, append.inbox_id)
        found += [event.kind for event in append.events]
    for row in commit.deliveries:
        found += (row.delivery_id, row.connector, row.chat, row.correlation_id)
        found.append(row.beside)
    for record in commit.records:
        found += (record.kind, record.id, record.owner)
    for entry in commit.entries:
        found += (entry.kind, entry.id, entry.owner)
    if commit.facts:
        found += fact_texts(commit.facts)
    # What it changes and does not add.
    found += [row.stream for row in commit.snapshots]
    found += [row.inbox_id for row in commit.amends]
    found += [row.inbox_id for row in commit.claims]
    found += [row.delivery_id for row in commit.send_attempts]
    found += [each for x in commit.defers for each in (x.inbox_id, x.reason)]
    found += [each for x in commit.settles for each in (x.inbox_id, x.reason)]
    found += [each for x in commit.not_said for each in (x.delivery_id, x.why)]
    found += [each for x in commit.receipts for each in (x.delivery_id, x.receipt)]
    return found


def body_bytes(commit: Commit) -> int:
    """How many bytes the bodies of a commit have together."""
    kept: tuple[Accept | Amend | Enqueue | Entry | Record | Snapshot, ...]
    kept = (*commit.accepts, *commit.amends, *commit.deliveries)
    kept += (*commit.entries, *commit.records, *commit.snapshots)
    bodies = [row.body or b"" for row in kept]
    bodies += [event.body for row in commit.appends for event in row.events]
    of_facts = fact_bytes(commit.facts) if commit.facts else 0
    return sum(map(len, bodies)) + of_facts
