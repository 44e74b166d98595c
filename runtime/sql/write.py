"""The store's rows as SQL: writing one commit, and forgetting old rows.

Plain functions on an open connection, inside a transaction that the caller began
and ends. They know nothing of threads, files or groups. `read.py` has what
the reading calls give.

Hardly any statement needs an answer before the next one: conditions stand in the
statements, and whether one held is asked of `changes`. So a server can be sent many
before it is asked for anything.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Literal, NoReturn

import msgspec

from runtime.errors import (
    DeliveryKnownError,
    DuplicateError,
    MisuseError,
    SequenceConflictError,
)
from runtime.sql.facts import change_facts
from runtime.sql.read import Db
from runtime.store.rows import (
    Accept,
    Append,
    Commit,
    Committed,
    Enqueue,
    Entry,
    Pruned,
    Snapshot,
)

ACCEPT = """INSERT INTO inbox
    (id, connector, platform_id, part, epoch, stream, body, accepted_at, priority)
    VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING"""
AMEND = "UPDATE inbox SET body = ? WHERE id = ? AND settled_at IS NULL"
CLAIM = """UPDATE inbox SET state = 'running', attempts = ?, started_at = ?
    WHERE id = ? AND settled_at IS NULL"""
DEFER = """UPDATE inbox
    SET state = 'accepted', attempts = ?, due_at = ?, reason = ?, started_at = ?
    WHERE id = ? AND settled_at IS NULL"""
LAST = "SELECT max(sequence) FROM journal WHERE stream = ?"
NEW_EVENT = """INSERT INTO journal
    (stream, sequence, kind, body, part, epoch, at, inbox_id)"""
APPEND = f"{NEW_EVENT} VALUES (?, ?, ?, ?, ?, ?, ?, ?)"
APPEND_FIRST = f"""{NEW_EVENT} SELECT ?, ?, ?, ?, ?, ?, ?, ?
    WHERE coalesce(({LAST}), 0) = ?"""
SNAPSHOT = """INSERT INTO snapshot(stream, sequence, schema, part, epoch, body, at)
    VALUES (?, ?, ?, ?, ?, ?, ?) ON CONFLICT(stream) DO UPDATE SET
    sequence = excluded.sequence, schema = excluded.schema, part = excluded.part,
    epoch = excluded.epoch, body = excluded.body, at = excluded.at
    WHERE excluded.sequence >= snapshot.sequence"""
NEW_DELIVERY = """INSERT INTO outbox
    (id, connector, chat, correlation_id, part, epoch, body, enqueued_at)"""
ENQUEUE = f"{NEW_DELIVERY} VALUES (?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING"
SETTLED = "SELECT 1 FROM inbox WHERE id = ? AND settled_at IS NOT NULL"
ENQUEUE_BESIDE = f"""{NEW_DELIVERY} SELECT ?, ?, ?, ?, ?, ?, ?, ?
    WHERE NOT EXISTS ({SETTLED}) ON CONFLICT DO NOTHING"""
SETTLE = """UPDATE inbox SET state = ?, reason = ?, settled_at = ?
    WHERE id = ? AND settled_at IS NULL"""
ATTEMPT = """UPDATE outbox SET state = 'sending', attempts = ?, receipt = ''
    WHERE id = ? AND settled_at IS NULL"""
NOT_SAID = """UPDATE outbox SET state = 'pending', receipt = ?
    WHERE id = ? AND settled_at IS NULL"""
RECEIVE = """UPDATE outbox SET state = ?, receipt = ?, attempts = ?, settled_at = ?
    WHERE id = ? AND settled_at IS NULL"""
# A record that is replaced gets a new number: it is the one written last.
RECORD = """INSERT OR REPLACE INTO record(kind, id, owner, part, epoch, body, at)
    VALUES (?, ?, ?, ?, ?, ?, ?)"""

NEW_ENTRY = """INSERT INTO entry(kind, id, owner, part, epoch, body, at, version)
    VALUES (?, ?, ?, ?, ?, ?, ?, 1) ON CONFLICT(kind, id)"""
ADD_ENTRY = f"{NEW_ENTRY} DO NOTHING"
PUT_ENTRY = f"""{NEW_ENTRY} DO UPDATE SET owner = excluded.owner,
    part = excluded.part, epoch = excluded.epoch, version = entry.version + 1,
    body = excluded.body, at = excluded.at"""
CHANGE_ENTRY = """UPDATE entry SET owner = ?, part = ?, epoch = ?, body = ?, at = ?,
    version = version + 1 WHERE kind = ? AND id = ? AND version = ?"""
FORGET_ENTRY = "DELETE FROM entry WHERE kind = ? AND id = ?"
FORGET_ENTRY_AT = f"{FORGET_ENTRY} AND version = ?"
VERSION = "SELECT version FROM entry WHERE kind = ? AND id = ?"

HAND_OVER = """INSERT INTO handover(source, part, key, body, at)
    VALUES (?, ?, ?, ?, ?) ON CONFLICT(part, key) DO NOTHING"""
TAKE_OVER = "DELETE FROM handover WHERE number = ?"

OLD_MESSAGES = """SELECT id,
    (SELECT count(*) FROM journal WHERE journal.inbox_id = inbox.id)
    FROM inbox WHERE settled_at IS NOT NULL AND settled_at < ?
    ORDER BY settled_at, number LIMIT ?"""
FORGET_MESSAGE = "DELETE FROM inbox WHERE id = ?"
FORGET_EVENTS = "DELETE FROM journal WHERE inbox_id = ?"
PRUNE_OUTBOX = """DELETE FROM outbox WHERE id IN (
    SELECT id FROM outbox WHERE settled_at IS NOT NULL AND settled_at < ?
    ORDER BY settled_at, number LIMIT ?) RETURNING 1"""
PRUNE_RECORDS = """DELETE FROM record WHERE (kind, id) IN (
    SELECT kind, id FROM record WHERE kind = ? AND at < ? ORDER BY at LIMIT ?)
    RETURNING 1"""


NONE: tuple[int, ...] = ()


def write_own(db: Db, commit: Commit, epoch: int) -> Committed:  # noqa: C901  a step for each kind of row
    """Write the rows of one commit that it does not hand over.

    Raises:
        DuplicateError: see `runtime.store.Store.commit`; half of it may be written,
            the caller rolls back.
        SequenceConflictError: same.
        MisuseError: same.
    """
    at = commit.at
    # Why not for each: in Python 3.11 a comprehension is a call, of nothing, too.
    accepted = sequences = enqueued = NONE
    if commit.accepts:
        accepted = tuple([accept(db, row, epoch) for row in commit.accepts])
    if commit.amends or commit.claims or commit.defers:
        change_messages(db, commit, at)
    if commit.appends:
        sequences = tuple([append(db, row, epoch, at) for row in commit.appends])
    for snapshot in commit.snapshots:
        put_snapshot(db, snapshot, epoch, at)
    for settle in commit.settles:
        given = (settle.state, settle.reason, at, settle.inbox_id)
        change_open(db, "inbox", SETTLE, given)
    if commit.deliveries:
        enqueued = tuple([enqueue(db, row, epoch, at) for row in commit.deliveries])
    if commit.send_attempts or commit.not_said or commit.receipts:
        change_deliveries(db, commit, at)
    for row in commit.records:
        told = (row.kind, row.id, row.owner, row.part, epoch, row.body, at)
        db.execute(RECORD, told)
    for entry in commit.entries:
        put_entry(db, entry, epoch, at)
    if commit.facts:
        change_facts(db, commit.facts, epoch, at)
    return Committed(accepted, sequences, enqueued)


def write(
    db: Db, commit: Commit, epoch: int, parts: Collection[int] | None = None
) -> Committed:
    """Write one commit, and what it hands over.

    Args:
        parts: what is handed over to these is written at once; None: to any.

    Raises:
        StoreError: as for `write_own`.
        MisuseError: same.
    """
    committed = write_own(db, commit, epoch)
    waiting: list[int] = []
    for handed in commit.handovers:
        if parts is None or handed.part in parts:
            write_own(db, handed.rows, epoch)
            continue
        body = msgspec.msgpack.encode(handed.rows)
        given = (handed.source, handed.part, handed.key, body, commit.at)
        db.execute(HAND_OVER, given)
        waiting.append(handed.part)
    return msgspec.structs.replace(committed, waiting=tuple(waiting))


def take_over(db: Db, number: int, commit: Commit, epoch: int) -> bool:
    """Write what was handed over, unless somebody else has done so.

    Args:
        number: of the row in which it waits, which is removed.

    Returns:
        Whether it was there still.

    Raises:
        StoreError: as for `write_own`.
    """
    db.execute(TAKE_OVER, (number,))
    if not db.changes():
        return False
    write_own(db, commit, epoch)
    return True


def change_messages(db: Db, commit: Commit, at: float) -> None:
    """Write a commit's changes of messages that are not settled."""
    for amend in commit.amends:
        change_open(db, "inbox", AMEND, (amend.body, amend.inbox_id))
    for claim in commit.claims:
        change_open(db, "inbox", CLAIM, (claim.attempt, at, claim.inbox_id))
    for defer in commit.defers:
        given = (defer.attempts, defer.due_at, defer.reason, at, defer.inbox_id)
        change_open(db, "inbox", DEFER, given)


