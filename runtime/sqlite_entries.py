"""Entries as SQL: plain functions on an open connection."""

# apsw's stubs name `collections.abc.Buffer`, which Python 3.11 has not got yet:
# pyright: reportUnknownMemberType=false

from __future__ import annotations

from typing import TYPE_CHECKING

from runtime.entries import StoredEntry
from runtime.errors import SequenceConflictError

if TYPE_CHECKING:
    import apsw

    from runtime.entries import Entry

COLUMNS = "kind, id, owner, part, epoch, version, body, at"
VERSION = "SELECT version FROM entry WHERE kind = ? AND id = ?"
PUT = """INSERT INTO entry(kind, id, owner, part, epoch, version, body, at)
    VALUES (?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT(kind, id) DO UPDATE SET
    owner = excluded.owner, part = excluded.part, epoch = excluded.epoch,
    version = excluded.version, body = excluded.body, at = excluded.at"""
FORGET = "DELETE FROM entry WHERE kind = ? AND id = ?"
ONE = f"SELECT {COLUMNS} FROM entry WHERE kind = ? AND id = ?"
ALL = f"""SELECT {COLUMNS} FROM entry WHERE kind = ? AND id > ?
    ORDER BY id LIMIT ?"""
OWNED = f"""SELECT {COLUMNS} FROM entry INDEXED BY entry_owner
    WHERE kind = ? AND owner = ? AND id > ? ORDER BY id LIMIT ?"""


def put(db: apsw.Connection, row: Entry, epoch: int, at: float) -> None:
    """Write an entry, or forget it.

    Raises:
        SequenceConflictError: its version is not the expected one.
    """
    version: int = db.execute(VERSION, (row.kind, row.id)).get or 0
    if row.expected is not None and row.expected != version:
        raise SequenceConflictError(
            f"{row.kind} {row.id!r} is at version {version}, not at {row.expected}:"
            " another writer was first; read it again"
        )
    if row.body is None:
        db.execute(FORGET, (row.kind, row.id))
    else:
        key = (row.kind, row.id, row.owner, row.part, epoch)
        db.execute(PUT, (*key, version + 1, row.body, at))


def one(db: apsw.Connection, kind: str, name: str) -> StoredEntry | None:
    """Read one entry."""
    row = db.execute(ONE, (kind, name)).get
    return None if row is None else StoredEntry(*row)


def listed(
    db: apsw.Connection, kind: str, owner: str | None, after: str, limit: int
) -> tuple[StoredEntry, ...]:
    """Read entries of a kind, of one owner or of all, in the order of their ids."""
    if owner is None:
        rows = db.execute(ALL, (kind, after, limit))
    else:
        rows = db.execute(OWNED, (kind, owner, after, limit))
    return tuple(StoredEntry(*row) for row in rows)
