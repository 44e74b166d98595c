"""The port of durable storage; `rows.py` has its shapes.

It names no engine: `runtime/sql/store.py` keeps the rows in SQLite or PostgreSQL, and a
store in memory for tests passes the same `tests/contracts/store/test_store.py`. A store
has no clock: every time is Unix seconds given by the caller.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection
from typing import NoReturn, Protocol

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
    Answered,
    Commit,
    Committed,
    Counts,
    Enqueue,
    Entry,
    Handover,
    MessageKey,
    Pruned,
    Record,
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
            owner: only this one's; None for all.
            after: the id of the last one seen; empty from the first.
            limit: most rows to give.
        """
        ...


class Store(Entries, Protocol):
    """Durable rows: inbox, journal, outbox, records, facts.

    Implemented by `tests/fakes/store/in_memory.py` (start there) and
    `runtime/sql/store.py`; both pass `tests/contracts/store/test_store.py`. Used
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
    def may_be_handed(self) -> bool:
        """Whether rows may wait for the owners of other parts; see `take_over`."""
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

    async def take_over(self, limit: int = 1000) -> frozenset[str]:
        """Store what was handed over to the parts of this process, and waits.

        Args:
            limit: most hand-overs to look at, the oldest first.

        Returns:
            What kinds of rows came, as `kinds_of` names them; call again until there
            are none.
        """
        ...

    async def changes_outside(self) -> frozenset[str]:
        """Name the kinds of rows that others have changed since the last call.

        None the first time. So `callboard queue retry` reaches a running server, and
        one node what another one holds in memory.

        Returns:
            The kinds, as far as nodes tell each other of them; `ANY_KIND` where
            another program wrote.
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


def refuse_misuse(commit: Commit) -> int:  # noqa: C901, PLR0912, PLR0915  a loop for each kind of row
    """Refuse a commit that no engine could store.

    Why one pass: a commit has rows of few kinds, and its writers share one thread. To
    look at each kind for each check took 3.6 µs for a message, this takes 0.6.

    Returns:
        How many bytes its bodies have together.

    Raises:
        MisuseError: see `Store.commit`.
    """
    texts: list[str] = []
    size = 0
    if not math.isfinite(commit.at):
        _refuse_time(commit.at)
    for accept in commit.accepts:
        texts += (accept.id, accept.connector, accept.platform_id, accept.stream)
        if not 0 <= accept.part < PARTS:
            _refuse_part(accept.part)
        if not math.isfinite(accept.at):
            _refuse_time(accept.at)
        size += len(accept.body)
        if not 1 <= accept.priority <= LEAST_URGENT:
            raise MisuseError(
                f"priority {accept.priority} is not in 1 to {LEAST_URGENT}"
            )
    for amend in commit.amends:
        texts.append(amend.inbox_id)
        size += len(amend.body)
    for claim in commit.claims:
        texts.append(claim.inbox_id)
        if claim.attempt < 0:
            _refuse_attempts(claim.attempt)
    for defer in commit.defers:
        texts += (defer.inbox_id, defer.reason)
        if not math.isfinite(defer.due_at):
            _refuse_time(defer.due_at)
        if defer.attempts < 0:
            _refuse_attempts(defer.attempts)
    for append in commit.appends:
        texts += (append.stream, append.inbox_id)
        if not 0 <= append.part < PARTS:
            _refuse_part(append.part)
        for event in append.events:
            texts.append(event.kind)
            size += len(event.body)
    for snapshot in commit.snapshots:
        texts.append(snapshot.stream)
        if not 0 <= snapshot.part < PARTS:
            _refuse_part(snapshot.part)
        size += len(snapshot.body)
    for row in commit.deliveries:
        texts += (row.delivery_id, row.connector, row.chat, row.correlation_id)
        texts.append(row.beside)
        if not 0 <= row.part < PARTS:
            _refuse_part(row.part)
        size += len(row.body)
    for settle in commit.settles:
        texts += (settle.inbox_id, settle.reason)
    for sent in commit.send_attempts:
        texts.append(sent.delivery_id)
        if sent.attempt < 0:
            _refuse_attempts(sent.attempt)
    for unsaid in commit.not_said:
        texts += (unsaid.delivery_id, unsaid.why)
    for receipt in commit.receipts:
        texts += (receipt.delivery_id, receipt.receipt)
        if receipt.attempts < 0:
            _refuse_attempts(receipt.attempts)
    for record in commit.records:
        texts += (record.kind, record.id, record.owner)
        if not 0 <= record.part < PARTS:
            _refuse_part(record.part)
        size += len(record.body)
    for entry in commit.entries:
        texts += (entry.kind, entry.id, entry.owner)
        if not 0 <= entry.part < PARTS:
            _refuse_part(entry.part)
        size += len(entry.body or b"")
    if commit.facts:
        refuse_fact_misuse(commit.facts)
        texts += fact_texts(commit.facts)
        for fact in commit.facts:
            if isinstance(fact, SaveFact) and not 0 <= fact.part < PARTS:
                _refuse_part(fact.part)
        size += fact_bytes(commit.facts)
    for handed in commit.handovers:
        size += refuse_handover(handed)
    if not "".join(texts).isascii():
        for text in texts:
            refuse_half_character(text)
    return size


def refuse_handover(handed: Handover) -> int:
    """Refuse a hand-over that nobody could store later.

    Returns:
        How many bytes its bodies have together.

    Raises:
        MisuseError: a row is of another part, or changes one that is there.
    """
    rows = handed.rows
    size = refuse_misuse(rows)
    refuse_half_character(handed.key)
    placed: tuple[Accept | Enqueue | Entry | Record, ...]
    placed = (*rows.accepts, *rows.deliveries, *rows.records, *rows.entries)
    parts = {row.part for row in placed} | {handed.part}
    parts |= {row.part for row in rows.facts if isinstance(row, SaveFact)}
    if len(parts) > 1 or not 0 <= min(handed.part, handed.source) < PARTS:
        raise MisuseError(f"{handed.key!r} hands rows of parts {parts} to one part")
    is_more = (
        rows.amends
        or rows.claims
        or rows.defers
        or rows.appends
        or rows.snapshots
        or rows.settles
        or rows.send_attempts
        or rows.not_said
        or rows.receipts
        or rows.handovers
    )
    if is_more or not handed.key:
        raise MisuseError(
            f"{handed.key!r} hands over more than new messages, deliveries, records,"
            " entries and facts"
        )
    return size


def _refuse_time(at: float) -> NoReturn:
    raise MisuseError(f"{at} is not a time; give Unix seconds")


def _refuse_part(part: int) -> NoReturn:
    raise MisuseError(f"part {part} is not in 0 to {PARTS - 1}; see `Commit`")


def _refuse_attempts(made: int) -> NoReturn:
    raise MisuseError(f"{made} attempts cannot have been made")


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
