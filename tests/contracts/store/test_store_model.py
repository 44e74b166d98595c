"""Proves that every store agrees with a model of a few dicts, whatever is done to it.

Hypothesis makes up commits that are right, stale, repeated or out of place; model
and store must give the same answer or the same error, and hold the same rows. The
store may be closed and opened again at any moment.
"""

from __future__ import annotations

import copy
import itertools
import shutil
import tempfile
import threading
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TypeVar

import msgspec
import pytest
import trio
from hypothesis import settings, strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    invariant,
    rule,
    run_state_machine_as_test,
)

from runtime.errors import (
    DuplicateError,
    KernelError,
    MisuseError,
    SequenceConflictError,
)
from runtime.store.rows import (
    Amend,
    Append,
    Claim,
    Commit,
    Defer,
    InboxState,
    NewEvent,
    NotSaid,
    Pruned,
    Receipt,
    ReceivedState,
    SendAttempt,
    Settle,
    SettledState,
)
from tests.support.store.engines import make_engine
from tests.support.store.rows import heard, noting, saying, summing_up
from tests.support.tiers import examples

T = TypeVar("T")

NAMES = st.sampled_from(["m1", "m2", "m3", "m4", "m5"])
PLATFORM_IDS = st.sampled_from(["p1", "p2", "p3", "p4", "p5", "p6"])
STREAMS = st.sampled_from(["a", "b"])
CONNECTORS = st.sampled_from(["cli", "web"])
STATES: tuple[SettledState, ...] = ("replied", "dropped", "cancelled", "dead")
SETTLED = st.sampled_from(STATES)
OPEN = ("accepted", "running", "pending", "sending")
OWNERS = st.sampled_from(["anna", "ben"])
KINDS = st.sampled_from(["audit", "fact"])
RECEIVED: st.SearchStrategy[ReceivedState] = st.sampled_from(
    ("sent", "unknown", "dead")
)


def few(strategy: st.SearchStrategy[T]) -> st.SearchStrategy[tuple[T, ...]]:
    """Make none to three of something, mostly one."""
    return st.lists(strategy, max_size=3).map(tuple)


def append_at(stream: str, expected: int, count: int) -> Append:
    return Append(
        stream=stream,
        expected=expected,
        part=0,
        events=tuple(NewEvent("said", bytes([number])) for number in range(count)),
    )


COMMITS = st.builds(
    Commit,
    at=st.integers(0, 9).map(float),
    accepts=few(
        st.builds(heard, NAMES, connector=CONNECTORS, platform_id=PLATFORM_IDS)
    ),
    amends=few(st.builds(Amend, NAMES, st.just(b"{}"))),
    claims=few(st.builds(Claim, NAMES, st.integers(0, 3))),
    defers=few(st.builds(Defer, NAMES, st.integers(0, 3), st.just(9.0))),
    appends=few(st.builds(append_at, STREAMS, st.integers(0, 6), st.integers(0, 2))),
    snapshots=few(st.builds(summing_up, STREAMS, st.integers(0, 6))),
    deliveries=few(st.builds(saying, NAMES, connector=CONNECTORS)),
    settles=few(st.builds(Settle, NAMES, SETTLED)),
    send_attempts=few(st.builds(SendAttempt, NAMES, st.integers(0, 3))),
    not_said=few(st.builds(NotSaid, NAMES, st.just("busy"))),
    receipts=few(st.builds(Receipt, NAMES, RECEIVED)),
    records=few(st.builds(noting, NAMES, kind=KINDS, owner=OWNERS)),
)
"""Any order of any rows: most are refused."""


class Row(msgspec.Struct):
    """A message or a delivery, as far as the model cares."""

    id: str
    connector: str
    platform_id: str
    state: str
    attempts: int = 0
    settled_at: float = 0.0


