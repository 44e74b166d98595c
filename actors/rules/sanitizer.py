"""Takes what is not for people out of a model's text while it streams; pure.

Two stages in a row: tags (`rules/tagged.py`), then lines (`rules/lined.py`). `parse`
uses the same machine on a whole text, so that what people saw and what was carried out
cannot differ.

In code. Tags never show and, in code, are never carried out: there they are examples.
Lines of code stay as they are, so that nobody's program loses one; but a code block of
nothing but marks goes as a whole, since that is how some models wrap them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from actors.rules.control_words import may_become_one
from actors.rules.lined import Lines
from actors.rules.tagged import Tagged

if TYPE_CHECKING:
    from actors.rules.blocks import Block

_SPECIAL = frozenset("[<\n\t\r")
"""With these something begins or ends, or they are blanks that are rare."""


class Sanitizer:
    """Cleans one text.

    For every way of cutting a text into pieces, what `feed` and `finish` return adds
    up to the same. What is held back is bounded: a tag's beginning; a line that may be
    a mark; an object that may be a call. The time is in proportion to the length of
    the text.

    Args:
        blocks: where to note what was taken out; None notes nothing.
        hides_narration: whether lines go in which a model tells what it will look up.
    """

    __slots__ = ("_begins_word", "_is_quiet", "_last", "_lines", "_skipped", "_tagged")

    def __init__(
        self, blocks: list[Block] | None = None, *, hides_narration: bool = False
    ) -> None:
        self._lines = Lines(blocks, hides_narration=hides_narration)
        self._tagged = Tagged(self._lines, blocks)
        self._is_quiet = False  # nothing is held back anywhere
        self._begins_word = False  # the next letter does
        self._skipped = 0  # letters that the stages have not been told of
        self._last = ""  # of those

    def feed(self, delta: str) -> str:
        """Take the next piece in; give back what may be shown now."""
        # Why: nearly every piece is plain words, and nothing begins in their midst.
        if self._is_quiet and delta and not _SPECIAL.intersection(delta):
            blank = delta.rfind(" ")
            tail = delta[blank + 1 :]
            begins_word = blank >= 0 or self._begins_word
            is_plain = tail and not (begins_word and may_become_one(tail))
            if is_plain or not (tail or delta.isspace()):
                self._begins_word = not tail
                self._skipped += len(delta)
                self._last = delta
                return delta
        self._catch_up()
        self._tagged.feed(delta)
        self._is_quiet = self._tagged.is_quiet and self._lines.is_quiet
        self._begins_word = self._lines.begins_word
        return self._lines.take()

    def _catch_up(self) -> None:
        """Tell the stages what went by."""
        if self._skipped:
            self._tagged.skip(self._skipped, self._last)
            self._lines.skip(self._skipped, self._last)
            self._skipped = 0

    def finish(self) -> str:
        """End the text; give back the rest that may be shown. Call it once."""
        self._catch_up()
        self._tagged.finish()
        self._lines.finish()
        return self._lines.take()


def clean(text: str) -> str:
    """Give what people may see of a whole text, or of a piece of one."""
    sanitizer = Sanitizer()
    return (sanitizer.feed(text) + sanitizer.finish()).strip()
