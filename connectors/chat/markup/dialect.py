"""A text as a tree, and what a dialect says about its platform's markup.

`render.py` does the rest.

A mention calls nobody unless the connector allows it word by word: a model may have
been talked into writing one. Slack and WhatsApp know no backslash: where two signs in
one paragraph could be taken for a pair of marks, look-alikes are written instead.

The tree is what is shown, without any markup. Inside a paragraph there are no nested
nodes: each piece of text carries its marks, so that a dialect whose marks must not
overlap, or must not stand beside each other, can place them itself.

Buttons stand for commands, as those that answer an approval question. A button says
`approve:3F` when it is pressed, and whoever presses it has written `/approve 3F`: what
stands before the colon says whose button it is.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import ClassVar, Literal, Protocol, TypeAlias

import msgspec

from actors.messages.deliveries import Delivery

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
    """Take the meaning from signs that stand for themselves."""
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
    """No markup, and what the platforms' dialects begin with; see `Dialect`."""

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


# The last of a question, in any language: what a model wrote of its call stands before.
LEAVE = re.compile(
    r"/approve (\w{1,32}) [^/`\n]{1,16} /deny \1(?![A-Za-z0-9])(?!.*/approve )",
    re.DOTALL,
)

PREFIX = re.compile(r"[A-Za-z][A-Za-z0-9_-]{0,31}")

LONGEST = 64
"""Bytes of what a button says; Telegram takes no more."""

UNKNOWN = "This button is no longer known."
"""What somebody is told who pressed one that stands for nothing."""


class Button(msgspec.Struct, frozen=True):
    """One button under a message."""

    word: str
    """The command without its slash."""

    value: str

    @property
    def label(self) -> str:
        """What stands on it: the command, which may be written instead."""
        return f"/{self.word} {self.value}"

    @property
    def says(self) -> str:
        """What the platform tells when it is pressed."""
        return f"{self.word}:{self.value}"


def buttons_of(delivery: Delivery) -> tuple[Button, ...]:
    """Give the buttons under a message: only the runtime's own words have some."""
    asked = LEAVE.search(delivery.text) if delivery.kind == "notice" else None
    if asked is None:
        return ()
    return tuple(Button(word, asked[1]) for word in ("approve", "deny"))


def command_of(said: str) -> str:
    """Give the command that a pressed button stands for; empty: for none."""
    prefix, _, rest = said.partition(":")
    value = " ".join(rest.split())
    return f"/{prefix} {value}" if PREFIX.fullmatch(prefix) and value else ""