class Model:
    """What a store holds, as simply as it can be said."""

    def __init__(self) -> None:
        self.inbox: list[Row] = []
        self.outbox: list[Row] = []
        self.streams: dict[str, list[bytes]] = {"a": [], "b": []}
        self.snapshots: dict[str, int] = {}
        self.records: list[tuple[str, str, str]] = []
        """Kind, id and owner, those written last last."""

    def apply(self, commit: Commit) -> tuple[int, ...]:
        """Take all in and give where each append's stream ends; or raise half way."""
        self.accept(commit)
        for claim in commit.claims:
            self.change(self.inbox, claim.inbox_id, "running", claim.attempt)
        for defer in commit.defers:
            self.change(self.inbox, defer.inbox_id, "accepted", defer.attempts)
        ends = tuple([self.append(row) for row in commit.appends])
        for settle in commit.settles:
            row = self.change(self.inbox, settle.inbox_id, settle.state)
            row.settled_at = commit.at
        for delivery in commit.deliveries:
            row = Row(delivery.delivery_id, delivery.connector, "", "pending")
            self.add(self.outbox, row)
        for attempt in commit.send_attempts:
            self.change(self.outbox, attempt.delivery_id, "sending", attempt.attempt)
        for unsaid in commit.not_said:
            self.change(self.outbox, unsaid.delivery_id, "pending")
        for receipt in commit.receipts:
            row = self.change(self.outbox, receipt.delivery_id, receipt.state, 1)
            row.settled_at = commit.at
        self.note(commit)
        return ends

    def accept(self, commit: Commit) -> None:
        for accept in commit.accepts:
            row = Row(accept.id, accept.connector, accept.platform_id, "accepted")
            key = (row.connector, row.platform_id)
            if key in {(other.connector, other.platform_id) for other in self.inbox}:
                raise DuplicateError
            self.add(self.inbox, row)
        for amend in commit.amends:
            self.change(self.inbox, amend.inbox_id)

    def note(self, commit: Commit) -> None:
        for snapshot in commit.snapshots:
            newest = self.snapshots.get(snapshot.stream, 0)
            self.snapshots[snapshot.stream] = max(newest, snapshot.sequence)
        for record in commit.records:
            same = (record.kind, record.id)
            self.records = [row for row in self.records if row[:2] != same]
            self.records.append((*same, record.owner))

    @staticmethod
    def add(rows: list[Row], row: Row) -> None:
        if row.id in {other.id for other in rows}:
            raise DuplicateError
        rows.append(row)

    def append(self, row: Append) -> int:
        stream = self.streams[row.stream]
        if len(stream) != row.expected:
            raise SequenceConflictError
        stream += [event.body for event in row.events]
        return len(stream)

    @staticmethod
    def change(
        rows: list[Row], name: str, state: str = "", attempts: int | None = None
    ) -> Row:
        found = [row for row in rows if row.id == name]
        if not found:
            raise MisuseError
        if found[0].state not in OPEN:
            raise DuplicateError
        found[0].state = state or found[0].state
        if attempts is not None:
            found[0].attempts = attempts
        return found[0]

    def prune(self, before: float) -> Pruned:
        counts: list[int] = []
        for rows in (self.inbox, self.outbox):
            kept = [
                row for row in rows if row.state in OPEN or row.settled_at >= before
            ]
            counts.append(len(rows) - len(kept))
            rows[:] = kept
        return Pruned(*counts)


def open_rows(rows: list[Row]) -> list[str]:
    return [row.id for row in rows if row.state in OPEN]


def as_listed(rows: list[Row]) -> list[tuple[str, str, int]]:
    return [(row.id, row.state, row.attempts) for row in rows if row.state in OPEN]


class TrioThread:
    """A trio loop in a thread, so that the machine's plain steps can await."""

    def __init__(self) -> None:
        started = threading.Event()
        self._thread = threading.Thread(target=trio.run, args=(self._main, started))
        self._thread.start()
        assert started.wait(60)

    async def _main(self, started: threading.Event) -> None:
        self._token = trio.lowlevel.current_trio_token()
        self._ended = trio.Event()
        started.set()
        await self._ended.wait()

    def run(self, function: Callable[..., Awaitable[T]], *args: object) -> T:
        return trio.from_thread.run(function, *args, trio_token=self._token)

    def end(self) -> None:
        self._token.run_sync_soon(self._ended.set)
        self._thread.join(60)


