"""A store from outside: what operators read, and what they change by hand.

The command line and the web page use it, also beside a server that works with the same
store: `Inspection` reads rows, `Repair` changes them, `Database` opens both.
`runtime/sqlite/database.py` implements it; `tests/contracts/store/test_database.py`
proves it. Every call blocks, so a server makes it in a thread. Nothing here names an
engine's language or files: filters, order and pages are arguments, and a database
server can implement it, too.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Protocol

import msgspec

from runtime.store.copying import RowFiller, RowReader
from runtime.store.facts import Facts
from runtime.store.port import Entries
from runtime.store.rows import (
    AnyRow,
    Commit,
    Counts,
    DeliveryState,
    InboxState,
    StoredDelivery,
    StoredEntry,
    StoredEvent,
    StoredMessage,
    StoredRecord,
    StoredSnapshot,
)

MOST_NAMED = 5
"""How many of the rows that an abbreviated id may mean an error names."""

Mark = tuple[float, int]
"""A place in a list of records: time and number of the last one seen."""

FIRST: Mark = (float("inf"), 2**63 - 1)
"""Before all records."""

DROPPED = "by hand"
"""Reason of a message, and receipt of a delivery, that an operator dropped."""


Decide = Callable[[AnyRow], bytes | None]
"""Gives the new body of a row, the same bytes to leave it alone, None to remove it."""


class JournalEntry(msgspec.Struct, frozen=True):
    """An event and its place among those of all streams."""

    number: int
    event: StoredEvent


class Totals(msgspec.Struct, frozen=True):
    """How many rows there are."""

    messages: int
    deliveries: int
    events: int
    records: dict[str, int]
    """By kind."""


class OldestOpen(msgspec.Struct, frozen=True):
    """Since when the oldest rows wait that are not settled."""

    message: float
    """Unix seconds at which it was accepted; 0: none waits or is worked on."""

    delivery: float
    """Unix seconds at which it was enqueued; 0: none is still to be sent."""


class Inspection(Protocol):
    """Reads all rows of a store; made by `Database.inspect`.

    Its calls raise `MisuseError` for a limit outside 1 to `MAX_ROWS` and for text that
    is not Unicode, `StoreUnavailableError` or `CorruptError` when the disk fails.
    """

    def counts(self) -> Counts:
        """Count messages and deliveries by state, as of one moment."""
        ...

    def oldest_open(self) -> OldestOpen:
        """Give since when the oldest message and delivery wait; quick in any store."""
        ...

    def totals(self) -> Totals:
        """Count all rows."""
        ...

    def message(self, name: str) -> StoredMessage:
        """Give the one message whose id is `name`, or else begins with it.

        Raises:
            MisuseError: there is none, or more than one.
        """
        ...

    def messages(
        self,
        states: Collection[InboxState] = (),
        *,
        newest_first: bool = True,
        past: int = 0,
        limit: int = 100,
    ) -> tuple[StoredMessage, ...]:
        """Give messages in any of these states.

        Args:
            states: the wanted ones; empty: all.
            newest_first: else the oldest.
            past: number of the last one seen in that order; 0: from the first.
            limit: most messages to give.
        """
        ...

    def delivery(self, name: str) -> StoredDelivery:
        """Give the one delivery whose id is `name`, or else begins with it.

        Raises:
            MisuseError: there is none, or more than one.
        """
        ...

    def deliveries(
        self,
        states: Collection[DeliveryState] = (),
        *,
        newest_first: bool = True,
        besides: Collection[str] = (),
        limit: int = 100,
    ) -> tuple[StoredDelivery, ...]:
        """Give deliveries in any of these states.

        Args:
            states: the wanted ones; empty: all.
            newest_first: else the oldest.
            besides: deliveries whose receipt begins with one of these are left out.
            limit: most deliveries to give.
        """
        ...

    def count_deliveries(
        self, states: Collection[DeliveryState] = (), besides: Collection[str] = ()
    ) -> int:
        """Count the deliveries that `deliveries` would give if it had no limit."""
        ...

    def deliveries_of(self, correlation_id: str) -> tuple[StoredDelivery, ...]:
        """Give all deliveries that belong to one message, in their order."""
        ...

    def events(
        self, stream: str, after: int = 0, limit: int = 1000
    ) -> tuple[JournalEntry, ...]:
        """Give the events of a stream and of those below it, as they happened.

        Args:
            stream: its name; streams whose name begins with it and a `/` are below it.
            after: number of the last entry seen; 0: from the first.
            limit: most entries to give.
        """
        ...

    def events_before(
        self, stream: str, before: int = 0, limit: int = 1000
    ) -> tuple[JournalEntry, ...]:
        """Give the last events of a stream and of those below it, as they happened.

        Args:
            stream: its name, as for `events`.
            before: number of the entry up to which they are wanted; 0: to the last.
            limit: most entries to give.
        """
        ...

    def journal(self) -> Iterator[StoredEvent]:
        """Give all events, stream by stream in the order of their names."""
        ...

    def streams_ending(self, end: str, limit: int = 10) -> tuple[str, ...]:
        """Name streams whose name ends so; this reads all names there are."""
        ...

    def snapshot(self, stream: str) -> StoredSnapshot | None:
        """Give the newest snapshot of a stream, if it has one."""
        ...

    def record(self, kind: str, name: str) -> StoredRecord | None:
        """Give the one record of this kind and id, if there is one."""
        ...

    def records(
        self, kind: str, since: float = 0.0, past: Mark = FIRST
    ) -> Iterator[StoredRecord]:
        """Give records of a kind, the newest first.

        Args:
            since: only those written at these Unix seconds or later.
            past: time and number of the last one seen.
        """
        ...

    def entries(self, kind: str, owner: str | None = None) -> Iterator[StoredEntry]:
        """Give entries of a kind in the order of their ids.

        Args:
            owner: only this one's; None for all.
        """
        ...


class StoreReader(Entries, Protocol):
    """Entries and facts, read as the running program reads them.

    Its calls raise what those of `runtime.store.port.Entries` and
    `runtime.store.facts.Facts` do; `facts.prune`, the one that writes, always
    raises `StoreUnavailableError`.
    """

    @property
    def facts(self) -> Facts:
        """What is remembered."""
        ...


class RepairResult(msgspec.Struct, frozen=True):
    """What came of a change by hand."""

    has_changed: bool
    text: str
    """What was changed, or why nothing was; one sentence for people."""


class Repair(Protocol):
    """Changes by hand; each is durable when the call returns.

    A running server notices it within seconds (`Store.changes_outside`). Which
    changes are refused, and what is said of them, the functions below decide for all
    engines. All calls raise `StoreError` when the database cannot be used.
    """

    def retry_message(self, name: str, now: float) -> RepairResult:
        """Have a message that is dead, or waits for its next attempt, tried at once.

        Args:
            name: id of the message, or its beginning.
            now: Unix seconds.

        Raises:
            MisuseError: no such message, or more than one.
        """
        ...

    def drop_message(
        self, name: str, now: float, settling: Callable[[StoredMessage], Commit]
    ) -> RepairResult:
        """Settle a message that is dead, or that nobody works on, as dropped.

        A message that was worked on when the last process ended is nobody's until the
        next process starts.

        Args:
            name: id of the message, or its beginning.
            now: Unix seconds.
            settling: makes the commit that settles a waiting message and tells its
                writer; the writer of a dead one knows already.

        Raises:
            MisuseError: no such message, or more than one.
        """
        ...

    def retry_delivery(self, name: str) -> RepairResult:
        """Have a delivery that is dead, or whose fate is unknown, sent again.

        Raises:
            MisuseError: no such delivery, or more than one.
        """
        ...

    def drop_delivery(self, name: str, now: float) -> RepairResult:
        """Settle a delivery that waits, or whose fate is unknown, as dead.

        Args:
            name: id of the delivery, or its beginning.
            now: Unix seconds.

        Raises:
            MisuseError: no such delivery, or more than one.
        """
        ...

    def write(self, commits: Iterable[Commit]) -> int:
        """Store units, all of them or none, also should the process be killed.

        Args:
            commits: what to store; taken one by one, so that they need not be held at
                once. An error that they raise leaves nothing behind.

        Returns:
            How many there were.

        Raises:
            SequenceConflictError: an entry was changed since it was read, or a stream
                is not where it was expected to be.
        """
        ...


class Database(Repair, Protocol):
    """A store as operators reach it, also while a server works with it.

    Opening raises `StoreUnavailableError` if there is none or the disk fails,
    `StoreRefusedError` if it is another program's or an older release's,
    `StoreTooNewError` if a newer release wrote it, `CorruptError` if it is damaged.
    Only `claim` and `restore` make or upgrade one.
    """

    @property
    def name(self) -> str:
        """How texts for people name it."""
        ...

    def exists(self) -> bool:
        """Whether there is a database; not whether it can be used.

        Raises:
            StoreUnavailableError: the system does not let us look.
        """
        ...

    def is_current(self) -> bool:
        """Whether it is this release's; False: an older one's, to be upgraded.

        Raises:
            StoreError: it cannot be used; see the class.
        """
        ...

    def refuse_damaged(self) -> None:
        """Read it whole, in use or not.

        Raises:
            CorruptError: it is damaged.
            StoreError: it cannot be read.
        """
        ...

    def engine_version(self) -> str:
        """Give the version of the engine.

        Raises:
            StoreRefusedError: it is not safe to use.
        """
        ...

    def inspect(self, *, live: bool = False) -> AbstractContextManager[Inspection]:
        """Open it for reading.

        Args:
            live: each call sees what was written by then. False: all calls see the
                rows as of this moment; keep that short, for meanwhile a busy server
                cannot clear up behind itself.
        """
        ...

    def reader(self) -> AbstractContextManager[StoreReader]:
        """Open it for reading as the running program does."""
        ...

    def claim(self) -> AbstractContextManager[None]:
        """Keep servers out while the block runs; reading and writing go on.

        Raises:
            StoreUnavailableError: a server works with it.
        """
        ...

    def back_up(self, target: Path, *, replace: bool = False) -> int:
        """Write a whole copy, as of one moment, to a file; give its size in bytes.

        Args:
            target: the copy; it appears only when it is complete and found whole.
            replace: whether `target` may exist.
        """
        ...

    def every_row(self) -> Iterator[AnyRow]:
        """Give every row, as of one moment.

        Raises:
            StoreError: the database cannot be used.
        """
        ...

    def rewrite(self, decide: Decide) -> int:
        """Ask about each row, and change what is wanted, all of it or nothing.

        What a row held is overwritten as far as the engine can: SQLite does so in the
        file and in the log beside it, PostgreSQL in the tables. Nobody else may work
        with the database meanwhile (`claim`).

        Args:
            decide: see `Decide`; the body of a fact cannot be changed, only removed.

        Returns:
            How many rows were changed or removed.

        Raises:
            StoreError: the database fails; nothing has been changed.
        """
        ...

    def read_whole(self) -> AbstractContextManager[RowReader]:
        """Give all its rows, as of one moment; servers are kept out meanwhile."""
        ...

    def fill_new(self) -> AbstractContextManager[RowFiller]:
        """Make it, to be filled; it is kept only if the block ends well.

        Raises:
            StoreRefusedError: there is one, with rows.
        """
        ...

    def refuse_replacing(self, copy: Path) -> None:
        """Check that `restore` may put a copy in its place.

        Raises:
            StoreRefusedError: it is another program's, or the copy itself.
            StoreTooNewError: a newer release wrote it.
        """
        ...

    def restore(self, copy: Path) -> Path | None:
        """Put a copy in its place; give where the old one is kept, if there was one."""
        ...


SETTLED = "it has reached its end and stays so"
RETRY_REFUSALS = {
    "accepted": "it is waiting for its turn already",
    "running": "an agent is working on it; wait for its end",
}
DROP_REFUSALS = {
    "running": (
        "an agent is working on it; write /stop in its chat, or wait for its end"
    ),
}
RETRY_DELIVERY_REFUSALS = {
    "pending": "it is waiting to be sent already",
    "sending": "it is being sent; wait for its receipt",
}
# Why not more: what need not wait is said first, and stored then.
DROPPED_DELIVERIES = {
    "pending": "dropped; it is not sent, unless that was under way",
    "unknown": "dropped; it is not sent again",
}
DROP_DELIVERY_REFUSALS = {
    "sending": "it is being sent; wait for its receipt",
}


def retried_message(row: StoredMessage, now: float) -> RepairResult:
    """Decide whether a message can be tried at once."""
    if row.state == "dead":
        return done(f"message {row.id} is tried again")
    if row.state == "accepted" and row.due_at > now:
        return done(f"message {row.id} no longer waits for its time")
    return refused(f"message {row.id}", row.state, RETRY_REFUSALS)


def dropped_message(row: StoredMessage, *, is_served: bool) -> RepairResult:
    """Decide whether a message can be dropped.

    Args:
        is_served: whether a process works with the store.
    """
    waits = row.state == "accepted" or (row.state == "running" and not is_served)
    if waits or row.state == "dead":
        return done(f"message {row.id} is dropped")
    return refused(f"message {row.id}", row.state, DROP_REFUSALS)


def retried_delivery(row: StoredDelivery) -> RepairResult:
    """Decide whether a delivery can be sent again."""
    if row.state in {"dead", "unknown"}:
        return done(f"delivery {row.id} is sent again")
    return refused(f"delivery {row.id}", row.state, RETRY_DELIVERY_REFUSALS)


def dropped_delivery(row: StoredDelivery) -> RepairResult:
    """Decide whether a delivery can be settled as dead."""
    if row.state in DROPPED_DELIVERIES:
        return done(f"delivery {row.id} is {DROPPED_DELIVERIES[row.state]}")
    return refused(f"delivery {row.id}", row.state, DROP_DELIVERY_REFUSALS)


def done(text: str) -> RepairResult:
    """Say what is changed."""
    return RepairResult(has_changed=True, text=text)


def refused(what: str, state: str, reasons: dict[str, str]) -> RepairResult:
    """Say why nothing is changed."""
    why = reasons.get(state, SETTLED)
    return RepairResult(has_changed=False, text=f"{what} is {state}: {why}")


def none_found(what: str, name: str) -> str:
    """Say that no row has an id."""
    if not name:
        return f"give the id of a {what}, or the beginning of one"
    return f"no {what} has an id that is or begins with {name!r}"


def many_found(what: str, name: str, ids: Collection[str]) -> str:
    """Say that an abbreviated id may mean several rows.

    Args:
        what: `message` or `delivery`.
        name: the beginning of an id.
        ids: some that begin so; more than `MOST_NAMED`: there may be others.
    """
    more = ", …" if len(ids) > MOST_NAMED else ""
    return (
        f"more than one {what} has an id that begins with {name!r}:"
        f" {', '.join(list(ids)[:MOST_NAMED])}{more}; give more of it"
    )
