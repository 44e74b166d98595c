"""Goes through all rows of a database, and changes or removes those it is told to.

For what must not stay anywhere in it. Nobody else may work with the database meanwhile.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

import msgspec

from runtime.store.rows import AnyRow, TableName

if TYPE_CHECKING:
    from runtime.sql.read import Db, Row
    from runtime.store.database import Decide

    Stream = Callable[[str], Iterator[Row]]
    """Gives the rows of a statement one after the other."""

READ: dict[TableName, tuple[str, str]] = {
    "inbox": ("SELECT 0, connector, id, '', '', body FROM inbox", "id"),
    "journal": (
        """SELECT sequence, kind, stream, '', coalesce(inbox_id, ''), body
        FROM journal""",
        "sequence, stream",
    ),
    "outbox": ("SELECT 0, connector, id, chat, correlation_id, body FROM outbox", "id"),
    "snapshot": ("SELECT 0, '', stream, '', '', body FROM snapshot", "stream"),
    "record": ("SELECT 0, kind, id, owner, '', body FROM record", "id, kind"),
    "entry": ("SELECT 0, kind, id, owner, '', body FROM entry", "id, kind"),
    "fact": (
        """SELECT fact.number, fact.kind, fact.id, home.scope, home.agent,
        text, category, key, provenance
        FROM fact JOIN fact_scope AS home ON home.number = fact.scope""",
        "number",
    ),
}
"""By table: number, kind, id, owner, key, body; and the columns that name a row."""

EMPTY_SCOPES = """DELETE FROM fact_scope WHERE NOT EXISTS
    (SELECT 1 FROM fact WHERE fact.scope = fact_scope.number)"""
"""The name of a scope says whose it is, so it is removed with the last fact."""

TOLD = ("text", "category", "key", "provenance")
"""What the body of a fact is made of."""


def rows_of(stream: Stream, table: TableName) -> Iterator[tuple[int, AnyRow]]:
    """Give the rows of a table with their numbers, 0 where none is needed."""
    for number, kind, name, owner, key, body, *more in stream(READ[table][0]):
        if table == "fact":
            told: dict[str, str] = dict(zip(TOLD, (body, *more), strict=True))
            packed = msgspec.json.encode(told)
            yield number, AnyRow(table, kind, name, owner, key, packed)
        else:
            yield number, AnyRow(table, kind, name, owner, key, bytes(body))


def change(db: Db, stream: Stream, table: TableName, decide: Decide) -> int:
    """Change the rows of a table; count them."""
    # Why first all: a table that is read must not change meanwhile.
    wanted = [
        (number, row, body)
        for number, row in rows_of(stream, table)
        if (body := decide(row)) != row.body
    ]
    columns = READ[table][1]
    where = " AND ".join([f"{each} = ?" for each in columns.split(", ")])
    for number, row, body in wanted:
        found = {
            "id": row.id,
            "stream": row.id,
            "kind": row.kind,
            "number": number,
            "sequence": number,
        }
        place = [found[each] for each in columns.split(", ")]
        if body is None:
            db.execute(f"DELETE FROM {table} WHERE {where}", place)
        elif table != "fact":
            more = ", version = version + 1" if table == "entry" else ""
            db.execute(
                f"UPDATE {table} SET body = ?{more} WHERE {where}", (body, *place)
            )
    if table == "fact":
        db.execute(EMPTY_SCOPES)
    return len(wanted)
