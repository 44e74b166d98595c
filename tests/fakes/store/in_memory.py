"""The store in memory, for tests in virtual time.

It keeps the promises of `runtime/sqlite/store.py`, but all rows are lost when the
process ends. It has no thread and no file, so tests may use it under a mock clock. It
never drops a row, so it is not for production. Faults are inputs: `fails_at` names the
commits that find the disk full, `reopened` is a restart. Facts are the twin of
`runtime/sql/facts.py`: how changes apply to them, and how a search finds them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator
from itertools import islice
from typing import TypeVar

import msgspec
import trio

from runtime.errors import (
    DeliveryKnownError,
    DuplicateError,
    KernelError,
    MisuseError,
    SequenceConflictError,
    StoreUnavailableError,
)
from runtime.store.facts import (
    FactChange,
    FactListing,
    FactLists,
    FactSearch,
    ForgetFacts,
    Found,
    FoundFact,
    PutVector,
    SaveFact,
    StoredFact,
    UseFacts,
    refuse_fact_limit,
    refuse_listing,
    refuse_listings,
    refuse_search,
    weight,
)
from runtime.store.port import Done, refuse_keys, refuse_limit, refuse_misuse
from runtime.store.rows import (
    ANY_KIND,
    MAX_ROWS,
    Accept,
    Answered,
    Append,
    Commit,
    Committed,
    Counts,
    Enqueue,
    Entry,
    Handover,
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
    kinds_of,
)
from runtime.store.text import refuse_half_character
from runtime.store.vectors import cosine
from runtime.telemetry.logs import EventLog


class FactRows:
    """All facts; takes back a commit that fails half way.

    Args:
        undo: what a failing commit takes back, last first.
    """

    def __init__(self, undo: list[Callable[[], object]]) -> None:
        self._undo = undo
        self._facts: dict[str, StoredFact] = {}
        self._scopes: dict[tuple[str, str], dict[str, StoredFact]] = {}
        """The same, by agent and scope."""

        self._vectors: dict[str, tuple[str, bytes]] = {}
        self._wanting: set[str] = set()
        self._number = 0

    def apply(self, changes: Iterable[FactChange], epoch: int, at: float) -> None:
        """Take in changes, one after the other.

        Raises:
            DuplicateError: an id is another scope's.
        """
        for change in changes:
            match change:
                case SaveFact():
                    self._save(change, epoch, at)
                case ForgetFacts():
                    for fact in [f for f in self._of(change) if fits(f, change)]:
                        self._drop(fact)
                case UseFacts():
                    for fact in [f for f in self._of(change) if f.id in change.ids]:
                        self._put(msgspec.structs.replace(fact, used_at=at))
                case PutVector():
                    self._put_vector(change)

    def _of(self, change: ForgetFacts | UseFacts) -> list[StoredFact]:
        return self._in(change.agent, change.scopes)

    def _in(self, agent: str, scopes: tuple[str, ...]) -> list[StoredFact]:
        there = [self._scopes.get((agent, each), {}) for each in dict.fromkeys(scopes)]
        return [fact for facts in there for fact in facts.values()]

    def _save(self, row: SaveFact, epoch: int, at: float) -> None:
        for fact in self._in(row.agent, (row.scope,)):
            has_key = row.key and (fact.kind, fact.key) == (row.kind, row.key)
            if fact.id == row.id or has_key:
                self._drop(fact)
        if row.id in self._facts:
            raise DuplicateError(
                f"fact {row.id!r} is of another scope; nobody else may replace it"
            )
        self._number += 1
        fact = StoredFact(
            number=self._number,
            id=row.id,
            agent=row.agent,
            scope=row.scope,
            kind=row.kind,
            category=row.category,
            key=row.key,
            text=row.text,
            words=row.words,
            provenance=row.provenance,
            part=row.part,
            epoch=epoch,
            created_at=at,
            used_at=at,
            expires_at=row.expires_at,
        )
        self._put(fact)
        if row.wants_vector:
            self._wanting.add(row.id)
            self._undo.append(lambda: self._wanting.discard(row.id))

    def _put(self, fact: StoredFact) -> None:
        before = self._facts.get(fact.id)
        self._set(fact)
        if before is None:
            self._undo.append(lambda: self._unset(fact))
        else:
            self._undo.append(lambda: self._set(before))

    def _set(self, fact: StoredFact) -> None:
        self._facts[fact.id] = fact
        self._scopes.setdefault((fact.agent, fact.scope), {})[fact.id] = fact

    def _unset(self, fact: StoredFact) -> None:
        del self._facts[fact.id]
        del self._scopes[fact.agent, fact.scope][fact.id]

    def _drop(self, fact: StoredFact) -> None:
        vector = self._vectors.pop(fact.id, None)
        was_wanting = fact.id in self._wanting
        self._wanting.discard(fact.id)
        self._unset(fact)

        def back() -> None:
            self._set(fact)
            if vector is not None:
                self._vectors[fact.id] = vector
            if was_wanting:
                self._wanting.add(fact.id)

        self._undo.append(back)

    def _put_vector(self, row: PutVector) -> None:
        fact = self._facts.get(row.id)
        if fact is None or (fact.agent, fact.scope) != (row.agent, row.scope):
            return
        before = self._vectors.get(row.id)
        self._vectors[row.id] = (row.space, row.vector)
        if before is None:
            self._undo.append(lambda: self._vectors.pop(row.id))
        else:
            self._undo.append(lambda: self._vectors.update({row.id: before}))

    def search(self, search: FactSearch) -> Found:
        """Find facts; see `runtime.store.facts.Facts`."""
        here = self._in(search.agent, search.scopes)
        there = [fact for fact in here if fact.kind in search.kinds]
        now = [fact for fact in there if is_valid(fact, search.now)]
        counts = tuple(sum(has(fact, word) for fact in here) for word in search.words)
        weights = [weight(len(there), count) for count in counts]
        evidence: dict[str, float] = {}
        for fact in now:
            for word, heavy in zip(search.words, weights, strict=True):
                if has(fact, word):
                    evidence[fact.id] = evidence.get(fact.id, 0.0) + heavy
        likeness = {
            fact.id: alike
            for fact in now
            if (alike := self._similarity(fact, search)) is not None
        }
        wanted = dict.fromkeys(top(evidence, search.limit))
        wanted |= dict.fromkeys(top(likeness, search.limit))
        found = tuple(
            FoundFact(self._facts[name], likeness.get(name)) for name in wanted
        )
        return Found(found, len(there), counts)

    def _similarity(self, fact: StoredFact, search: FactSearch) -> float | None:
        space, vector = self._vectors.get(fact.id, ("", b""))
        is_alike = space == search.space and len(vector) == len(search.vector)
        return cosine(vector, search.vector) if vector and is_alike else None

    def listed(self, listing: FactListing) -> tuple[StoredFact, ...]:
        """List facts by kind, category and key; see `runtime.store.facts.Facts`."""
        found = [
            fact
            for fact in self._in(listing.agent, listing.scopes)
            if is_valid(fact, listing.now) and fits(fact, listing)
        ]
        if listing.is_least_used_first:
            found.sort(key=lambda fact: (fact.used_at, fact.number))
        else:
            found.sort(key=lambda fact: fact.number, reverse=True)
        return tuple(found[: listing.limit])

    def lists(self, listings: tuple[FactListing, ...]) -> FactLists:
        """Take several listings at once; see `runtime.store.facts.Facts`."""
        first = listings[0]
        is_blank = not self._in(first.agent, first.scopes)
        return FactLists(tuple(map(self.listed, listings)), is_blank=is_blank)

    def unembedded(
        self, agent: str, space: str, after: int, limit: int
    ) -> tuple[StoredFact, ...]:
        """Give facts without an embedding; see `runtime.store.facts.Facts`."""
        found = [
            fact
            for fact in self._facts.values()
            if fact.agent == agent
            and fact.number > after
            and fact.id in self._wanting
            and self._vectors.get(fact.id, ("", b""))[0] != space
        ]
        return tuple(sorted(found, key=lambda fact: fact.number)[:limit])

    def counts(self, agent: str) -> dict[tuple[str, str], int]:
        """Count an agent's facts by kind and category."""
        return dict(
            Counter(
                (fact.kind, fact.category)
                for fact in self._facts.values()
                if fact.agent == agent
            )
        )

    def prune(self, now: float, limit: int) -> int:
        """Forget expired facts, those that expired first first."""
        old = sorted(
            (fact.expires_at, fact.number, fact)
            for fact in self._facts.values()
            if not is_valid(fact, now)
        )[:limit]
        for _, _, fact in old:
            self._drop(fact)
        self._undo.clear()
        return len(old)


