"""A text as a tree: what is shown, without any markup.

Inside a paragraph there are no nested nodes: each piece of text carries its marks, so
that a dialect whose marks must not overlap, or must not stand beside each other, can
place them itself.
"""

from __future__ import annotations

from typing import Literal, TypeAlias

import msgspec

Mark = Literal["strong", "em", "strike"]
Align = Literal["left", "right", "center", ""]
Marks: TypeAlias = tuple[Mark, ...]
"""In the order in which they were opened."""


class Text(msgspec.Struct, frozen=True):
    """Literal text, without line breaks."""

    text: str
    marks: Marks = ()


class Code(msgspec.Struct, frozen=True):
    """Code inside a line."""

    text: str
    marks: Marks = ()


class WebLink(msgspec.Struct, frozen=True):
    """A link to an address that may be followed: http, https or mailto."""

    text: str
    """What is shown, without markup; never empty."""

    href: str
    marks: Marks = ()

    @property
    def is_bare(self) -> bool:
        """Whether what is shown is the address."""
        return self.text in {self.href, self.href.removeprefix("mailto:")}


class Break(msgspec.Struct, frozen=True):
    """A new line inside a paragraph."""


Piece: TypeAlias = Text | Code | WebLink | Break
Inline: TypeAlias = tuple[Piece, ...]


class Paragraph(msgspec.Struct, frozen=True):
    """Text."""

    inline: Inline
    gap: bool = False
    """Whether a blank line stands before it, as for all blocks."""


class Heading(msgspec.Struct, frozen=True):
    """A heading of level 1 to 6."""

    level: int
    inline: Inline
    gap: bool = False


class Fence(msgspec.Struct, frozen=True):
    """A block of code."""

    text: str
    """Without the last line break."""

    language: str = ""
    gap: bool = False


class Rule(msgspec.Struct, frozen=True):
    """A line across."""

    gap: bool = False


class Quote(msgspec.Struct, frozen=True):
    """Blocks that are quoted."""

    blocks: tuple[Block, ...]
    gap: bool = False


class Item(msgspec.Struct, frozen=True):
    """One item of a list."""

    blocks: tuple[Block, ...]
    number: int | None = None
    """None: it has a bullet."""

    is_done: bool | None = None
    """Whether a task is done; None: it is none."""

    gap: bool = False


class Items(msgspec.Struct, frozen=True):
    """A list."""

    items: tuple[Item, ...]
    gap: bool = False


class Table(msgspec.Struct, frozen=True):
    """A table; each row has at most as many cells as the first, which is its head."""

    rows: tuple[tuple[Inline, ...], ...]
    aligns: tuple[Align, ...]
    """Of each column; empty: as the platform likes."""

    gap: bool = False


Block: TypeAlias = Paragraph | Heading | Fence | Rule | Quote | Items | Table


def words_of(inline: Inline) -> str:
    """Give what a piece of text says, without markup; lines are joined by blanks."""
    return "".join(" " if isinstance(piece, Break) else piece.text for piece in inline)
