"""The store's rows as SQL: what one commit writes, what the reading calls give.

Plain functions on an open connection, inside a transaction that the caller began
and ends. They know nothing of threads, files or groups.
"""

# apsw's stubs name `collections.abc.Buffer`, which Python 3.11 has not got yet:
# pyright: reportUnknownMemberType=false

from __future__ import annotations

from typing import TYPE_CHECKING

from runtime.errors import DuplicateError, MisuseError, SequenceConflictError
from runtime.store import (
    Committed,
    Counts,
    Pruned,
    StoredDelivery,
    StoredEvent,
    StoredMessage,
)

if TYPE_CHECKING:
    import apsw

    from runtime.store import Accept, Append, Commit, Enqueue, Receipt, Settle

ACCEPT = """INSERT INTO inbox
    (id, connector, platform_id, part, epoch, stream, body, accepted_at)
    VALUES (?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING"""
LAST = "SELECT max(sequence) FROM journal WHERE stream = ?"
APPEND = """INSERT INTO journal(stream, sequence, kind, body, part, epoch, at)
    VALUES (?, ?, ?, ?, ?, ?, ?)"""
ENQUEUE = """INSERT INTO outbox
    (id, connector, chat, correlation_id, part, epoch, body, enqueued_at)
    VALUES (?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING"""
SETTLE = """UPDATE inbox SET state = ?, reason = ?, settled_at = ?
    WHERE id = ? AND settled_at IS NULL"""
RECEIVE = """UPDATE outbox SET state = ?, receipt = ?, attempts = ?, settled_at = ?
    WHERE id = ? AND settled_at IS NULL"""

READ = """SELECT stream, sequence, kind, body, part, epoch, at FROM journal
    WHERE stream = ? AND sequence > ? ORDER BY sequence LIMIT ?"""
UNSETTLED = """SELECT number, id, connector, platform_id, part, epoch, stream, body,
    accepted_at FROM inbox INDEXED BY inbox_accepted
    WHERE settled_at IS NULL AND number > ? ORDER BY number LIMIT ?"""
UNDELIVERED = """SELECT number, id, connector, chat, correlation_id, part, epoch,
    body, enqueued_at FROM outbox INDEXED BY outbox_pending
    WHERE settled_at IS NULL AND number > ? ORDER BY number LIMIT ?"""
UNDELIVERED_OF = """SELECT number, id, connector, chat, correlation_id, part, epoch,
    body, enqueued_at FROM outbox INDEXED BY outbox_pending
    WHERE settled_at IS NULL AND connector = ? AND number > ?
    ORDER BY number LIMIT ?"""

# Why two halves each: the partial indexes are counted without touching a row.
# Why one statement: so both tables are counted as of one moment.
COUNT = """
    SELECT 'inbox', 'accepted', count(*) FROM inbox WHERE settled_at IS NULL
    UNION ALL SELECT 'inbox', state, count(*) FROM inbox
        WHERE settled_at IS NOT NULL GROUP BY state
    UNION ALL SELECT 'outbox', 'pending', count(*) FROM outbox WHERE settled_at IS NULL
    UNION ALL SELECT 'outbox', state, count(*) FROM outbox
        WHERE settled_at IS NOT NULL GROUP BY state"""

PRUNE_INBOX = """DELETE FROM inbox WHERE number IN (
    SELECT number FROM inbox WHERE settled_at IS NOT NULL AND settled_at < ?
    ORDER BY settled_at LIMIT ?)"""
PRUNE_OUTBOX = """DELETE FROM outbox WHERE number IN (
    SELECT number FROM outbox WHERE settled_at IS NOT NULL AND settled_at < ?
    ORDER BY settled_at LIMIT ?)"""


def write(db: apsw.Connection, commit: Commit, epoch: int) -> Committed:
    """Write one commit.

    Raises:
        DuplicateError: see `runtime.store.Store.commit`; half of it may be written,
            the caller rolls back.
        SequenceConflictError: same.
        MisuseError: same.
    """
    at = commit.at
    committed = Committed(
        tuple([accept(db, row, epoch) for row in commit.accepts]),
        tuple([append(db, row, epoch, at) for row in commit.appends]),
        tuple([enqueue(db, row, epoch, at) for row in commit.deliveries]),
    )
    for settle in commit.settles:
        settle_message(db, settle, at)
    for receipt in commit.receipts:
        receive(db, receipt, at)
    return committed