def is_valid(fact: StoredFact, now: float) -> bool:
    """Whether a fact has not expired."""
    return not fact.expires_at or fact.expires_at > now


def fits(fact: StoredFact, filters: ForgetFacts | FactListing) -> bool:
    """Whether a fact fits each filter that is not empty."""
    return (
        (not filters.ids or fact.id in filters.ids)
        and (not filters.kinds or fact.kind in filters.kinds)
        and (not filters.categories or fact.category in filters.categories)
        and (not filters.keys or fact.key in filters.keys)
    )


def has(fact: StoredFact, word: str) -> bool:
    """Whether a word of a fact begins with this one."""
    return any(own.startswith(word) for own in fact.words)


def top(evidence: dict[str, float], most: int) -> list[str]:
    """Give the names with the most evidence."""
    return sorted(evidence, key=lambda name: (-evidence[name], name))[:most]


LOG = EventLog("store")

K = TypeVar("K")
V = TypeVar("V")


class Rows:
    """All rows; takes back a commit that fails half way."""

    def __init__(self) -> None:
        self.inbox: dict[str, StoredMessage] = {}
        self.dedup: dict[tuple[str, str], str] = {}
        self.journal: dict[str, list[StoredEvent]] = {}
        self.snapshots: dict[str, StoredSnapshot] = {}
        self.outbox: dict[str, StoredDelivery] = {}
        self.records: dict[tuple[str, str], StoredRecord] = {}
        self.entries: dict[tuple[str, str], StoredEntry] = {}
        self.streams_of: dict[str, set[str]] = {}
        """By message: the streams that are forgotten with it."""

        self.handed: dict[tuple[int, str], Handover] = {}
        """What waits for the owners of other parts, by part and key."""

        self.news: list[set[str]] = []
        """Of each store on these rows: the kinds that others have changed."""

        self._numbers: Counter[str] = Counter()
        self._undo: list[Callable[[], object]] = []
        self.facts = FactRows(self._undo)

    def apply(
        self, commit: Commit, epoch: int, parts: Collection[int] | None = None
    ) -> Committed:
        """Take in all of a commit, or nothing and raise.

        Args:
            parts: what is handed over to these is taken in at once; None: to any.
        """
        try:
            committed = self._apply(commit, epoch, commit.at)
            if commit.handovers:
                waiting = self._hand_over(commit, epoch, parts)
                committed = msgspec.structs.replace(committed, waiting=waiting)
        except KernelError:
            while self._undo:
                self._undo.pop()()
            raise
        self._undo.clear()
        return committed

    def _apply(self, commit: Commit, epoch: int, at: float) -> Committed:
        accepted = tuple([self._accept(row, epoch) for row in commit.accepts])
        for amend in commit.amends:
            self._change_message(amend.inbox_id, body=amend.body)
        for claim in commit.claims:
            self._change_message(
                claim.inbox_id, state="running", attempts=claim.attempt, started_at=at
            )
        for defer in commit.defers:
            self._change_message(
                defer.inbox_id,
                state="accepted",
                attempts=defer.attempts,
                due_at=defer.due_at,
                reason=defer.reason,
                started_at=at,
            )
        sequences = tuple([self._append(row, epoch, at) for row in commit.appends])
        for snapshot in commit.snapshots:
            self._keep_snapshot(snapshot, epoch, at)
        for settle in commit.settles:
            self._change_message(
                settle.inbox_id, state=settle.state, reason=settle.reason, settled_at=at
            )
        enqueued = tuple([self._enqueue(row, epoch, at) for row in commit.deliveries])
        self._change_deliveries(commit, at)
        for record in commit.records:
            self._write_record(record, epoch, at)
        for entry in commit.entries:
            self._write_entry(entry, epoch, at)
        self.facts.apply(commit.facts, epoch, at)
        return Committed(accepted, sequences, enqueued)

    def _hand_over(
        self, commit: Commit, epoch: int, parts: Collection[int] | None
    ) -> tuple[int, ...]:
        waiting: list[int] = []
        for handed in commit.handovers:
            if parts is None or handed.part in parts:
                self._apply(handed.rows, epoch, handed.rows.at)
                continue
            key = (handed.part, handed.key)
            if key not in self.handed:
                self._put(self.handed, key, handed)
            waiting.append(handed.part)
        return tuple(waiting)

    def _change_deliveries(self, commit: Commit, at: float) -> None:
        for attempt in commit.send_attempts:
            self._change_delivery(
                attempt.delivery_id,
                state="sending",
                attempts=attempt.attempt,
                receipt="",
            )
        for unsaid in commit.not_said:
            self._change_delivery(
                unsaid.delivery_id, state="pending", receipt=unsaid.why
            )
        for receipt in commit.receipts:
            self._change_delivery(
                receipt.delivery_id,
                state=receipt.state,
                attempts=receipt.attempts,
                receipt=receipt.receipt,
                settled_at=at,
            )

    def _put(self, rows: dict[K, V], key: K, row: V) -> None:
        before = rows.get(key)
        rows[key] = row
        if before is None:
            self._undo.append(lambda: rows.pop(key))
        else:
            self._undo.append(lambda: rows.update({key: before}))

    def _next(self, table: str) -> int:
        self._numbers[table] += 1
        return self._numbers[table]

    def _accept(self, row: Accept, epoch: int) -> int:
        key = (row.connector, row.platform_id)
        if row.id in self.inbox or key in self.dedup:
            raise DuplicateError(
                f"message {row.id!r} ({row.connector}/{row.platform_id}) was accepted"
                " before; acknowledge it and do no more"
            )
        message = StoredMessage(
            number=self._next("inbox"),
            id=row.id,
            connector=row.connector,
            platform_id=row.platform_id,
            part=row.part,
            epoch=epoch,
            stream=row.stream,
            body=row.body,
            at=row.at,
            priority=row.priority,
            state="accepted",
            attempts=0,
            started_at=0.0,
            due_at=0.0,
            reason="",
            settled_at=0.0,
        )
        self._put(self.inbox, row.id, message)
        self._put(self.dedup, key, row.id)
        return message.number

    def _append(self, row: Append, epoch: int, at: float) -> int:
        events = self.journal.setdefault(row.stream, [])
        last = len(events)
        if last != row.expected:
            raise SequenceConflictError(
                f"stream {row.stream!r} ends at {last}, not at {row.expected}: another"
                " writer was first; read it again"
            )
        for sequence, event in enumerate(row.events, last + 1):
            events.append(
                StoredEvent(
                    row.stream, sequence, event.kind, event.body, row.part, epoch, at
                )
            )
            self._undo.append(events.pop)
        self._own(row)
        return len(events)

    def _own(self, row: Append) -> None:
        """Note which message a stream belongs to, if it does."""
        if row.inbox_id and row.stream not in self.streams_of.get(row.inbox_id, ()):
            owned = self.streams_of.setdefault(row.inbox_id, set())
            owned.add(row.stream)
            self._undo.append(lambda: owned.discard(row.stream))

    def _keep_snapshot(self, row: Snapshot, epoch: int, at: float) -> None:
        newest = self.snapshots.get(row.stream)
        if newest is None or newest.sequence <= row.sequence:
            stored = StoredSnapshot(
                row.stream, row.sequence, row.schema, row.body, row.part, epoch, at
            )
            self._put(self.snapshots, row.stream, stored)

    def _enqueue(self, row: Enqueue, epoch: int, at: float) -> int:
        beside = self.inbox.get(row.beside)
        if beside is not None and not is_open(beside):
            raise _is_settled(beside)
        if row.delivery_id in self.outbox:
            raise DeliveryKnownError(
                f"delivery {row.delivery_id!r} was enqueued before; it is on its way"
            )
        delivery = StoredDelivery(
            number=self._next("outbox"),
            id=row.delivery_id,
            connector=row.connector,
            chat=row.chat,
            correlation_id=row.correlation_id,
            part=row.part,
            epoch=epoch,
            body=row.body,
            at=at,
            state="pending",
            attempts=0,
            receipt="",
            settled_at=0.0,
        )
        self._put(self.outbox, row.delivery_id, delivery)
        return delivery.number

    def _change_message(self, name: str, **changes: object) -> None:
        row = self.inbox.get(name)
        if row is None:
            raise MisuseError(f"no message {name!r} was ever accepted")
        if not is_open(row):
            raise _is_settled(row)
        self._put(self.inbox, name, msgspec.structs.replace(row, **changes))

    def _change_delivery(self, name: str, **changes: object) -> None:
        row = self.outbox.get(name)
        if row is None:
            raise MisuseError(f"no delivery {name!r} was ever enqueued")
        if not is_open(row):
            raise DuplicateError(
                f"delivery {name!r} is {row.state} already and stays so"
            )
        self._put(self.outbox, name, msgspec.structs.replace(row, **changes))

    def _write_record(self, row: Record, epoch: int, at: float) -> None:
        key = (row.kind, row.id)
        stored = StoredRecord(
            number=self._next("record"),
            kind=row.kind,
            id=row.id,
            owner=row.owner,
            part=row.part,
            epoch=epoch,
            body=row.body,
            at=at,
        )
        self._put(self.records, key, stored)

    def _write_entry(self, row: Entry, epoch: int, at: float) -> None:
        key = (row.kind, row.id)
        before = self.entries.get(key)
        version = 0 if before is None else before.version
        if row.expected is not None and row.expected != version:
            raise SequenceConflictError(
                f"{row.kind} {row.id!r} is at version {version}, not at"
                f" {row.expected}: another writer was first; read it again"
            )
        if row.body is not None:
            stored = StoredEntry(
                *key, row.owner, row.part, epoch, version + 1, row.body, at
            )
            self._put(self.entries, key, stored)
        elif before is not None:
            del self.entries[key]
            self._undo.append(lambda: self.entries.update({key: before}))

    def prune(self, before: float, limit: int) -> Pruned:
        """Forget settled rows of each table, those settled longest ago first."""
        messages = sorted(
            (row.settled_at, row.number, row)
            for row in self.inbox.values()
            if not is_open(row) and row.settled_at < before
        )[:limit]
        deliveries = sorted(
            (row.settled_at, row.number, row.id)
            for row in self.outbox.values()
            if not is_open(row) and row.settled_at < before
        )[:limit]
        removed = events = 0
        for _, _, message in messages:
            count = self._count_events(message.id)
            if events and events + count > limit:
                break
            events += count
            removed += 1
            self._forget(message)
        for _, _, delivery_id in deliveries:
            del self.outbox[delivery_id]
        return Pruned(removed, len(deliveries), events)

    def _count_events(self, inbox_id: str) -> int:
        streams = self.streams_of.get(inbox_id, ())
        return sum(len(self.journal.get(stream, ())) for stream in streams)

    def _forget(self, message: StoredMessage) -> None:
        del self.inbox[message.id]
        del self.dedup[message.connector, message.platform_id]
        for stream in self.streams_of.pop(message.id, ()):
            self.journal.pop(stream, None)

    def prune_records(self, kind: str, before: float, limit: int) -> int:
        """Forget records of a kind, those written longest ago first."""
        old = sorted(
            (row.at, row.number, row.id)
            for row in self.records.values()
            if row.kind == kind and row.at < before
        )[:limit]
        for _, _, record_id in old:
            del self.records[kind, record_id]
        return len(old)


