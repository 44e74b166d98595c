"""The store's rows as SQL: the reading calls.

Plain functions on an open connection. They know nothing of threads, files or servers.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from types import TracebackType
from typing import Any, Protocol, TypeAlias

from runtime.store.rows import (
    MAX_ROWS,
    Answered,
    Counts,
    MessageKey,
    StoredDelivery,
    StoredEntry,
    StoredEvent,
    StoredMessage,
    StoredRecord,
    StoredSnapshot,
)

Row: TypeAlias = tuple[Any, ...]


class Answer(Protocol):
    """The rows that a statement gives."""

    def __iter__(self) -> Iterator[Row]:
        """Give them, each once."""
        ...

    @property
    def get(self) -> Any:  # noqa: ANN401  what it is, the statement says
        """The first row, its value alone if it has one column; None: there is none."""
        ...


class Db(Protocol):
    """An open connection: `Db`, or what behaves like one.

    A block (`with db`) reads as of one moment.
    """

    def execute(self, sql: str, given: Sequence[Any] = ..., /) -> Answer:
        """Run one statement, its values marked by `?`."""
        ...

    def executemany(self, sql: str, given: Iterable[Sequence[Any]], /) -> Iterable[Row]:
        """Run one statement once for each of the given, and give the rows of all."""
        ...

    def changes(self) -> int:
        """Whether the last statement changed rows: 0 if it did not."""
        ...

    def last_insert_rowid(self) -> int:
        """Give the number of the row that the last statement added."""
        ...

    def __enter__(self) -> object:
        """Begin to read as of one moment."""
        ...

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
        /,
    ) -> bool | None:
        """End it."""
        ...


EVENT = "stream, sequence, kind, body, part, epoch, at"
MESSAGE = """number, id, connector, platform_id, part, epoch, stream, body,
    accepted_at, priority, state, attempts, coalesce(started_at, 0.0), due_at,
    reason, coalesce(settled_at, 0.0)"""
DELIVERY = """number, id, connector, chat, correlation_id, part, epoch, body,
    enqueued_at, state, attempts, receipt, coalesce(settled_at, 0.0)"""
RECORD = "number, kind, id, owner, part, epoch, body, at"
ENTRY = "kind, id, owner, part, epoch, version, body, at"
"""The columns of a row, in the order of its Struct's fields."""

READ = f"""SELECT {EVENT} FROM journal
    WHERE stream = ? AND sequence > ? ORDER BY sequence LIMIT ?"""
SNAPSHOT = """SELECT stream, sequence, schema, body, part, epoch, at FROM snapshot
    WHERE stream = ?"""
UNSETTLED = f"""SELECT {MESSAGE} FROM inbox INDEXED BY inbox_open
    WHERE settled_at IS NULL AND number > ? ORDER BY number LIMIT ?"""
# Why these columns only: SQLite reads no page of a row beyond the last one it is asked
# for, and a body stands behind them.
UNSETTLED_KEYS = """SELECT number, id, connector, platform_id, part
    FROM inbox INDEXED BY inbox_open
    WHERE settled_at IS NULL AND number > ? ORDER BY number LIMIT ?"""
MESSAGE_OF = f"""SELECT {MESSAGE} FROM inbox
    WHERE connector = ? AND platform_id = ?"""
MESSAGES_OF = f"""SELECT {MESSAGE} FROM inbox INDEXED BY inbox_stream
    WHERE stream = ? AND number < ? ORDER BY number DESC LIMIT ?"""
CORRELATED = f"""SELECT {DELIVERY} FROM outbox INDEXED BY outbox_correlation
    WHERE correlation_id = ? ORDER BY number LIMIT {MAX_ROWS}"""
UNDELIVERED = f"""SELECT {DELIVERY} FROM outbox INDEXED BY outbox_open
    WHERE settled_at IS NULL AND number > ? ORDER BY number LIMIT ?"""
UNDELIVERED_OF = f"""SELECT {DELIVERY} FROM outbox INDEXED BY outbox_open
    WHERE settled_at IS NULL AND connector = ? AND number > ?
    ORDER BY number LIMIT ?"""
RECORDS = f"""SELECT {RECORD} FROM record INDEXED BY record_kind
    WHERE kind = ? AND number < ? ORDER BY number DESC LIMIT ?"""
RECORDS_OF = f"""SELECT {RECORD} FROM record INDEXED BY record_owner
    WHERE kind = ? AND owner = ? AND number < ? ORDER BY number DESC LIMIT ?"""
RECORDS_SINCE = f"""SELECT {RECORD} FROM record INDEXED BY record_at
    WHERE kind = ? AND (at, number) > (?, ?) ORDER BY at, number LIMIT ?"""

# Why two halves each: the partial indexes are counted without touching a row.
# Why one statement: so both tables are counted as of one moment.
COUNT = """
    SELECT 'inbox', state, count(*) FROM inbox INDEXED BY inbox_open
        WHERE settled_at IS NULL GROUP BY state
    UNION ALL SELECT 'inbox', state, count(*) FROM inbox
        WHERE settled_at IS NOT NULL GROUP BY state
    UNION ALL SELECT 'outbox', state, count(*) FROM outbox INDEXED BY outbox_open
        WHERE settled_at IS NULL GROUP BY state
    UNION ALL SELECT 'outbox', state, count(*) FROM outbox
        WHERE settled_at IS NOT NULL GROUP BY state"""

