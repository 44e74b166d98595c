"""What a dialect says about its platform's markup; `writing.py` does the rest."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, Protocol

import msgspec

if TYPE_CHECKING:
    from collections.abc import Mapping

    from connectors.chat.markup.tree import Inline, Link, Mark

JOINT = "\u200b"
"""A blank of no width: keeps apart what would mean something together."""


class Line(msgspec.Struct, frozen=True):
    """One line of what is written."""

    text: str
    is_flush: bool = False
    """Whether it must not be indented: code, quotes."""


class Dialect(Protocol):
    """The markup of one platform.

    Implemented by `discord.py`, `slack.py`, `telegram.py`, `whatsapp.py`, `plain.py`;
    all pass `tests/markup/test_dialects.py`.
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

    def link(self, link: Link) -> str:
        """Write a link, without its marks."""
        ...

    def fence(self, text: str, language: str) -> list[str]:
        """Write a block of code, line by line."""
        ...

    def heading(self, level: int) -> str:
        """Give what stands before a heading; empty: it is written in bold."""
        ...

    def quote(self, lines: list[Line], depth: int) -> list[Line]:
        """Write a quote.

        Args:
            lines: what is quoted.
            depth: of how many quotes it is a part.
        """
        ...

    def plain(self, text: str) -> str:
        """Write a whole text as it is, where nothing else is possible.

        Never longer than `actors/rules/measures.py` says of the text.
        """
        ...

    def size(self, rendered: str) -> int:
        """Count a text that is rendered, in the platform's unit."""
        ...


def prefixed(lines: list[Line], prefix: str) -> list[Line]:
    """Put something before each line."""
    return [Line(prefix + line.text, is_flush=True) for line in lines]


def utf16(text: str) -> int:
    """Count UTF-16 units; no lone surrogate is a mistake."""
    return len(text) + sum(letter > "\uffff" for letter in text)
