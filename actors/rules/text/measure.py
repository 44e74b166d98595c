"""How much of a platform's message a text takes when it is written there; pure.

A reply is cut before it is written in the platform's markup, so each letter counts as
much as it may take there: one that may get a backslash counts twice, one that is
escaped as `&amp;` five times. What is counted is never less than what
`connectors/chat/markup` makes of the text as it is (`Dialect.plain`), and rarely less
than its markup; where it is, the text goes out as it is.

What a text takes never shrinks when it grows: cuts stay where they are
(`actors/journal/splitting.py`).
"""

from __future__ import annotations

import re
from itertools import accumulate

import msgspec

_FENCE = re.compile(r" {0,3}(?P<mark>`{3,}(?=[^`]*\Z)|~{3,})")

# Chosen: the cells of a table are filled up with blanks; so much more a row takes,
# about, where models write tables without.
TABLE_ROW = 24


class Measure(msgspec.Struct, frozen=True):
    """What counts how much; a letter that is not named counts 1."""

    prose: dict[str, int] = {}
    """Letters that count more."""

    code: dict[str, int] = {}
    """The same inside a block of code."""

    is_utf16: bool = False
    """Whether letters beyond U+FFFF count 2."""

    table_row: int = 0
    """What the first `|` in a line counts beside."""

    @property
    def is_plain(self) -> bool:
        """Whether every letter counts 1."""
        return not (self.prose or self.code or self.is_utf16 or self.table_row)

    def size(self, text: str) -> int:
        """Count a whole text."""
        if self.is_plain:
            return len(text)
        mark = ""
        size = -1
        for line in text.split("\n"):
            size += 1 + self._line(line, is_code=bool(mark))
            mark = _after(mark, line)
        return size

    def reach(self, text: str, most: int) -> int:
        """Count how many letters, from the first, take at most so much.

        Args:
            text: of which no more is looked at than could fit.
            most: at least 0.
        """
        if self.is_plain or most <= 0:
            return max(0, min(len(text), most))
        mark, at, size = "", 0, 0
        for line in text[: most + 1].split("\n"):
            more = size + self._line(line, is_code=bool(mark))
            if more > most:
                return at + self._reach(line, most - size, is_code=bool(mark))
            mark, at, size = _after(mark, line), at + len(line) + 1, more + 1
            if size > most:
                return at - 1
        return min(at - 1, len(text))

    def _line(self, line: str, *, is_code: bool) -> int:
        weights = self.code if is_code else self.prose
        more = sum(line.count(letter) * (each - 1) for letter, each in weights.items())
        if self.is_utf16 and not line.isascii():
            more += sum(letter > "\uffff" for letter in line)
        is_row = self.table_row and not is_code and "|" in line
        return len(line) + more + (self.table_row if is_row else 0)

    def _reach(self, line: str, most: int, *, is_code: bool) -> int:
        weights = self.code if is_code else self.prose
        wide = 2 if self.is_utf16 else 1
        each = [
            weights.get(letter, wide if letter > "\uffff" else 1) for letter in line
        ]
        first = line.find("|")
        if first >= 0 and not is_code:
            each[first] += self.table_row
        return sum(total <= most for total in accumulate(each))


def _after(mark: str, line: str) -> str:
    """Give what ends the block of code that is open after a line; empty: none is."""
    if mark:
        return "" if closes(mark, line) else mark
    return fence_of(line)


CHARACTERS = Measure()
"""Every letter counts 1."""


def fence_of(line: str) -> str:
    """Give the backticks or tildes with which a line begins a code block, if any."""
    found = _FENCE.match(line)
    return found["mark"] if found else ""


def closes(mark: str, line: str) -> bool:
    """Whether a line ends the code block that began with these."""
    bare = line.strip()
    indent = len(line) - len(line.lstrip(" "))
    return indent <= 3 and len(bare) >= len(mark) and not bare.strip(mark[0])