def is_open(row: StoredMessage | StoredDelivery) -> bool:
    """Whether a row has no terminal state yet."""
    return row.state in ("accepted", "running", "pending", "sending")


def _is_settled(row: StoredMessage) -> DuplicateError:
    return DuplicateError(f"message {row.id!r} is {row.state} already and stays so")


class MemoryStore:
    """Rows in memory; see `runtime.store.Store` for what may be relied on.

    Args:
        fails_at: numbers of the commits, from 1, that raise
            `StoreUnavailableError` and write nothing.
        parts: what is handed over to these parts is stored at once; None: to any.
        beside: a store on the same rows, as that of another node.

    Attributes:
        changed_outside: set by a test that plays another program; what the next
            `changes_outside` tells.
    """

    damaged = False
    """There is no database that could be."""

    may_be_handed = True
    """Tests give parts to stores; see the port."""

    def __init__(
        self,
        *,
        epoch: int = 0,
        fails_at: Collection[int] = (),
        parts: Collection[int] | None = None,
        beside: MemoryStore | None = None,
    ) -> None:
        self._epoch = epoch
        self._fails_at = fails_at
        self._commits = 0
        self._healthy = True
        self._closed = False
        self._rows: Rows = Rows() if beside is None else beside._rows
        self.parts = parts
        self._news: set[str] = set()
        self._rows.news.append(self._news)
        self.changed_outside = False

    @property
    def epoch(self) -> int:
        """The epoch that is written on every row."""
        return self._epoch

    @property
    def healthy(self) -> bool:
        """False from a failed write until one succeeds."""
        return self._healthy

    @property
    def facts(self) -> MemoryFacts:
        """What is remembered; see the port."""
        return MemoryFacts(self._rows.facts, self._refuse_closed)

    def reopened(self) -> MemoryStore:
        """Give a new store with these rows, as after a restart; this one is closed."""
        self._closed = True
        self._rows.news.remove(self._news)
        return MemoryStore(epoch=self._epoch, parts=self.parts, beside=self)

    async def commit(self, commit: Commit) -> Committed:
        """Store one unit; see the port."""
        refuse_misuse(commit)
        await self._enter()
        self._write()
        return self._apply(commit)

    def submit(self, commit: Commit, done: Done) -> None:
        """Store one unit without waiting; see the port."""
        outcome: Committed | Exception
        try:
            refuse_misuse(commit)
            self._refuse_closed()
            self._write()
            outcome = self._apply(commit)
        except KernelError as error:
            outcome = error
        trio.lowlevel.current_trio_token().run_sync_soon(done, outcome)

    def _apply(self, commit: Commit) -> Committed:
        committed = self._rows.apply(commit, self._epoch, self.parts)
        self._tell_others(commit)
        return committed

    def _tell_others(self, commit: Commit) -> None:
        """Tell the other stores on these rows what kinds have changed."""
        if len(self._rows.news) > 1:
            kinds = kinds_of(commit, self.parts)
            for each in self._rows.news:
                if each is not self._news:
                    each.update(kinds)

    async def read(
        self, stream: str, after: int = 0, limit: int = 1000
    ) -> tuple[StoredEvent, ...]:
        """Give the events of a stream; see the port."""
        refuse_limit(limit)
        refuse_half_character(stream)
        await self._enter()
        first = max(after, 0)
        return tuple(self._rows.journal.get(stream, [])[first : first + limit])

    async def snapshot(self, stream: str) -> StoredSnapshot | None:
        """Give the newest snapshot of a stream; see the port."""
        refuse_half_character(stream)
        await self._enter()
        return self._rows.snapshots.get(stream)

    async def unsettled(
        self, after: int = 0, limit: int = 1000
    ) -> tuple[StoredMessage, ...]:
        """Give messages not yet settled; see the port."""
        refuse_limit(limit)
        await self._enter()
        return tuple(islice(self._unsettled(after), limit))

    async def unsettled_keys(
        self, after: int = 0, limit: int = 1000
    ) -> tuple[MessageKey, ...]:
        """Give the keys of messages not yet settled; see the port."""
        refuse_limit(limit)
        await self._enter()
        return tuple(
            MessageKey(row.number, row.id, row.connector, row.platform_id, row.part)
            for row in islice(self._unsettled(after), limit)
        )

    def _unsettled(self, after: int) -> Iterator[StoredMessage]:
        for row in self._rows.inbox.values():
            if is_open(row) and row.number > after:
                yield row

    async def answered(self, connector: str, platform_id: str) -> Answered | None:
        """Give what became of a message; see the port."""
        refuse_half_character(connector + platform_id)
        await self._enter()
        name = self._rows.dedup.get((connector, platform_id))
        return None if name is None else self._answered(self._rows.inbox[name])

    async def messages(
        self, keys: Collection[tuple[str, str]]
    ) -> tuple[StoredMessage, ...]:
        """Give the messages with these keys; see the port."""
        refuse_keys(keys)
        await self._enter()
        known = (self._rows.dedup.get(key) for key in dict.fromkeys(keys))
        return tuple(self._rows.inbox[name] for name in known if name is not None)

    def _answered(self, message: StoredMessage) -> Answered:
        found = (
            row
            for row in self._rows.outbox.values()
            if row.correlation_id == message.id
        )
        return Answered(message, tuple(islice(found, MAX_ROWS)))

    async def exchanges(
        self, stream: str, before: int = 0, limit: int = 100
    ) -> tuple[Answered, ...]:
        """Give messages of a stream with what became of each; see the port."""
        refuse_limit(limit)
        refuse_half_character(stream)
        await self._enter()
        found = (
            row
            for row in reversed(self._rows.inbox.values())
            if row.stream == stream and (not before or row.number < before)
        )
        return tuple(self._answered(row) for row in islice(found, limit))

    async def undelivered(
        self, connector: str | None = None, after: int = 0, limit: int = 1000
    ) -> tuple[StoredDelivery, ...]:
        """Give deliveries not yet settled; see the port."""
        refuse_limit(limit)
        refuse_half_character(connector or "")
        await self._enter()
        found = (
            row
            for row in self._rows.outbox.values()
            if is_open(row)
            and row.number > after
            and connector in (None, row.connector)
        )
        return tuple(islice(found, limit))

    async def records(
        self, kind: str, owner: str | None = None, before: int = 0, limit: int = 1000
    ) -> tuple[StoredRecord, ...]:
        """Give records of a kind; see the port."""
        refuse_limit(limit)
        refuse_half_character(kind + (owner or ""))
        await self._enter()
        found = [
            row
            for row in self._rows.records.values()
            if row.kind == kind
            and owner in (None, row.owner)
            and (before == 0 or row.number < before)
        ]
        found.sort(key=lambda row: row.number, reverse=True)
        return tuple(found[:limit])

    async def records_since(
        self, kind: str, at: float, number: int = 0, limit: int = 1000
    ) -> tuple[StoredRecord, ...]:
        """Give records of a kind in the order of their times; see the port."""
        refuse_limit(limit)
        refuse_half_character(kind)
        await self._enter()
        found = [
            row
            for row in self._rows.records.values()
            if row.kind == kind and (row.at, row.number) > (at, number)
        ]
        found.sort(key=lambda row: (row.at, row.number))
        return tuple(found[:limit])

    async def entry(self, kind: str, name: str) -> StoredEntry | None:
        """Give one entry; see the port."""
        refuse_half_character(kind + name)
        await self._enter()
        return self._rows.entries.get((kind, name))

    async def entries(
        self, kind: str, owner: str | None = None, after: str = "", limit: int = 1000
    ) -> tuple[StoredEntry, ...]:
        """Give entries of a kind in the order of their ids; see the port."""
        refuse_limit(limit)
        refuse_half_character(kind + (owner or "") + after)
        await self._enter()
        found = [
            row
            for row in self._rows.entries.values()
            if row.kind == kind and owner in (None, row.owner) and row.id > after
        ]
        found.sort(key=lambda row: row.id)
        return tuple(found[:limit])

    async def counts(self) -> Counts:
        """Count rows by state; see the port."""
        await self._enter()
        return Counts(
            dict(Counter(row.state for row in self._rows.inbox.values())),
            dict(Counter(row.state for row in self._rows.outbox.values())),
        )

    async def prune(self, before: float, limit: int = 1000) -> Pruned:
        """Forget what is long settled; see the port."""
        refuse_limit(limit)
        await self._enter()
        return self._rows.prune(before, limit)

    async def prune_records(self, kind: str, before: float, limit: int = 1000) -> int:
        """Forget old records of a kind; see the port."""
        refuse_limit(limit)
        refuse_half_character(kind)
        await self._enter()
        return self._rows.prune_records(kind, before, limit)

    async def take_over(self, limit: int = 1000) -> frozenset[str]:
        """Store what was handed over to our parts; see the port."""
        refuse_limit(limit)
        await self._enter()
        kinds: set[str] = set()
        for handed in list(self._rows.handed.values())[:limit]:
            if self.parts is None or handed.part in self.parts:
                kinds |= self._take(handed)
        return frozenset(kinds)

    def _take(self, handed: Handover) -> set[str]:
        del self._rows.handed[handed.part, handed.key]
        try:
            self._apply(handed.rows)
        except DuplicateError:
            return set()  # done before
        except (MisuseError, SequenceConflictError) as error:
            LOG.fault("what was handed over could not be stored", error, key=handed.key)
            return set()
        return kinds_of(handed.rows)

    async def changes_outside(self) -> frozenset[str]:
        """Name the kinds of rows that others have changed; see the port.

        Others are stores on the same rows, and a test that plays another program.
        """
        await self._enter()
        if self.changed_outside:
            self._news.add(ANY_KIND)
        self.changed_outside, found = False, frozenset(self._news)
        self._news.clear()
        return found

    async def probe(self) -> None:
        """Write a probe; it counts as a commit for `fails_at`."""
        await self._enter()
        self._write()

    async def aclose(self) -> None:
        """Close it; `reopened` still gives the rows to a new store."""
        self._closed = True
        await trio.lowlevel.checkpoint()

    def _refuse_closed(self) -> None:
        if self._closed:
            raise StoreUnavailableError("the store in memory is closed; open a new one")

    async def _enter(self) -> None:
        self._refuse_closed()
        await trio.lowlevel.checkpoint()

    def _write(self) -> None:
        self._commits += 1
        self._healthy = self._commits not in self._fails_at
        if not self._healthy:
            raise StoreUnavailableError(
                f"commit {self._commits} was told to find the disk full; try again"
            )


