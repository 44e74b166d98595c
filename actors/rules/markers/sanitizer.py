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
from actors.rules.markers.line_stage import LOOK, LineStage, shape_of
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

    __slots__ = (
        "_begins_word",
        "_blocks",
        "_first",
        "_has_begun",
        "_hides_narration",
        "_is_quiet",
        "_last",
        "_skipped",
        "_stages",
    )

    def __init__(
        self, blocks: list[Block] | None = None, *, hides_narration: bool = False
    ) -> None:
        self._blocks = blocks
        self._hides_narration = hides_narration
        self._stages: tuple[TagStage, LineStage] | None = None
        """Made when a piece comes that may hold a marker: most texts have none."""

        self._is_quiet = True  # nothing is held back
        self._begins_word = True  # the next letter does
        self._has_begun = False  # a piece has come
        self._first = ""  # that piece, if the stages do not know it yet
        self._skipped = 0  # characters after it that the stages do not know yet
        self._last = ""  # of those

    def feed(self, delta: str) -> str:
        """Process the next piece; return the text to show."""
        # Why: nearly every piece is plain text in which no marker begins.
        if self._is_quiet and delta and not _SPECIAL.intersection(delta):
            words = delta.rstrip(" ")
            blank = words.rfind(" ")
            begins_word = blank >= 0 or self._begins_word
            may_mark = begins_word and words and may_become_one(words[blank + 1 :])
            if words and not may_mark and (self._has_begun or self._is_plain(delta)):
                self._begins_word = len(words) < len(delta)
                if self._has_begun:
                    self._skipped += len(delta)
                    self._last = delta
                else:
                    self._has_begun, self._first = True, delta
                return delta
        tagged, lines = self._caught_up()
        tagged.feed(delta)
        self._is_quiet = tagged.is_quiet and lines.is_quiet
        self._begins_word = lines.begins_word
        return lines.take()

    def finish(self) -> str:
        """End the text and return the rest to show. Call it once."""
        tagged, lines = self._caught_up()
        tagged.finish()
        lines.finish()
        return lines.take()

    def _is_plain(self, head: str) -> bool:
        """Return whether a text that begins like this begins with no marker."""
        hides, is_whole = self._hides_narration, len(head) >= LOOK
        shape = shape_of(head[:LOOK], is_whole=is_whole, hides_narration=hides)
        return shape == "plain"

    def _caught_up(self) -> tuple[TagStage, LineStage]:
        """Give the stages, when they know all that was shown without them."""
        if self._stages is None:
            self._has_begun = True
            blocks = self._blocks
            lines = LineStage(blocks, hides_narration=self._hides_narration)
            self._stages = TagStage(lines, blocks), lines
            self._stages[0].feed(self._first)
            self._first = ""
            lines.take()  # it was shown
        tagged, lines = self._stages
        if self._skipped:
            tagged.skip(self._skipped, self._last)
            lines.skip(self._skipped, self._last)
            self._skipped = 0
        return tagged, lines


def clean(text: str) -> str:
    """Return the text that people see of a whole text."""
    sanitizer = Sanitizer()
    return (sanitizer.feed(text) + sanitizer.finish()).strip()
