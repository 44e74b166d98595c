"""The store's rows as SQL for PostgreSQL: writing one commit, and forgetting old rows.

Plain functions on a `Session`, inside a transaction that its owner began and ends. Most
statements need no answer before the next one is sent; so they are sent together, and
what each has changed is looked at when all are done.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, Generic, NoReturn, TypeVar

from runtime.errors import (
    DeliveryKnownError,
    DuplicateError,
    MisuseError,
    SequenceConflictError,
)
from runtime.postgresql.facts import change_facts
from runtime.postgresql.read import Rows, rows_of, run
from runtime.store.rows import Committed, Pruned

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    import psycopg

    from runtime.postgresql.server import Db
    from runtime.store.rows import Append, Commit, Entry

T = TypeVar("T")

ACCEPT = """INSERT INTO inbox
    (id, connector, platform_id, part, epoch, stream, body, accepted_at, priority)
    VALUES (%s, %s, %s, %s, %s, %s, %s, %s, %s) ON CONFLICT DO NOTHING
    RETURNING number"""
AMEND = "UPDATE inbox SET body = %s WHERE id = %s AND settled_at IS NULL"
CLAIM = """UPDATE inbox SET state = 'running', attempts = %s, started_at = %s
    WHERE id = %s AND settled_at IS NULL"""
DEFER = """UPDATE inbox
    SET state = 'accepted', attempts = %s, due_at = %s, reason = %s, started_at = %s
    WHERE id = %s AND settled_at IS NULL"""
LAST = "SELECT coalesce(max(sequence), 0) FROM journal WHERE stream = %s"
ENDS_AT = f"SELECT 1 WHERE ({LAST}) = %s"
APPEND = f"""INSERT INTO journal
    (stream, sequence, kind, body, part, epoch, at, inbox_id)
    SELECT %s, %s + event.n, event.kind, event.body, %s, %s, %s, %s
    FROM unnest(%s::text[], %s::bytea[]) WITH ORDINALITY AS event(kind, body, n)
    WHERE ({LAST}) = %s"""
SNAPSHOT = """INSERT INTO snapshot(stream, sequence, schema, part, epoch, body, at)
    VALUES (%s, %s, %s, %s, %s, %s, %s) ON CONFLICT(stream) DO UPDATE SET
    sequence = excluded.sequence, schema = excluded.schema, part = excluded.part,
    epoch = excluded.epoch, body = excluded.body, at = excluded.at
    WHERE excluded.sequence >= snapshot.sequence"""
ENQUEUE = """INSERT INTO outbox
    (id, connector, chat, correlation_id, part, epoch, body, enqueued_at)
    VALUES (%s, %s, %s, %s, %s, %s, %s, %s) ON CONFLICT DO NOTHING
    RETURNING number"""
SETTLE = """UPDATE inbox SET state = %s, reason = %s, settled_at = %s
    WHERE id = %s AND settled_at IS NULL"""
ATTEMPT = """UPDATE outbox SET state = 'sending', attempts = %s, receipt = ''
    WHERE id = %s AND settled_at IS NULL"""
NOT_SAID = """UPDATE outbox SET state = 'pending', receipt = %s
    WHERE id = %s AND settled_at IS NULL"""
RECEIVE = """UPDATE outbox SET state = %s, receipt = %s, attempts = %s, settled_at = %s
    WHERE id = %s AND settled_at IS NULL"""
# A record that is replaced gets a new number: it is the one written last.
RECORD = """INSERT INTO record(kind, id, owner, part, epoch, body, at)
    VALUES (%s, %s, %s, %s, %s, %s, %s) ON CONFLICT(kind, id) DO UPDATE SET
    number = excluded.number, owner = excluded.owner, part = excluded.part,
    epoch = excluded.epoch, body = excluded.body, at = excluded.at"""

NEW_ENTRY = """INSERT INTO entry(kind, id, owner, part, epoch, version, body, at)
    VALUES (%s, %s, %s, %s, %s, 1, %s, %s) ON CONFLICT(kind, id)"""
ADD_ENTRY = f"{NEW_ENTRY} DO NOTHING"
PUT_ENTRY = f"""{NEW_ENTRY} DO UPDATE SET owner = excluded.owner,
    part = excluded.part, epoch = excluded.epoch, version = entry.version + 1,
    body = excluded.body, at = excluded.at"""
CHANGE_ENTRY = """UPDATE entry SET owner = %s, part = %s, epoch = %s,
    version = version + 1, body = %s, at = %s
    WHERE kind = %s AND id = %s AND version = %s"""
FORGET_ENTRY = "DELETE FROM entry WHERE kind = %s AND id = %s"
NO_ENTRY = """SELECT 1 WHERE NOT EXISTS
    (SELECT 1 FROM entry WHERE kind = %s AND id = %s)"""
VERSION = "SELECT version FROM entry WHERE kind = %s AND id = %s"

OLD_MESSAGES = """SELECT number, id,
    (SELECT count(*) FROM journal WHERE journal.inbox_id = inbox.id)
    FROM inbox WHERE settled_at IS NOT NULL AND settled_at < %s
    ORDER BY settled_at, number LIMIT %s"""
FORGET_MESSAGES = "DELETE FROM inbox WHERE id = ANY(%s::text[])"
FORGET_EVENTS = "DELETE FROM journal WHERE inbox_id = ANY(%s::text[])"
PRUNE_OUTBOX = """DELETE FROM outbox WHERE id IN (
    SELECT id FROM outbox WHERE settled_at IS NOT NULL AND settled_at < %s
    ORDER BY settled_at, number LIMIT %s)"""
PRUNE_RECORDS = """DELETE FROM record WHERE (kind, id) IN (
    SELECT kind, id FROM record WHERE kind = %s AND at < %s
    ORDER BY at, number LIMIT %s)"""


class Pending(Generic[T]):
    """A result that is known when what was sent has been answered.

    Args:
        give: gives it then.
    """

    def __init__(self, give: Callable[[], T]) -> None:
        self.give = give


class Session:
    """A connection inside a transaction, which sends statements and checks them later.

    Args:
        db: an open connection, with a transaction under way.
        is_stepping: whether each statement is answered and checked before the next one
            is sent; so what a caller is told of is the first that failed.
    """

    def __init__(self, db: Db, *, is_stepping: bool = False) -> None:
        self.db = db
        self._is_stepping = is_stepping
        self._checks: list[tuple[psycopg.Cursor[Any], int, Callable[[], NoReturn]]] = []

    def send(self, sql: str, given: Sequence[object]) -> psycopg.Cursor[Any]:
        """Send a statement; its rows are there when it has been answered."""
        return self.db.execute(sql.encode(), given, binary=True)

    def change(
        self,
        sql: str,
        given: Sequence[object],
        refuse: Callable[[], NoReturn],
        rows: int = 1,
    ) -> psycopg.Cursor[Any]:
        """Send a statement that must change so many rows; else `refuse` says why."""
        cursor = self.send(sql, given)
        if not self._is_stepping:
            self._checks.append((cursor, rows, refuse))
        elif cursor.rowcount != rows:
            refuse()
        return cursor

    def check(self) -> None:
        """Check what has been answered.

        Raises:
            StoreError: what a statement's `refuse` raises.
            MisuseError: same.
        """
        checks, self._checks = self._checks, []
        for cursor, rows, refuse in checks:
            if cursor.rowcount != rows:
                refuse()


def write(session: Session, commit: Commit, epoch: int) -> Pending[Committed]:
    """Write one commit.

    Raises:
        DuplicateError: see `runtime.store.Store.commit`; half of it may be written,
            the caller rolls back. So with all of these.
        SequenceConflictError: same.
        MisuseError: same.
    """
    at = commit.at
    accepted = accept(session, commit, epoch)
    change_messages(session, commit, at)
    sequences = tuple([append(session, row, epoch, at) for row in commit.appends])
    for each in commit.snapshots:
        key = (each.stream, each.sequence, each.schema, each.part)
        session.send(SNAPSHOT, (*key, epoch, each.body, at))
    for settle in commit.settles:
        refuse = partial(refuse_message, session.db, settle.inbox_id)
        session.change(
            SETTLE, (settle.state, settle.reason, at, settle.inbox_id), refuse
        )
    enqueued = enqueue(session, commit, epoch)
    change_deliveries(session, commit, at)
    for record in commit.records:
        named = (record.kind, record.id, record.owner, record.part, epoch)
        session.send(RECORD, (*named, record.body, at))
    for entry in commit.entries:
        put_entry(session, entry, epoch, at)
    if commit.facts:
        change_facts(session.db, commit.facts, epoch, at)
    return Pending(
        lambda: Committed(
            tuple([number_in(cursor) for cursor in accepted]),
            sequences,
            tuple([number_in(cursor) for cursor in enqueued]),
        )
    )


def number_in(cursor: psycopg.Cursor[Any]) -> int:
    """Read the number that a new row was given."""
    row = cursor.fetchone()
    return 0 if row is None else int(row[0])


def accept(session: Session, commit: Commit, epoch: int) -> list[psycopg.Cursor[Any]]:
    """Add messages to the inbox."""
    sent: list[psycopg.Cursor[Any]] = []
    for row in commit.accepts:
        key = (row.id, row.connector, row.platform_id)
        given = (row.part, epoch, row.stream, row.body, row.at, row.priority)
        told = (
            f"message {row.id!r} ({row.connector}/{row.platform_id}) was accepted"
            " before; acknowledge it and do no more"
        )
        refuse = partial(raise_now, DuplicateError, told)
        sent.append(session.change(ACCEPT, key + given, refuse))
    return sent


def enqueue(session: Session, commit: Commit, epoch: int) -> list[psycopg.Cursor[Any]]:
    """Add deliveries to the outbox."""
    sent: list[psycopg.Cursor[Any]] = []
    for row in commit.deliveries:
        key = (row.delivery_id, row.connector, row.chat, row.correlation_id)
        told = f"delivery {row.delivery_id!r} was enqueued before; it is on its way"
        refuse = partial(raise_now, DeliveryKnownError, told)
        given = (row.part, epoch, row.body, commit.at)
        sent.append(session.change(ENQUEUE, key + given, refuse))
    return sent


def raise_now(kind: type[Exception], text: str) -> NoReturn:
    """Raise an error."""
    raise kind(text)


def change_messages(session: Session, commit: Commit, at: float) -> None:
    """Write a commit's changes of messages that are not settled."""
    for amend in commit.amends:
        refuse = partial(refuse_message, session.db, amend.inbox_id)
        session.change(AMEND, (amend.body, amend.inbox_id), refuse)
    for claim in commit.claims:
        refuse = partial(refuse_message, session.db, claim.inbox_id)
        session.change(CLAIM, (claim.attempt, at, claim.inbox_id), refuse)
    for defer in commit.defers:
        refuse = partial(refuse_message, session.db, defer.inbox_id)
        given = (defer.attempts, defer.due_at, defer.reason, at, defer.inbox_id)
        session.change(DEFER, given, refuse)