class MemoryFacts:
    """Facts in memory; see `runtime.store.facts.Facts` for what may be relied on.

    Args:
        enter: raises if the store is closed.
    """

    def __init__(self, rows: FactRows, enter: Callable[[], None]) -> None:
        self._rows = rows
        self._enter = enter

    async def search(self, search: FactSearch) -> Found:
        """Find facts; see the port."""
        refuse_search(search)
        await self._pause()
        return self._rows.search(search)

    async def listed(self, listing: FactListing) -> tuple[StoredFact, ...]:
        """Give facts by what they are called; see the port."""
        refuse_listing(listing)
        await self._pause()
        return self._rows.listed(listing)

    async def lists(self, listings: tuple[FactListing, ...]) -> FactLists:
        """Take several listings at once; see the port."""
        refuse_listings(listings)
        await self._pause()
        return self._rows.lists(listings)

    async def unembedded(
        self, agent: str, space: str, after: int = 0, limit: int = 100
    ) -> tuple[StoredFact, ...]:
        """Give facts that want a vector; see the port."""
        refuse_fact_limit(limit)
        refuse_half_character(agent + space)
        await self._pause()
        return self._rows.unembedded(agent, space, after, limit)

    async def counts(self, agent: str) -> dict[tuple[str, str], int]:
        """Count an agent's facts; see the port."""
        refuse_half_character(agent)
        await self._pause()
        return self._rows.counts(agent)

    async def prune(self, now: float, limit: int = 1000) -> int:
        """Forget what has expired; see the port."""
        refuse_fact_limit(limit)
        await self._pause()
        return self._rows.prune(now, limit)

    async def _pause(self) -> None:
        self._enter()
        await trio.lowlevel.checkpoint()
