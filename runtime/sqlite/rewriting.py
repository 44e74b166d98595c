"""Goes through all rows of a database, and changes or removes those it is told to.

For what must not stay anywhere in the file: what a row held is overwritten, also in the
log of writes beside it. Nobody else may work with the database meanwhile (`claim`).
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from pathlib import Path

import apsw

from runtime.sqlite.file import SqliteFile, SqliteOptions
from runtime.store.rows import AnyRow, TableName

Decide = Callable[[AnyRow], bytes | None]
"""Gives the new body of a row, the same bytes to leave it alone, None to remove it."""

READ: dict[TableName, str] = {
    "inbox": "SELECT number, connector, id, '', '', body FROM inbox",
    "journal": """SELECT number, kind, stream, '', coalesce(inbox_id, ''), body
        FROM journal""",
    "outbox": "SELECT number, connector, id, chat, correlation_id, body FROM outbox",
    "snapshot": "SELECT rowid, '', stream, '', '', body FROM snapshot",
    "record": "SELECT number, kind, id, owner, '', body FROM record",
    "entry": "SELECT 0, kind, id, owner, '', body FROM entry",
    "fact": """SELECT fact.number, fact.kind, fact.id, home.scope, home.agent,
        CAST(json_object('text', text, 'category', category, 'key', key,
            'provenance', provenance) AS BLOB)
        FROM fact JOIN fact_scope AS home ON home.number = fact.scope""",
}
"""By table: number, kind, id, owner, key, body."""


def rewrite(path: Path, decide: Decide) -> int:
    """Ask about each row, and change what is wanted, all of it or nothing.

    Args:
        path: the database; claimed by the caller.
        decide: see `Decide`; the body of a fact cannot be changed, only removed.

    Returns:
        How many rows were changed or removed.

    Raises:
        StoreError: the disk fails; nothing has been changed.
    """
    file = SqliteFile(path, SqliteOptions(busy_timeout=10.0))
    db = file.open_existing(apsw.SQLITE_OPEN_READWRITE)
    count = 0
    with contextlib.closing(db), file.told():
        db.pragma("secure_delete", "on")
        db.pragma("synchronous", "full")
        with db:
            count = sum(change(db, table, decide) for table in READ)
        if count:
            db.pragma("wal_checkpoint", "TRUNCATE")
    return count


def every_row(path: Path) -> Iterator[AnyRow]:
    """Give every row, as of one moment.

    Raises:
        StoreError: the disk fails.
    """
    file = SqliteFile(path)
    with contextlib.closing(file.open_existing()) as db, file.told(), db:
        for table in READ:
            for _, row in rows_of(db, table):
                yield row


def rows_of(db: apsw.Connection, table: TableName) -> Iterator[tuple[int, AnyRow]]:
    """Give the rows of a table with their numbers; entries have none."""
    for number, kind, name, owner, key, body in db.execute(READ[table]):
        yield number, AnyRow(table, kind, name, owner, key, bytes(body))


def change(db: apsw.Connection, table: TableName, decide: Decide) -> int:
    """Change the rows of a table; count them."""
    # Why first all: a table that is read must not change meanwhile.
    wanted = [
        (number, row, body)
        for number, row in rows_of(db, table)
        if (body := decide(row)) != row.body
    ]
    for number, row, body in wanted:
        place: tuple[str | int, ...] = (number,)
        where = "rowid = ?" if table == "snapshot" else "number = ?"
        if table == "entry":
            where, place = "kind = ? AND id = ?", (row.kind, row.id)
        if body is None:
            db.execute(f"DELETE FROM {table} WHERE {where}", place)  # noqa: S608
        elif table != "fact":
            more = ", version = version + 1" if table == "entry" else ""
            sql = f"UPDATE {table} SET body = ?{more} WHERE {where}"  # noqa: S608
            db.execute(sql, (body, *place))
    return len(wanted)
