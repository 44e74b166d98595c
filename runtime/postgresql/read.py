"""The store's rows as SQL for PostgreSQL: the reading calls.

Plain functions on an open connection. They know nothing of threads or servers.
"""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Any

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

if TYPE_CHECKING:
    from collections.abc import Generator, Sequence

    from runtime.postgresql.server import Db

EVENT = "stream, sequence, kind, body, part, epoch, at"
MESSAGE = """number, id, connector, platform_id, part, epoch, stream, body,
    accepted_at, priority, state, attempts, coalesce(started_at, 0), due_at,
    reason, coalesce(settled_at, 0)"""
DELIVERY = """number, id, connector, chat, correlation_id, part, epoch, body,
    enqueued_at, state, attempts, receipt, coalesce(settled_at, 0)"""
RECORD = "number, kind, id, owner, part, epoch, body, at"
ENTRY = "kind, id, owner, part, epoch, version, body, at"
"""The columns of a row, in the order of its Struct's fields."""

READ = f"""SELECT {EVENT} FROM journal
    WHERE stream = %s AND sequence > %s ORDER BY sequence LIMIT %s"""
SNAPSHOT = """SELECT stream, sequence, schema, body, part, epoch, at FROM snapshot
    WHERE stream = %s"""
UNSETTLED = f"""SELECT {MESSAGE} FROM inbox
    WHERE settled_at IS NULL AND number > %s ORDER BY number LIMIT %s"""
UNSETTLED_KEYS = """SELECT number, id, connector, platform_id FROM inbox
    WHERE settled_at IS NULL AND number > %s ORDER BY number LIMIT %s"""
MESSAGE_OF = f"""SELECT {MESSAGE} FROM inbox
    WHERE connector = %s AND platform_id = %s"""
MESSAGES = f"""SELECT {MESSAGE} FROM inbox WHERE (connector, platform_id) IN
    (SELECT * FROM unnest(%s::text[], %s::text[]))"""
MESSAGES_OF = f"""SELECT {MESSAGE} FROM inbox
    WHERE stream = %s AND number < %s ORDER BY number DESC LIMIT %s"""
CORRELATED = f"""SELECT {DELIVERY} FROM outbox
    WHERE correlation_id = %s ORDER BY number LIMIT {MAX_ROWS}"""
UNDELIVERED = f"""SELECT {DELIVERY} FROM outbox
    WHERE settled_at IS NULL AND number > %s ORDER BY number LIMIT %s"""
UNDELIVERED_OF = f"""SELECT {DELIVERY} FROM outbox
    WHERE settled_at IS NULL AND connector = %s AND number > %s
    ORDER BY number LIMIT %s"""
RECORDS = f"""SELECT {RECORD} FROM record
    WHERE kind = %s AND number < %s ORDER BY number DESC LIMIT %s"""
RECORDS_OF = f"""SELECT {RECORD} FROM record
    WHERE kind = %s AND owner = %s AND number < %s ORDER BY number DESC LIMIT %s"""
RECORDS_SINCE = f"""SELECT {RECORD} FROM record
    WHERE kind = %s AND (at, number) > (%s, %s) ORDER BY at, number LIMIT %s"""
ONE = f"SELECT {ENTRY} FROM entry WHERE kind = %s AND id = %s"
ALL = f"""SELECT {ENTRY} FROM entry WHERE kind = %s AND id > %s
    ORDER BY id LIMIT %s"""
OWNED = f"""SELECT {ENTRY} FROM entry WHERE kind = %s AND owner = %s AND id > %s
    ORDER BY id LIMIT %s"""
COUNT = """
    SELECT 'inbox', state, count(*) FROM inbox GROUP BY state
    UNION ALL SELECT 'outbox', state, count(*) FROM outbox GROUP BY state"""

NEVER = 2**63 - 1
"""More than any row's number."""

Rows = list[tuple[Any, ...]]


def rows_of(db: Db, sql: str, given: Sequence[object] = ()) -> Rows:
    """Run one statement and give all its rows."""
    return db.execute(sql.encode(), given, binary=True).fetchall()


def run(db: Db, sql: str, given: Sequence[object] | dict[str, object] = ()) -> int:
    """Run one statement and give how many rows it changed."""
    with db.pipeline():  # inside another one: its end waits for the answer
        cursor = db.execute(sql.encode(), given)
    return cursor.rowcount


@contextlib.contextmanager
def moment(db: Db) -> Generator[None]:
    """Have all that the block reads be of one moment."""
    db.execute("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")
    try:
        yield
    except BaseException:  # whatever ends it, the transaction is over
        if not db.closed:
            db.rollback()
        raise
    db.execute("COMMIT")