def change_deliveries(session: Session, commit: Commit, at: float) -> None:
    """Write a commit's changes of known deliveries."""
    for sending in commit.send_attempts:
        refuse = partial(refuse_delivery, session.db, sending.delivery_id)
        session.change(ATTEMPT, (sending.attempt, sending.delivery_id), refuse)
    for unsaid in commit.not_said:
        refuse = partial(refuse_delivery, session.db, unsaid.delivery_id)
        session.change(NOT_SAID, (unsaid.why, unsaid.delivery_id), refuse)
    for row in commit.receipts:
        refuse = partial(refuse_delivery, session.db, row.delivery_id)
        given = (row.state, row.receipt, row.attempts, at, row.delivery_id)
        session.change(RECEIVE, given, refuse)


def append(session: Session, row: Append, epoch: int, at: float) -> int:
    """Add events to the end of a stream and give the number of its last one."""
    refuse = partial(refuse_append, session.db, row)
    if not row.events:
        session.change(ENDS_AT, (row.stream, row.expected), refuse)
        return row.expected
    given = (row.stream, row.expected, row.part, epoch, at, row.inbox_id or None)
    kinds = [event.kind for event in row.events]
    bodies = [event.body for event in row.events]
    new = (kinds, bodies, row.stream, row.expected)
    session.change(APPEND, (*given, *new), refuse, rows=len(kinds))
    return row.expected + len(kinds)


