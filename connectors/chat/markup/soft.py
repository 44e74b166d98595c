"""Signs that cannot be escaped: Slack and WhatsApp know no backslash.

Where two of them in one paragraph could be taken for a pair of marks, look-alikes are
written instead; alone, or inside a word, they stay as they are.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from connectors.chat.markup.tree import Code, Inline, Link, Text

if TYPE_CHECKING:
    from collections.abc import Mapping

    from connectors.chat.markup.tree import Mark, Piece

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
        case Text(text=text) | Link(text=text):
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
    if not isinstance(piece, Text | Link):
        return piece
    said = "".join(
        signs[ord(letter)]
        if ord(letter) in signs and _may_mark(piece.text, at)
        else letter
        for at, letter in enumerate(piece.text)
    )
    return msgspec.structs.replace(piece, text=said)