def greet(db: Db) -> int:
    """Read the version of the tables, so that a wrong database is found at once."""
    return int(rows_of(db, "SELECT version FROM callboard_schema")[0][0])


def change_version(db: Db) -> int:
    """Give a number that grows when a program beside the server has written."""
    return int(rows_of(db, "SELECT version FROM change WHERE topic = 'rows'")[0][0])


def read(db: Db, stream: str, after: int, limit: int) -> tuple[StoredEvent, ...]:
    """Read a stream."""
    return tuple(
        [StoredEvent(*row) for row in rows_of(db, READ, (stream, after, limit))]
    )


def snapshot(db: Db, stream: str) -> StoredSnapshot | None:
    """Read the newest snapshot of a stream."""
    found = rows_of(db, SNAPSHOT, (stream,))
    return StoredSnapshot(*found[0]) if found else None


def unsettled(db: Db, after: int, limit: int) -> tuple[StoredMessage, ...]:
    """Read messages not yet settled."""
    return tuple(
        [StoredMessage(*row) for row in rows_of(db, UNSETTLED, (after, limit))]
    )


def unsettled_keys(db: Db, after: int, limit: int) -> tuple[MessageKey, ...]:
    """Read the keys of messages not yet settled."""
    rows = rows_of(db, UNSETTLED_KEYS, (after, limit))
    return tuple([MessageKey(*row) for row in rows])


def answered(db: Db, connector: str, platform_id: str) -> Answered | None:
    """Read a message and its deliveries, as of one moment."""
    with moment(db):
        found = rows_of(db, MESSAGE_OF, (connector, platform_id))
        if not found:
            return None
        message = StoredMessage(*found[0])
        return Answered(message, correlated(db, message.id))


def messages(db: Db, keys: tuple[tuple[str, str], ...]) -> tuple[StoredMessage, ...]:
    """Read the messages with these dedup keys, as of one moment."""
    given = ([key[0] for key in keys], [key[1] for key in keys])
    return tuple([StoredMessage(*row) for row in rows_of(db, MESSAGES, given)])


def exchanges(db: Db, stream: str, before: int, limit: int) -> tuple[Answered, ...]:
    """Read messages of a stream and their deliveries, as of one moment."""
    with moment(db):
        found = rows_of(db, MESSAGES_OF, (stream, before or NEVER, limit))
        each = [StoredMessage(*row) for row in found]
        return tuple([Answered(it, correlated(db, it.id)) for it in each])


def correlated(db: Db, correlation_id: str) -> tuple[StoredDelivery, ...]:
    """Read the deliveries that belong to one message."""
    rows = rows_of(db, CORRELATED, (correlation_id,))
    return tuple([StoredDelivery(*row) for row in rows])


def undelivered(
    db: Db, connector: str | None, after: int, limit: int
) -> tuple[StoredDelivery, ...]:
    """Read deliveries not yet settled, of one connector or of all."""
    if connector is None:
        rows = rows_of(db, UNDELIVERED, (after, limit))
    else:
        rows = rows_of(db, UNDELIVERED_OF, (connector, after, limit))
    return tuple([StoredDelivery(*row) for row in rows])


def records(
    db: Db, kind: str, owner: str | None, before: int, limit: int
) -> tuple[StoredRecord, ...]:
    """Read records of a kind, of one owner or of all, those written last first."""
    below = before or NEVER
    if owner is None:
        rows = rows_of(db, RECORDS, (kind, below, limit))
    else:
        rows = rows_of(db, RECORDS_OF, (kind, owner, below, limit))
    return tuple([StoredRecord(*row) for row in rows])


def records_since(
    db: Db, kind: str, at: float, number: int, limit: int
) -> tuple[StoredRecord, ...]:
    """Read records of a kind in the order of their times, then numbers."""
    rows = rows_of(db, RECORDS_SINCE, (kind, at, number, limit))
    return tuple([StoredRecord(*row) for row in rows])


def counts(db: Db) -> Counts:
    """Count rows by state, both tables as of one moment."""
    counted = Counts({}, {})
    for table, state, rows in rows_of(db, COUNT):
        (counted.inbox if table == "inbox" else counted.outbox)[state] = rows
    return counted


def one(db: Db, kind: str, name: str) -> StoredEntry | None:
    """Read one entry."""
    found = rows_of(db, ONE, (kind, name))
    return StoredEntry(*found[0]) if found else None


def listed(
    db: Db, kind: str, owner: str | None, after: str, limit: int
) -> tuple[StoredEntry, ...]:
    """Read entries of a kind, of one owner or of all, in the order of their ids."""
    if owner is None:
        rows = rows_of(db, ALL, (kind, after, limit))
    else:
        rows = rows_of(db, OWNED, (kind, owner, after, limit))
    return tuple([StoredEntry(*row) for row in rows])