def put_entry(session: Session, row: Entry, epoch: int, at: float) -> None:
    """Write an entry, or forget it."""
    refuse = partial(refuse_entry, session.db, row)
    key = (row.kind, row.id)
    new = (*key, row.owner, row.part, epoch, row.body, at)
    match row.expected, row.body:
        case None, None:
            session.send(FORGET_ENTRY, key)
        case None, _:
            session.send(PUT_ENTRY, new)
        case 0, None:
            session.change(NO_ENTRY, key, refuse)
        case 0, _:
            session.change(ADD_ENTRY, new, refuse)
        case version, None:
            sql = f"{FORGET_ENTRY} AND version = %s"
            session.change(sql, (*key, version), refuse)
        case version, _:
            given = (row.owner, row.part, epoch, row.body, at, *key, version)
            session.change(CHANGE_ENTRY, given, refuse)


def refuse_append(db: Db, row: Append) -> NoReturn:
    """Say why events could not be appended.

    Raises:
        SequenceConflictError: always.
    """
    last = rows_of(db, LAST, (row.stream,))[0][0]
    raise SequenceConflictError(
        f"stream {row.stream!r} ends at {last}, not at {row.expected}: another"
        " writer was first; read it again"
    )


def refuse_entry(db: Db, row: Entry) -> NoReturn:
    """Say why an entry could not be changed.

    Raises:
        SequenceConflictError: always.
    """
    found = rows_of(db, VERSION, (row.kind, row.id))
    raise SequenceConflictError(
        f"{row.kind} {row.id!r} is at version {found[0][0] if found else 0}, not at"
        f" {row.expected}: another writer was first; read it again"
    )


