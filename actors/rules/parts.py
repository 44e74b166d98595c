"""How a long reply is cut into messages that a platform takes; pure.

Cuts where people would (`cuts.py`). Blanks at a cut are dropped, nothing else is. A
block of code that must be cut is ended in its part and begun again, with its language,
in the next; a quote goes on as a quote.

A text that grows keeps its cuts: all parts but the last are those of its beginning.
What is shown while it is written relies on that (`drafts.py`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from actors.rules.cuts import cut_of, resumed
from actors.rules.graphemes import boundary
from actors.rules.line_shapes import closes, fence_of
from actors.rules.measures import CHARACTERS, MEASURES

if TYPE_CHECKING:
    from actors.deliveries import Abilities
    from actors.rules.measures import Measure


class Opened(msgspec.Struct, frozen=True):
    """A block of code that is not ended yet."""

    at: int
    """Where its first line begins."""

    line: str
    """That line, with the language."""

    mark: str
    """The backticks or tildes that end it."""

    @property
    def body_at(self) -> int:
        """Where its code begins."""
        return self.at + len(self.line) + 1


def split(text: str, most: int, measure: Measure = CHARACTERS) -> list[str]:
    """Cut a text into parts of at most `most`.

    Args:
        text: what is to be said.
        most: longest part; 0 means that any length is taken.
        measure: what counts how much; without, every character counts 1.

    Returns:
        No part is blank; a blank text has none.
    """
    parts: list[str] = []
    is_whole = most <= 0 or measure.reach(text, most) >= len(text)
    rest = text if is_whole else text.strip()
    while most > 0 and (room := measure.reach(rest, most)) < len(rest):
        part, rest = _next(rest, most, max(room, 1), measure)
        parts.append(part)
    return [part for part in (*parts, rest) if part.strip()]


def for_platform(text: str, can: Abilities) -> list[str]:
    """Cut a text into the messages that a transport takes."""
    return split(text, can.max_part_chars, MEASURES[can.markup])


def opened(text: str) -> Opened | None:
    """Give the block of code that a text does not end, if there is one."""
    found: Opened | None = None
    at = 0
    for line in text.split("\n"):
        if found is not None:
            found = None if closes(found.mark, line) else found
        elif mark := fence_of(line):
            found = Opened(at, line, mark)
        at += len(line) + 1
    return found


def closed(text: str) -> str:
    """Give a text in which every block of code is ended."""
    found = opened(text)
    if found is None:
        return text
    return f"{text}{'' if text.endswith(chr(10)) else chr(10)}{found.mark}"


def _next(text: str, most: int, room: int, measure: Measure) -> tuple[str, str]:
    """Give the next part, and what is left; `room` letters take at most `most`."""
    cut = cut_of(text, room)
    found = opened(text[:cut])
    # Too small a part has no room to end code and to begin it again.
    if found is None or 2 * len(found.mark) + 2 > room // 2:
        return text[:cut].rstrip(), resumed(text, cut)
    limit = min(cut, measure.reach(text, most - measure.size(f"\n{found.mark}")))
    has_line = text.find("\n", found.body_at + 1, limit + 1) > 0
    if found.at > 0 and (found.at > room // 2 or not has_line):
        return text[: found.at].rstrip(), text[found.at :]
    is_short = len(found.line) + len(found.mark) + 2 <= room // 2
    return _cut_code(text, found, limit, found.line if is_short else found.mark)


def _cut_code(text: str, found: Opened, limit: int, again: str) -> tuple[str, str]:
    """Cut between two lines of code; a line that is too long, after a blank."""
    end = f"\n{found.mark}"
    cut = text.rfind("\n", found.body_at + 1, limit + 1)
    skipped = 1 if cut > 0 else 0
    if cut <= 0:
        blank = text.rfind(" ", max(found.body_at, limit // 2), limit)
        cut = blank + 1 if blank > 0 else boundary(text, limit)
    rest = text[cut + skipped :]
    after = rest.lstrip()
    first, _, others = after.partition("\n")
    if not after or closes(found.mark, first):
        rest = others.lstrip()  # the code has ended here anyway
    else:
        rest = f"{again.rstrip()}\n{rest}"
    return f"{text[:cut]}{end}", rest