def change_deliveries(db: Db, commit: Commit, at: float) -> None:
    """Write a commit's changes of known deliveries."""
    for sending in commit.send_attempts:
        change_open(db, "outbox", ATTEMPT, (sending.attempt, sending.delivery_id))
    for unsaid in commit.not_said:
        change_open(db, "outbox", NOT_SAID, (unsaid.why, unsaid.delivery_id))
    for row in commit.receipts:
        given = (row.state, row.receipt, row.attempts, at, row.delivery_id)
        change_open(db, "outbox", RECEIVE, given)


def change_open(
    db: Db, table: Literal["inbox", "outbox"], sql: str, given: tuple[object, ...]
) -> None:
    """Change a message or delivery that is not settled.

    Args:
        sql: the change; it changes no row that is settled.
        given: its values, the row's id last.
    """
    db.execute(sql, given)
    if not db.changes():
        refuse_settled(db, table, given[-1])


def accept(db: Db, row: Accept, epoch: int) -> int:
    """Add a message to the inbox and give its number."""
    key = (row.id, row.connector, row.platform_id, row.part, epoch, row.stream)
    db.execute(ACCEPT, (*key, row.body, row.at, row.priority))
    if not db.changes():
        raise DuplicateError(
            f"message {row.id!r} ({row.connector}/{row.platform_id}) was accepted"
            " before; acknowledge it and do no more"
        )
    return db.last_insert_rowid()


