"""Writes rows for people and for programs.

What people and agents wrote is made safe for a terminal first; what a terminal cannot
show becomes a question mark.
"""

from __future__ import annotations

import sys
import unicodedata
from collections.abc import (
    Callable,
    Collection,
    Generator,
    Iterable,
    Iterator,
    Sequence,
)
from contextlib import contextmanager
from typing import TypeVar

import click
import msgspec

from connectors.admin.display import NONE, make_safe

Row = TypeVar("Row")

FAILED = 1
"""Exit code of a command that could not do what it was told."""

FIRST_WORDS = 48
"""Characters of a text in a table."""


json_option = click.option("--json", "as_json", is_flag=True, help="For programs.")
"""Gives a command the parameter `as_json: bool`."""


def say(text: str = "") -> None:
    """Write one or more lines to standard output."""
    encoding = getattr(sys.stdout, "encoding", None) or "utf-8"
    click.echo(text.encode(encoding, "replace").decode(encoding))


def complain(text: str) -> None:
    """Write one line to standard error, as `callboard` writes its errors."""
    click.echo(f"callboard: {make_safe(text)}", err=True)


def say_json(value: object, *, is_line: bool = False) -> None:
    """Write a value as JSON, always UTF-8.

    Args:
        value: what msgspec can encode.
        is_line: whether it is one line of many.
    """
    made = msgspec.json.encode(value)
    click.echo(made if is_line else msgspec.json.format(made))


def first_words(text: str, most: int = FIRST_WORDS) -> str:
    """Write the beginning of a text on one line."""
    line = " ".join(make_safe(text[: 4 * most]).split())
    return line if len(line) <= most else f"{line[: most - 1]}…"


def table(headers: Sequence[str], rows: Iterable[Sequence[object]]) -> Iterator[str]:
    """Write rows in aligned columns; nothing at all (empty, None) is `-`.

    The last column is as wide as it likes.
    """
    cells = [tuple(headers)]
    cells += [tuple(in_cell(value) for value in row) for row in rows]
    widths = [max(map(width, column)) for column in zip(*cells, strict=True)]
    for row in cells:
        *before, last = row
        padded = [
            cell + " " * (most - width(cell))
            for cell, most in zip(before, widths, strict=False)
        ]
        yield "  ".join([*padded, last])


def say_rows(
    rows: Collection[Row],
    headers: Sequence[str],
    cells: Callable[[Row], Sequence[object]],
    none: str,
) -> None:
    """Write rows as a table.

    Args:
        rows: what is listed.
        headers: of the columns.
        cells: gives the columns of one row.
        none: what is said if there is no row.
    """
    if not rows:
        say(none)
    for line in table(headers, map(cells, rows)) if rows else ():
        say(line)


def in_cell(value: object) -> str:
    """Write one value of a table."""
    return NONE if value is None else first_words(str(value), 200) or NONE


def width(text: str) -> int:
    """Count the columns that a text takes on a terminal."""
    return sum(_width(character) for character in text)


def indented(text: str, indent: int) -> str:
    """Write a text of several lines, each but the first behind so many spaces."""
    return make_safe(text).replace("\n", "\n" + " " * indent)


def _width(character: str) -> int:
    if unicodedata.combining(character):
        return 0
    return 2 if unicodedata.east_asian_width(character) in "WF" else 1


@contextmanager
def progress(total: int, label: str) -> Generator[Callable[[int], object]]:
    """Show how far long work is, on standard error, if that is a terminal.

    Args:
        total: how much is to be done, in whatever it is counted.
        label: what is done.

    Yields:
        What is told how much more is done.
    """
    if sys.stderr is None or not sys.stderr.isatty():
        yield _nothing
        return
    with click.progressbar(
        length=max(total, 1), label=label, file=sys.stderr, show_pos=False
    ) as bar:
        yield bar.update


def _nothing(_done: int) -> None:
    """Show nothing."""


Counted = TypeVar("Counted")


def counting(
    rows: Iterable[Counted], advance: Callable[[int], object]
) -> Iterator[Counted]:
    """Give rows on, telling of each that it is done."""
    for row in rows:
        yield row
        advance(1)


def counted(count: int, noun: str) -> str:
    """Count things: `1 delivery`, `2 deliveries`."""
    plural = f"{noun[:-1]}ies" if noun.endswith("y") else f"{noun}s"
    return f"{count:,} {noun if count == 1 else plural}"
