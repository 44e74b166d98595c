"""What a dialect says about its platform's markup; `render.py` does the rest.

A mention calls nobody unless the connector allows it word by word: a model may have
been talked into writing one. Slack and WhatsApp know no backslash: where two signs in
one paragraph could be taken for a pair of marks, look-alikes are written instead.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import ClassVar, Protocol

import msgspec

from connectors.chat.markup.tree import Code, Inline, Mark, Piece, Text, WebLink

JOINT = "\u200b"
"""A blank of no width: keeps apart what would mean something together."""


class MarkupLine(msgspec.Struct, frozen=True):
    """One line of what is written."""

    text: str
    is_flush: bool = False
    """Whether it must not be indented: code, quotes."""


class Dialect(Protocol):
    """The markup of one platform.

    Implemented by `Plain` and by each platform's `markup.py`;
    all pass `tests/connectors/chat/markup/test_dialects.py`.
    """

    marks: ClassVar[Mapping[Mark, tuple[str, str]]]
    """What stands before and after marked text; a missing mark is not shown."""

    is_tagged: ClassVar[bool]
    """Whether marks are tags, which may stand anywhere."""

    needs_edges: ClassVar[bool]
    """Whether marks inside a word are not seen."""

    bullet: ClassVar[str]
    """What stands before an item of a list, with its blank."""

    def prepare(self, inline: Inline) -> Inline:
        """Change a paragraph's text before it is written."""
        ...

    def escape(self, text: str, *, is_first: bool) -> str:
        """Write literal text, so that no markup and no mention is found in it.

        Args:
            text: without line breaks.
            is_first: whether it begins a line.
        """
        ...

    def code(self, text: str) -> str:
        """Write code inside a line."""
        ...

    def link(self, link: WebLink) -> str:
        """Write a link, without its marks."""
        ...

    def fence(self, text: str, language: str) -> list[str]:
        """Write a block of code, line by line."""
        ...

    def heading(self, level: int) -> str:
        """Give what stands before a heading; empty: it is written in bold."""
        ...

    def quote(self, lines: list[MarkupLine], depth: int) -> list[MarkupLine]:
        """Write a quote.

        Args:
            lines: what is quoted.
            depth: of how many quotes it is a part.
        """
        ...

    def plain(self, text: str) -> str:
        """Write a whole text as it is, where nothing else is possible.

        Never longer than `actors/journal/splitting.py` says of the text.
        """
        ...

    def size(self, rendered: str) -> int:
        """Count a text that is rendered, in the platform's unit."""
        ...


def prefixed(lines: list[MarkupLine], prefix: str) -> list[MarkupLine]:
    """Put something before each line."""
    return [MarkupLine(prefix + line.text, is_flush=True) for line in lines]


def utf16(text: str) -> int:
    """Count UTF-16 units; no lone surrogate is a mistake."""
    return len(text) + sum(letter > "\uffff" for letter in text)


@cache
def pattern_of(allowed: frozenset[str]) -> re.Pattern[str] | None:
    """Give what finds the mentions that are allowed; None: there are none."""
    if not allowed:
        return None
    longest_first = sorted(allowed, key=lambda each: (-len(each), each))
    return re.compile("(" + "|".join(map(re.escape, longest_first)) + r")(?!\w)")


def parted(text: str, allowed: frozenset[str]) -> list[str]:
    """Part a text; every second piece is a mention that is allowed."""
    pattern = pattern_of(allowed)
    return [text] if pattern is None else pattern.split(text)


LOOK_ALIKES = {
    "*": "\N{ASTERISK OPERATOR}",
    "_": "\N{MODIFIER LETTER LOW MACRON}",
    "~": "\N{TILDE OPERATOR}",
    "`": "\N{MODIFIER LETTER GRAVE ACCENT}",
}


def softened(inline: Inline, marks: Mapping[Mark, tuple[str, str]]) -> Inline:
    """Take the meaning from signs that stand for themselves.

    Args:
        inline: a paragraph.
        marks: what its own marks are written with.
    """
    signs = {
        ord(sign): other
        for sign, other in LOOK_ALIKES.items()
        if sum(_count(piece, sign, marks) for piece in inline) > 1
    }
    return tuple(_without(piece, signs) for piece in inline) if signs else inline


def without_ticks(code: str) -> str:
    """Give code that does not end itself."""
    return code.replace("`", LOOK_ALIKES["`"])


def _count(piece: Piece, sign: str, marks: Mapping[Mark, tuple[str, str]]) -> int:
    match piece:
        case Text(text=text) | WebLink(text=text):
            own = 2 * sum(marks.get(mark, ("",))[0] == sign for mark in piece.marks)
            at = [index for index, letter in enumerate(text) if letter == sign]
            return own + sum(_may_mark(text, index) for index in at)
        case Code():
            return 2 if sign == "`" else 0
        case _:
            return 0


def _may_mark(text: str, at: int) -> bool:
    before, after = text[at - 1 : at] if at else "", text[at + 1 : at + 2]
    opens = not before.isalnum() and not after.isspace()
    closes = not after.isalnum() and not before.isspace()
    return opens or closes


def _without(piece: Piece, signs: dict[int, str]) -> Piece:
    if not isinstance(piece, Text | WebLink):
        return piece
    said = "".join(
        signs[ord(letter)]
        if ord(letter) in signs and _may_mark(piece.text, at)
        else letter
        for at, letter in enumerate(piece.text)
    )
    return msgspec.structs.replace(piece, text=said)


@dataclass(frozen=True)
class Plain:
    """No markup; see `Dialect`."""

    marks: ClassVar[Mapping[Mark, tuple[str, str]]] = {}
    is_tagged: ClassVar[bool] = False
    needs_edges: ClassVar[bool] = False
    bullet: ClassVar[str] = "- "

    def prepare(self, inline: Inline) -> Inline:
        """Leave a paragraph as it is."""
        return inline

    def escape(self, text: str, *, is_first: bool) -> str:
        """Leave text as it is."""
        del is_first
        return text

    def code(self, text: str) -> str:
        """Leave code as it is."""
        return text

    def link(self, link: WebLink) -> str:
        """Write the address out."""
        return link.href if link.is_bare else f"{link.text} ({link.href})"

    def fence(self, text: str, language: str) -> list[str]:
        """Write the code alone."""
        del language
        return text.split("\n")

    def heading(self, level: int) -> str:
        """Show no level."""
        del level
        return ""

    def quote(self, lines: list[MarkupLine], depth: int) -> list[MarkupLine]:
        """Write a bracket before each line."""
        del depth
        return prefixed(lines, "> ")

    def plain(self, text: str) -> str:
        """Leave a text as it is."""
        return text

    def size(self, rendered: str) -> int:
        """Count characters."""
        return len(rendered)