def append(db: Db, row: Append, epoch: int, at: float) -> int:
    """Add events to the end of a stream and give the number of its last one."""
    last = row.expected
    for event in row.events:
        last += 1
        given = (row.stream, last, event.kind, event.body, row.part, epoch, at)
        if last > row.expected + 1:
            db.execute(APPEND, (*given, row.inbox_id or None))
            continue
        place = (row.stream, row.expected)
        db.execute(APPEND_FIRST, (*given, row.inbox_id or None, *place))
        if not db.changes():
            refuse_append(db, row)
    if not row.events and (db.execute(LAST, (row.stream,)).get or 0) != last:
        refuse_append(db, row)
    return last


def put_snapshot(db: Db, row: Snapshot, epoch: int, at: float) -> None:
    """Keep a snapshot, unless there is a newer one of its stream."""
    given = (row.stream, row.sequence, row.schema, row.part, epoch, row.body, at)
    db.execute(SNAPSHOT, given)


def enqueue(db: Db, row: Enqueue, epoch: int, at: float) -> int:
    """Add a delivery to the outbox and give its number."""
    key = (row.delivery_id, row.connector, row.chat, row.correlation_id)
    given = (*key, row.part, epoch, row.body, at)
    if row.beside:
        db.execute(ENQUEUE_BESIDE, (*given, row.beside))
    else:
        db.execute(ENQUEUE, given)
    if not db.changes():
        if row.beside and db.execute(SETTLED, (row.beside,)).get:
            refuse_settled(db, "inbox", row.beside)
        raise DeliveryKnownError(
            f"delivery {row.delivery_id!r} was enqueued before; it is on its way"
        )
    return db.last_insert_rowid()