def refuse_message(db: Db, name: str) -> NoReturn:
    """Say why a message could not be changed.

    Raises:
        MisuseError: there is none.
        DuplicateError: it is settled.
    """
    found = rows_of(db, "SELECT state FROM inbox WHERE id = %s", (name,))
    if not found:
        raise MisuseError(f"no message {name!r} was ever accepted")
    raise DuplicateError(f"message {name!r} is {found[0][0]} already and stays so")


def refuse_delivery(db: Db, name: str) -> NoReturn:
    """Say why a delivery could not be changed.

    Raises:
        MisuseError: there is none.
        DuplicateError: it is settled.
    """
    found = rows_of(db, "SELECT state FROM outbox WHERE id = %s", (name,))
    if not found:
        raise MisuseError(f"no delivery {name!r} was ever enqueued")
    raise DuplicateError(f"delivery {name!r} is {found[0][0]} already and stays so")


def prune(session: Session, before: float, limit: int) -> Pruned:
    """Forget rows settled long ago, and the events of their messages."""
    names: list[str] = []
    owners: list[str] = []
    events = 0
    found: Rows = session.send(OLD_MESSAGES, (before, limit)).fetchall()
    for _, name, count in found:
        if events and events + count > limit:
            break
        events += count
        names.append(name)
        owners += [name] if count else []
    if owners:
        session.send(FORGET_EVENTS, (owners,))
    if names:
        session.send(FORGET_MESSAGES, (names,))
    return Pruned(len(names), run(session.db, PRUNE_OUTBOX, (before, limit)), events)


def prune_records(session: Session, kind: str, before: float, limit: int) -> int:
    """Forget records of a kind, those written longest ago first."""
    return run(session.db, PRUNE_RECORDS, (kind, before, limit))


def probe(session: Session) -> None:
    """Write a row, as a commit would."""
    session.send("UPDATE change SET version = version WHERE topic = 'rows'", ())
