"""Sanitiser: removes markers from a model's text while it streams. Pure.

It has two stages: tags (`tag_stage.py`), then lines (`line_stage.py`). `parse` uses the
same machine on a whole text, so that the shown text and the executed actions cannot
differ.

Tags are never shown. In code they are examples and are never carried out. Lines of code
are unchanged, so that no program loses one; but a code block of nothing but markers is
removed, because some models wrap them so.
"""

from __future__ import annotations

import re

from actors.rules.markers.control_words import UNSURE, may_become_one
from actors.rules.markers.line_stage import LineStage
from actors.rules.markers.stage import Block
from actors.rules.markers.tag_stage import TagStage
from actors.rules.markers.tags import LINES

_SPECIAL = frozenset("[<\n\t\r")
"""Characters that may begin or end a marker, and rare whitespace."""


_SIGNS = "[<{`~_"
_WORDS = [word for word in (*LINES, *UNSURE) if not set(_SIGNS).intersection(word)]
_MAY_MARK = re.compile(f"[{re.escape(_SIGNS)}]|{'|'.join(_WORDS)}")
"""What each marker has, but narration: a text without it is shown as it is."""


def may_hold_markers(text: str) -> bool:
    """Return whether anything in a whole text, but narration, may be a marker.

    Most answers hold none, and to send one through both stages takes 35 calls.
    """
    return _MAY_MARK.search(text) is not None


class Sanitizer:
    """Sanitises one text.

    However a text is split into pieces, the results of `feed` and `finish` add up to
    the same. The amount held back is bounded: the beginning of a tag, a possible line
    marker, a possible tool call. The time is linear in the length of the text.

    Args:
        blocks: receives what was removed; None records nothing.
        hides_narration: whether lines are removed in which a model announces a lookup.
    """

    __slots__ = ("_begins_word", "_is_quiet", "_last", "_lines", "_skipped", "_tagged")

    def __init__(
        self, blocks: list[Block] | None = None, *, hides_narration: bool = False
    ) -> None:
        self._lines = LineStage(blocks, hides_narration=hides_narration)
        self._tagged = TagStage(self._lines, blocks)
        self._is_quiet = False  # nothing is held back
        self._begins_word = False  # the next letter does
        self._skipped = 0  # characters that the stages do not know yet
        self._last = ""  # of those

    def feed(self, delta: str) -> str:
        """Process the next piece; return the text to show."""
        # Why: nearly every piece is plain text in which no marker begins.
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
        """Pass the skipped characters to the stages."""
        if self._skipped:
            self._tagged.skip(self._skipped, self._last)
            self._lines.skip(self._skipped, self._last)
            self._skipped = 0

    def finish(self) -> str:
        """End the text and return the rest to show. Call it once."""
        self._catch_up()
        self._tagged.finish()
        self._lines.finish()
        return self._lines.take()


def clean(text: str) -> str:
    """Return the text that people see of a whole text."""
    sanitizer = Sanitizer()
    return (sanitizer.feed(text) + sanitizer.finish()).strip()
