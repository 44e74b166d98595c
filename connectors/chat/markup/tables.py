"""Tables where a platform has none: drawn with blanks, or row by row."""

from __future__ import annotations

import unicodedata
from typing import TYPE_CHECKING

from connectors.chat.markup.tree import Inline, Link, Text, words_of

if TYPE_CHECKING:
    from connectors.chat.markup.tree import Align, Table

# Chosen: what a phone that is held upright shows of code without breaking its lines is
# less, what it shows across is more.
MOST_WIDTH = 60
"""Columns of letters; wider tables are not drawn."""

BETWEEN = " | "


def aligned(table: Table) -> list[str] | None:
    """Draw a table for letters of one width.

    Returns:
        None if it is too wide, or has links, which could not be followed there.
    """
    cells = [inline for row in table.rows for inline in row]
    if any(isinstance(piece, Link) for inline in cells for piece in inline):
        return None
    rows = [[words_of(inline).strip() for inline in row] for row in table.rows]
    widths = [max(map(width_of, column)) for column in zip(*rows, strict=True)]
    if sum(widths) + len(BETWEEN) * (len(widths) - 1) > MOST_WIDTH:
        return None
    head, *others = (_row(row, widths, table.aligns) for row in rows)
    return [head, "-+-".join("-" * width for width in widths), *others]


def as_lines(table: Table) -> list[Inline]:
    """Give a table row by row, without empty cells at the ends."""
    return [_joined(row) for row in table.rows]


def width_of(text: str) -> int:
    """Count the columns that a text takes where letters have one width."""
    return sum(_width(letter) for letter in text)


def _width(letter: str) -> int:
    if unicodedata.category(letter) in {"Mn", "Me", "Cf"}:
        return 0
    return 2 if unicodedata.east_asian_width(letter) in {"W", "F"} else 1


def _row(row: list[str], widths: list[int], aligns: tuple[Align, ...]) -> str:
    cells = map(_padded, row, widths, aligns)
    return BETWEEN.join(cells).rstrip()


def _padded(text: str, width: int, align: Align) -> str:
    missing = width - width_of(text)
    before = {"right": missing, "center": missing // 2}.get(align, 0)
    return " " * before + text + " " * (missing - before)


def _joined(row: tuple[Inline, ...]) -> Inline:
    cells = list(row)
    while len(cells) > 1 and not cells[-1]:
        cells.pop()
    first, *others = cells
    return (*first, *(piece for cell in others for piece in (Text(BETWEEN), *cell)))