def put_entry(db: Db, row: Entry, epoch: int, at: float) -> None:
    """Write an entry, or forget it."""
    key = (row.kind, row.id)
    told = (row.owner, row.part, epoch, row.body, at)
    if row.expected is None:
        if row.body is None:
            db.execute(FORGET_ENTRY, key)
        else:
            db.execute(PUT_ENTRY, key + told)
        return
    if row.expected:
        if row.body is None:
            db.execute(FORGET_ENTRY_AT, (*key, row.expected))
        else:
            db.execute(CHANGE_ENTRY, (*told, *key, row.expected))
        is_done = db.changes() > 0
    elif row.body is None:
        is_done = db.execute(VERSION, key).get is None
    else:
        db.execute(ADD_ENTRY, key + told)
        is_done = db.changes() > 0
    if not is_done:
        refuse_entry(db, row)


def refuse_append(db: Db, row: Append) -> NoReturn:
    """Say why events could not be appended.

    Raises:
        SequenceConflictError: always.
    """
    last: int = db.execute(LAST, (row.stream,)).get or 0
    raise SequenceConflictError(
        f"stream {row.stream!r} ends at {last}, not at {row.expected}: another"
        " writer was first; read it again"
    )


def refuse_entry(db: Db, row: Entry) -> NoReturn:
    """Say why an entry could not be changed.

    Raises:
        SequenceConflictError: always.
    """
    version: int = db.execute(VERSION, (row.kind, row.id)).get or 0
    raise SequenceConflictError(
        f"{row.kind} {row.id!r} is at version {version}, not at {row.expected}:"
        " another writer was first; read it again"
    )


def refuse_settled(db: Db, table: Literal["inbox", "outbox"], name: object) -> NoReturn:
    """Say why a message or delivery could not be changed.

    Raises:
        MisuseError: there is none.
        DuplicateError: it is settled.
    """
    what, done = (
        ("message", "accepted") if table == "inbox" else ("delivery", "enqueued")
    )
    state = db.execute(f"SELECT state FROM {table} WHERE id = ?", (name,)).get
    if state is None:
        raise MisuseError(f"no {what} {name!r} was ever {done}")
    raise DuplicateError(f"{what} {name!r} is {state} already and stays so")


def prune(db: Db, before: float, limit: int) -> Pruned:
    """Forget rows settled long ago, and the events of their messages."""
    names: list[tuple[str]] = []
    owners: list[tuple[str]] = []
    events = 0
    for name, count in list(db.execute(OLD_MESSAGES, (before, limit))):
        if events and events + count > limit:
            break
        events += count
        names.append((name,))
        owners.extend([(name,)] if count else [])
    db.executemany(FORGET_EVENTS, owners)
    db.executemany(FORGET_MESSAGE, names)
    deliveries = len(list(db.execute(PRUNE_OUTBOX, (before, limit))))
    return Pruned(len(names), deliveries, events)


def prune_records(db: Db, kind: str, before: float, limit: int) -> int:
    """Forget records of a kind, those written longest ago first."""
    return len(list(db.execute(PRUNE_RECORDS, (kind, before, limit))))