NEVER = 2**63 - 1
"""More than any row's number."""


def read(db: Db, stream: str, after: int, limit: int) -> tuple[StoredEvent, ...]:
    """Read a stream."""
    return tuple(
        [StoredEvent(*row) for row in db.execute(READ, (stream, after, limit))]
    )


def snapshot(db: Db, stream: str) -> StoredSnapshot | None:
    """Read the newest snapshot of a stream."""
    row = db.execute(SNAPSHOT, (stream,)).get
    return None if row is None else StoredSnapshot(*row)


def unsettled(db: Db, after: int, limit: int) -> tuple[StoredMessage, ...]:
    """Read messages not yet settled."""
    return tuple([StoredMessage(*row) for row in db.execute(UNSETTLED, (after, limit))])


def unsettled_keys(db: Db, after: int, limit: int) -> tuple[MessageKey, ...]:
    """Read the keys of messages not yet settled."""
    return tuple(
        [MessageKey(*row) for row in db.execute(UNSETTLED_KEYS, (after, limit))]
    )


def answered(db: Db, connector: str, platform_id: str) -> Answered | None:
    """Read a message and its deliveries, as of one moment."""
    found: Answered | None = None
    with db:
        row = db.execute(MESSAGE_OF, (connector, platform_id)).get
        if row is not None:
            message = StoredMessage(*row)
            found = Answered(message, correlated(db, message.id))
    return found


def messages(db: Db, keys: tuple[tuple[str, str], ...]) -> tuple[StoredMessage, ...]:
    """Read the messages with these dedup keys, as of one moment."""
    rows: list[Row] = []
    with db:
        rows.extend(db.executemany(MESSAGE_OF, keys))
    return tuple([StoredMessage(*row) for row in rows])


def exchanges(db: Db, stream: str, before: int, limit: int) -> tuple[Answered, ...]:
    """Read messages of a stream and their deliveries, as of one moment."""
    found: list[Answered] = []
    with db:
        for row in list(db.execute(MESSAGES_OF, (stream, before or NEVER, limit))):
            message = StoredMessage(*row)
            found.append(Answered(message, correlated(db, message.id)))
    return tuple(found)


def correlated(db: Db, correlation_id: str) -> tuple[StoredDelivery, ...]:
    """Read the deliveries that belong to one message."""
    rows = db.execute(CORRELATED, (correlation_id,))
    return tuple([StoredDelivery(*row) for row in rows])


def undelivered(
    db: Db, connector: str | None, after: int, limit: int
) -> tuple[StoredDelivery, ...]:
    """Read deliveries not yet settled, of one connector or of all."""
    if connector is None:
        rows = db.execute(UNDELIVERED, (after, limit))
    else:
        rows = db.execute(UNDELIVERED_OF, (connector, after, limit))
    return tuple([StoredDelivery(*row) for row in rows])


def records(
    db: Db, kind: str, owner: str | None, before: int, limit: int
) -> tuple[StoredRecord, ...]:
    """Read records of a kind, of one owner or of all, those written last first."""
    below = before or NEVER
    if owner is None:
        rows = db.execute(RECORDS, (kind, below, limit))
    else:
        rows = db.execute(RECORDS_OF, (kind, owner, below, limit))
    return tuple([StoredRecord(*row) for row in rows])


def records_since(
    db: Db, kind: str, at: float, number: int, limit: int
) -> tuple[StoredRecord, ...]:
    """Read records of a kind in the order of their times, then numbers."""
    rows = db.execute(RECORDS_SINCE, (kind, at, number, limit))
    return tuple([StoredRecord(*row) for row in rows])


def counts(db: Db) -> Counts:
    """Count rows by state, both tables as of one moment."""
    counted = Counts({}, {})
    for table, state, rows in db.execute(COUNT):
        (counted.inbox if table == "inbox" else counted.outbox)[state] = rows
    return counted


ONE = f"SELECT {ENTRY} FROM entry WHERE kind = ? AND id = ?"
ALL = f"""SELECT {ENTRY} FROM entry WHERE kind = ? AND id > ?
    ORDER BY id LIMIT ?"""
OWNED = f"""SELECT {ENTRY} FROM entry INDEXED BY entry_owner
    WHERE kind = ? AND owner = ? AND id > ? ORDER BY id LIMIT ?"""


def one(db: Db, kind: str, name: str) -> StoredEntry | None:
    """Read one entry."""
    row = db.execute(ONE, (kind, name)).get
    return None if row is None else StoredEntry(*row)


def listed(
    db: Db, kind: str, owner: str | None, after: str, limit: int
) -> tuple[StoredEntry, ...]:
    """Read entries of a kind, of one owner or of all, in the order of their ids."""
    if owner is None:
        rows = db.execute(ALL, (kind, after, limit))
    else:
        rows = db.execute(OWNED, (kind, owner, after, limit))
    return tuple([StoredEntry(*row) for row in rows])
