"""Copies all rows of one database into another, whatever engines keep them.

Both engines have these tables with these columns, and more that follow from them. Rows
keep their numbers, and the next number is what it would have been: numbers are written
down elsewhere. What was copied is read back and compared, row by row.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator
from typing import Protocol

import msgspec

from runtime.errors import CorruptError

Row = tuple[object, ...]

PAGE = 1000
"""Rows that are held at once."""


class Table(msgspec.Struct, frozen=True):
    """A table of every engine."""

    name: str
    columns: tuple[str, ...]
    order: tuple[str, ...]
    """The columns that rows are read in the order of; no two rows are equal in them."""

    is_numbered: bool = True
    """Whether each new row gets the next number."""


def table(name: str, columns: str, order: str = "number") -> Table:
    """Describe a table."""
    key = tuple(order.split())
    return Table(name, tuple(columns.split()), key, is_numbered=key == ("number",))


TABLES = (
    table(
        "inbox",
        "number id connector platform_id part epoch stream body accepted_at priority"
        " state attempts started_at due_at reason settled_at",
    ),
    table("journal", "number stream sequence kind body part epoch at inbox_id"),
    table(
        "outbox",
        "number id connector chat correlation_id part epoch body enqueued_at state"
        " attempts receipt settled_at",
    ),
    table("snapshot", "stream sequence schema part epoch body at", "stream"),
    table("record", "number kind id owner part epoch body at"),
    table("entry", "kind id owner part epoch version body at", "kind id"),
    table("fact_scope", "number agent scope"),
    table(
        "fact",
        "number id scope kind category key text words provenance part epoch created_at"
        " used_at expires_at space",
    ),
    table("fact_vector", "scope number space vector", "scope number"),
)
"""In an order in which they can be filled."""


class RowReader(Protocol):
    """Reads a database whole, as of one moment."""

    def rows(self, table: Table) -> Iterator[Row]:
        """Give the rows of a table, in its order."""
        ...

    def last_number(self, table: Table) -> int:
        """Give the last number that a row of it was ever given; 0: none."""
        ...


class RowFiller(RowReader, Protocol):
    """Fills an empty database, in one transaction."""

    def fill(self, table: Table, rows: Iterable[Row]) -> None:
        """Add rows as they are."""
        ...

    def number_on(self, table: Table, last: int) -> None:
        """Have the next row numbered behind `last`."""
        ...


def copy_rows(
    source: RowReader, target: RowFiller, tell: Callable[[str, int], object]
) -> None:
    """Copy all rows, and compare what arrived.

    Args:
        target: where there are none yet; kept only if this returns.
        tell: called with the name of each table and how many rows it has.

    Raises:
        CorruptError: what was read back is not what was copied.
        StoreError: one of them cannot be read or written.
    """
    for each in TABLES:
        target.fill(each, source.rows(each))
        if each.is_numbered:
            target.number_on(each, source.last_number(each))
    for each in TABLES:
        tell(each.name, compare(each, source, target))


def compare(table: Table, source: RowReader, target: RowReader) -> int:
    """Count the rows of a table, which both must have alike.

    Raises:
        CorruptError: they have not.
    """
    count = 0
    both = itertools.zip_longest(source.rows(table), target.rows(table))
    for count, (ours, theirs) in enumerate(both, 1):
        if ours != theirs:
            raise CorruptError(
                f"row {count} of {table.name} did not arrive as it was; nothing is kept"
            )
    if table.is_numbered and source.last_number(table) != target.last_number(table):
        raise CorruptError(
            f"{table.name} would continue with other numbers; nothing is kept"
        )
    return count


def pages(rows: Iterable[Row]) -> Iterator[list[Row]]:
    """Give rows in lists of `PAGE`."""
    left = iter(rows)
    while page := list(itertools.islice(left, PAGE)):
        yield page
