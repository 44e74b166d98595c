"""What people change in a database by hand, while a server may be using it.

Each change is one short transaction of its own, durable when the call returns. A
running server notices it within seconds (`Store.was_changed_outside`). It blocks:
for command-line tools.
"""

# apsw's stubs name `collections.abc.Buffer`, which Python 3.11 has not got yet:
# pyright: reportUnknownMemberType=false

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING

import apsw
import msgspec

from runtime import sqlite_reads, sqlite_rows
from runtime.rows import BY_HAND
from runtime.sqlite_browse import find
from runtime.sqlite_file import SqliteFile, SqliteOptions, is_claimed

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterable
    from pathlib import Path

    from runtime.rows import Commit, StoredMessage

# Chosen: longer than any group commit takes, also on a slow disk.
PATIENCE = SqliteOptions(busy_timeout=10.0)

DROPPED = "by hand"

# Why the attempts stay: each has its row in the ledger. `BY_HAND` grants new ones, and
# tells a delivery that is to be said once more from one that was handed over twice.
RETRY = """UPDATE inbox SET state = 'accepted', reason = ?, due_at = 0.0,
    settled_at = NULL WHERE id = ?"""
HURRY = "UPDATE inbox SET due_at = 0.0 WHERE id = ?"
DROP = "UPDATE inbox SET state = 'dropped', reason = ?, settled_at = ? WHERE id = ?"
EPOCH = "SELECT max(epoch) FROM entry"
RETRY_DELIVERY = """UPDATE outbox SET state = 'pending', receipt = ?,
    settled_at = NULL WHERE id = ?"""
DROP_DELIVERY = """UPDATE outbox SET state = 'dead', receipt = ?, settled_at = ?
    WHERE id = ?"""

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
LEFT_UNSAID = {
    "pending": "dropped; it is not sent, unless that was under way",
    "unknown": "dropped; it is not sent again",
}
DROP_DELIVERY_REFUSALS = {
    "sending": "it is being sent; wait for its receipt",
}


class Mended(msgspec.Struct, frozen=True):
    """What came of it."""

    has_changed: bool
    text: str
    """What was changed, or why nothing was; one sentence for people."""


def retry(path: Path, name: str, now: float) -> Mended:
    """Have a message that is dead, or waits for its next attempt, tried at once.

    Args:
        path: the database.
        name: id of the message, or its beginning.
        now: Unix seconds.

    Raises:
        MisuseError: no such message, or more than one.
        StoreError: see `runtime.sqlite_file.SqliteFile.open_existing`.
    """
    with mending(path) as db:
        found, state, due_at = find(db, "inbox", "id, state, due_at", name)
        if state == "dead":
            db.execute(RETRY, (BY_HAND, found))
            return Mended(has_changed=True, text=f"message {found} is tried again")
        if state == "accepted" and due_at > now:
            db.execute(HURRY, (found,))
            return Mended(
                has_changed=True, text=f"message {found} no longer waits for its time"
            )
        return refused(f"message {found}", state, RETRY_REFUSALS)


def drop(
    path: Path, name: str, now: float, tell: Callable[[StoredMessage], Commit]
) -> Mended:
    """Settle a message that is dead, or that nobody works on, as dropped.

    What was being worked on when the last process ended is nobody's until the next one
    starts.

    Args:
        path: the database.
        name: id of the message, or its beginning.
        now: Unix seconds.
        tell: makes the commit that settles a waiting message and tells its writer;
            that of a dead one knows already.

    Raises:
        MisuseError: no such message, or more than one.
        StoreError: see `runtime.sqlite_file.SqliteFile.open_existing`.
    """
    with mending(path) as db:
        found, state, number = find(db, "inbox", "id, state, number", name)
        if state == "accepted" or (state == "running" and not is_claimed(path)):
            (row,) = sqlite_reads.unsettled(db, number - 1, 1)
            sqlite_rows.write(db, tell(row), row.epoch)
            return Mended(has_changed=True, text=f"message {found} is dropped")
        if state == "dead":
            db.execute(DROP, (DROPPED, now, found))
            return Mended(has_changed=True, text=f"message {found} is dropped")
        return refused(f"message {found}", state, DROP_REFUSALS)


def retry_delivery(path: Path, name: str) -> Mended:
    """Have a delivery that is dead, or whose fate is unknown, sent again.

    Args:
        path: the database.
        name: id of the delivery, or its beginning.

    Raises:
        MisuseError: no such delivery, or more than one.
        StoreError: see `runtime.sqlite_file.SqliteFile.open_existing`.
    """
    with mending(path) as db:
        found, state = find(db, "outbox", "id, state", name)
        if state in ("dead", "unknown"):
            db.execute(RETRY_DELIVERY, (BY_HAND, found))
            return Mended(has_changed=True, text=f"delivery {found} is sent again")
        return refused(f"delivery {found}", state, RETRY_DELIVERY_REFUSALS)


def drop_delivery(path: Path, name: str, now: float) -> Mended:
    """Settle a delivery that waits, or whose fate is unknown, as dead.

    Args:
        path: the database.
        name: id of the delivery, or its beginning.
        now: Unix seconds.

    Raises:
        MisuseError: no such delivery, or more than one.
        StoreError: see `runtime.sqlite_file.SqliteFile.open_existing`.
    """
    with mending(path) as db:
        found, state = find(db, "outbox", "id, state", name)
        if state in LEFT_UNSAID:
            db.execute(DROP_DELIVERY, (DROPPED, now, found))
            text = f"delivery {found} is {LEFT_UNSAID[state]}"
            return Mended(has_changed=True, text=text)
        return refused(f"delivery {found}", state, DROP_DELIVERY_REFUSALS)


def write(path: Path, commit: Commit) -> None:
    """Store one unit beside a server.

    Args:
        path: the database.
        commit: what to store.

    Raises:
        SequenceConflictError: an entry was changed since it was read.
        StoreError: see `runtime.sqlite_file.SqliteFile.open_existing`.
    """
    write_all(path, (commit,))


def write_all(path: Path, commits: Iterable[Commit]) -> int:
    """Store many units, all of them or none, also should the process be killed.

    Args:
        path: the database.
        commits: what to store; taken one by one, so that they need not be held at
            once. What they raise, too, leaves nothing behind.

    Returns:
        How many there were.

    Raises:
        SequenceConflictError: an entry was changed since it was read, or a stream is
            not where it was expected to be.
        StoreError: see `runtime.sqlite_file.SqliteFile.open_existing`.
    """
    count = 0
    with mending(path) as db:
        epoch: int = db.execute(EPOCH).get or 0
        for commit in commits:
            sqlite_rows.write(db, commit, epoch)
            count += 1
    return count


def refused(what: str, state: str, reasons: dict[str, str]) -> Mended:
    """Say why nothing was changed."""
    why = reasons.get(state, SETTLED)
    return Mended(has_changed=False, text=f"{what} is {state}: {why}")


@contextlib.contextmanager
def mending(path: Path) -> Generator[apsw.Connection]:
    """Open a database for one transaction, kept if nothing is raised."""
    file = SqliteFile(path, PATIENCE)
    db = file.open_existing(apsw.SQLITE_OPEN_READWRITE)
    try:
        with file.told():
            db.pragma("synchronous", "full")
            db.execute("BEGIN IMMEDIATE")
            yield db
            db.execute("COMMIT")
    finally:
        db.close()