def accept(db: apsw.Connection, row: Accept, epoch: int) -> int:
    """Add a message to the inbox and give its number."""
    key = (row.id, row.connector, row.platform_id)
    db.execute(ACCEPT, (*key, row.part, epoch, row.stream, row.body, row.at))
    if not db.changes():
        raise DuplicateError(
            f"message {row.id!r} ({row.connector}/{row.platform_id}) was accepted"
            " before; acknowledge it and do no more"
        )
    return db.last_insert_rowid()


def append(db: apsw.Connection, row: Append, epoch: int, at: float) -> int:
    """Add events to the end of a stream and give the number of its last one."""
    last: int = db.execute(LAST, (row.stream,)).get or 0
    if last != row.expected:
        raise SequenceConflictError(
            f"stream {row.stream!r} ends at {last}, not at {row.expected}: another"
            " writer was first; read it again"
        )
    for event in row.events:
        last += 1
        db.execute(
            APPEND, (row.stream, last, event.kind, event.body, row.part, epoch, at)
        )
    return last


def enqueue(db: apsw.Connection, row: Enqueue, epoch: int, at: float) -> int:
    """Add a delivery to the outbox and give its number."""
    key = (row.delivery_id, row.connector, row.chat, row.correlation_id)
    db.execute(ENQUEUE, (*key, row.part, epoch, row.body, at))
    if not db.changes():
        raise DuplicateError(
            f"delivery {row.delivery_id!r} was enqueued before; it is on its way"
        )
    return db.last_insert_rowid()


def settle_message(db: apsw.Connection, row: Settle, at: float) -> None:
    """Give an accepted message its terminal state."""
    db.execute(SETTLE, (row.state, row.reason, at, row.inbox_id))
    if db.changes():
        return
    state = db.execute("SELECT state FROM inbox WHERE id = ?", (row.inbox_id,)).get
    if state is None:
        raise MisuseError(f"no message {row.inbox_id!r} was ever accepted")
    raise DuplicateError(f"message {row.inbox_id!r} is {state} already and stays so")


def receive(db: apsw.Connection, row: Receipt, at: float) -> None:
    """Give a pending delivery its terminal state."""
    db.execute(RECEIVE, (row.state, row.receipt, row.attempts, at, row.delivery_id))
    if db.changes():
        return
    state = db.execute("SELECT state FROM outbox WHERE id = ?", (row.delivery_id,)).get
    if state is None:
        raise MisuseError(f"no delivery {row.delivery_id!r} was ever enqueued")
    raise DuplicateError(
        f"delivery {row.delivery_id!r} is {state} already and stays so"
    )


def greet(db: apsw.Connection) -> int:
    """Read the schema, so that a damaged file is found at once."""
    tables: int = db.execute("SELECT count(*) FROM sqlite_schema").get
    return tables


def prune(db: apsw.Connection, before: float, limit: int) -> Pruned:
    """Forget what is long settled."""
    db.execute(PRUNE_INBOX, (before, limit))
    inbox = db.changes()
    db.execute(PRUNE_OUTBOX, (before, limit))
    return Pruned(inbox, db.changes())


def probe(db: apsw.Connection) -> None:
    """Take room on the disk, as a commit would."""
    db.execute("INSERT OR REPLACE INTO probe VALUES (1, zeroblob(65536))")


def end_probe(db: apsw.Connection) -> None:
    """Give back what `probe` took."""
    db.execute("DELETE FROM probe")


def read(
    db: apsw.Connection, stream: str, after: int, limit: int
) -> tuple[StoredEvent, ...]:
    """Read a stream."""
    return tuple(StoredEvent(*row) for row in db.execute(READ, (stream, after, limit)))


def unsettled(db: apsw.Connection, after: int, limit: int) -> tuple[StoredMessage, ...]:
    """Read messages not yet settled."""
    return tuple(StoredMessage(*row) for row in db.execute(UNSETTLED, (after, limit)))


def undelivered(
    db: apsw.Connection, connector: str | None, after: int, limit: int
) -> tuple[StoredDelivery, ...]:
    """Read deliveries still pending, of one connector or of all."""
    if connector is None:
        rows = db.execute(UNDELIVERED, (after, limit))
    else:
        rows = db.execute(UNDELIVERED_OF, (connector, after, limit))
    return tuple(StoredDelivery(*row) for row in rows)


def counts(db: apsw.Connection) -> Counts:
    """Count rows by state, both tables as of one moment."""
    counted = Counts({}, {})
    for table, state, rows in db.execute(COUNT):
        (counted.inbox if table == "inbox" else counted.outbox)[state] = rows
    return counted