class StoreMachine(RuleBasedStateMachine):
    """One store and its model, fed with the same."""

    engine_name: str

    def __init__(self) -> None:
        super().__init__()
        self.folder = Path(tempfile.mkdtemp())
        self.engine = make_engine(self.engine_name, self.folder)
        self.trio = TrioThread()
        self.store = self.trio.run(self.engine.open)
        self.model = Model()
        self.last_numbers = [0, 0]

    def teardown(self) -> None:
        self.trio.run(self.store.aclose)
        self.trio.end()
        shutil.rmtree(self.folder)

    @rule(commit=COMMITS)
    def commit_anything(self, commit: Commit) -> None:
        before = copy.deepcopy(self.model)
        try:
            ends = self.model.apply(commit)
        except KernelError as error:
            self.model = before
            with pytest.raises(type(error)):
                self.trio.run(self.store.commit, commit)
            return
        committed = self.trio.run(self.store.commit, commit)
        assert committed.sequences == ends
        assert len(committed.accepted) == len(commit.accepts)
        assert len(committed.enqueued) == len(commit.deliveries)
        for table, numbers in enumerate((committed.accepted, committed.enqueued)):
            for number in numbers:
                assert number > self.last_numbers[table]
                self.last_numbers[table] = number

    @rule(names=few(NAMES), stream=STREAMS, count=st.integers(0, 2))
    def commit_what_fits(self, names: tuple[str, ...], stream: str, count: int) -> None:
        new = sorted(set(names) - {row.id for row in self.model.inbox})
        unsaid = sorted(set(names) - {row.id for row in self.model.outbox})
        self.commit_anything(
            Commit(
                at=5.0,
                accepts=tuple(heard(name, platform_id=f"of {name}") for name in new),
                claims=tuple(Claim(name, count) for name in new),
                appends=(append_at(stream, len(self.model.streams[stream]), count),),
                snapshots=(summing_up(stream, count + 1),),
                deliveries=tuple(saying(name, connector="web") for name in unsaid),
                settles=tuple(
                    Settle(name, "replied") for name in open_rows(self.model.inbox)[:2]
                ),
                send_attempts=tuple(SendAttempt(name, count) for name in unsaid),
                receipts=tuple(
                    Receipt(name, "sent") for name in open_rows(self.model.outbox)[:1]
                ),
                records=tuple(noting(name, owner=stream) for name in names),
            )
        )

    @rule(before=st.integers(0, 10).map(float))
    def prune(self, before: float) -> None:
        assert self.trio.run(self.store.prune, before) == self.model.prune(before)

    @rule()
    def restart(self) -> None:
        self.store = self.trio.run(self.engine.reopen, self.store)

    @invariant()
    def the_same_is_open(self) -> None:
        messages = self.trio.run(self.store.unsettled)
        assert [(row.id, row.state, row.attempts) for row in messages] == as_listed(
            self.model.inbox
        )
        for connector in ("cli", "web"):
            deliveries = self.trio.run(self.store.undelivered, connector)
            assert [(row.id, row.state, row.attempts) for row in deliveries] == (
                as_listed(
                    [row for row in self.model.outbox if row.connector == connector]
                )
            )

    @invariant()
    def the_same_was_noted(self) -> None:
        for stream in self.model.streams:
            snapshot = self.trio.run(self.store.snapshot, stream)
            sequence = None if snapshot is None else snapshot.sequence
            assert sequence == self.model.snapshots.get(stream)
        for kind in ("audit", "fact"):
            listed = self.trio.run(self.store.records, kind)
            assert [(row.kind, row.id, row.owner) for row in reversed(listed)] == [
                row for row in self.model.records if row[0] == kind
            ]
            assert all(
                above.number > below.number
                for above, below in itertools.pairwise(listed)
            )

    @invariant()
    def the_same_was_journalled(self) -> None:
        for stream, bodies in self.model.streams.items():
            events = self.trio.run(self.store.read, stream)
            assert [event.body for event in events] == bodies
            assert [event.sequence for event in events] == list(
                range(1, len(bodies) + 1)
            )

    @invariant()
    def every_row_is_in_one_state(self) -> None:
        counts = self.trio.run(self.store.counts)
        assert sum(counts.inbox.values()) == len(self.model.inbox)
        assert sum(counts.outbox.values()) == len(self.model.outbox)
        states: tuple[InboxState, ...] = ("accepted", "running", *STATES)
        for state in states:
            rows = [row for row in self.model.inbox if row.state == state]
            assert counts.inbox.get(state, 0) == len(rows)


@pytest.mark.property
@pytest.mark.parametrize(
    ("engine", "most"), [("memory", 50), ("sqlite", 15), ("postgresql", 5)]
)
def test_a_store_agrees_with_its_model(engine: str, most: int) -> None:
    machine = type("Machine", (StoreMachine,), {"engine_name": engine})
    run_state_machine_as_test(
        machine,
        settings=settings(
            max_examples=examples(most), stateful_step_count=25, deadline=None
        ),
    )
