"""Parts shared by the stages of the sanitiser. Pure.

Lines of narration and possible control words are held back until the text after them
decides.

What was taken out of a text, as the two stages of the sanitiser note it; pure.

A code block of which nothing has been shown yet; pure.

How what is left of a text is joined where something was taken out of it; pure.

Where a marker was removed, whitespace before it stays and decides about whitespace
after it. After a line break all of it is removed; after a space, up to the next line
break; after anything else it stays, and one space is inserted if there is none. At the
beginning of the text all of it is removed. The space also prevents both sides from
joining to a new marker.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Literal

import msgspec


class MarkerGap(msgspec.Struct):
    """Joins streamed text around removed markers."""

    is_open: bool = False
    """Whether something was taken out since the last word."""

    _last: Literal["nothing", "text", "blank", "line"] = "nothing"

    def open(self) -> None:
        """Note that a marker was removed here."""
        self.is_open = True

    def join(self, text: str) -> str:
        """Return the text to show of the next visible piece."""
        if self.is_open and text:
            text = self._close(text)
        if text and not text[-1].isspace():
            self._last = "text"
        elif text:
            self._remember_blank(text)
        return text

    def _close(self, text: str) -> str:
        if self._last == "text":
            self.is_open = False
            return text if text[0].isspace() else " " + text
        rest = text.lstrip()
        if self._last == "blank":
            line = text.find("\n", 0, len(text) - len(rest))
            rest = rest if line < 0 else text[line:]
        self.is_open = not rest
        return rest

    def _remember_blank(self, text: str) -> None:
        body = text.rstrip()
        if "\n" in text[len(body) :] or (not body and self._last == "line"):
            self._last = "line"
        else:
            self._last = "blank"


MOST_WAITING = 2_000
"""Most characters that are held back; a longer text is shown."""


class ShownText:
    """The last part of the sanitiser: the shown text.

    Args:
        blocks: where to note what was taken out; None notes nothing.
    """

    __slots__ = ("_blocks", "_gap", "_out", "_waiting", "_waits", "has_words")

    def __init__(self, blocks: list[Block] | None) -> None:
        self._blocks = blocks
        self._gap = MarkerGap()
        self._out: list[str] = []
        self._waiting: list[tuple[str, Block | None]] = []
        self._waits = 0  # characters
        self.has_words = False
        """Whether anything but blanks has been shown."""

    @property
    def is_quiet(self) -> bool:
        """Whether plain text passes unchanged."""
        return not self._waiting and not self._gap.is_open

    def skip(self, text: str) -> None:
        """Note plain text that passes unchanged; only while `is_quiet`."""
        self._gap.join(text)
        self.has_words = self.has_words or not text.isspace()

    def show(self, text: str) -> None:
        """Show the next piece; whitespace waits if something before it does."""
        if not text:
            return
        if not self._waiting:
            self._put(text)
        elif text.isspace():
            self._keep(text, None)
        else:
            self._settle(() if self.has_words else ("narration",))
            self._put(text)

    def wait(self, text: str, block: Block) -> None:
        """Hold a line back; `block` is recorded if it is never shown."""
        self._keep(text, block)

    def note(self, block: Block) -> None:
        """Record a removed block here."""
        self.gap()
        if self._blocks is not None:
            self._blocks.append(block)

    def gap(self) -> None:
        """Join the next text after a removed block."""
        self._gap.open()

    def drop_narration(self) -> None:
        """Drop held narration that only announced a call."""
        if self._waiting:
            waiting, self._waiting = self._waiting, []
            self._waits = 0
            for text, block in waiting:
                if block is not None and block.kind == "narration":
                    self.note(block)
                else:
                    self._keep(text, block)

    def finish(self) -> None:
        """Decide about held text: narration is the answer if there is no other."""
        words = [block for _, block in self._waiting if block is not None]
        has_control = any(block.kind == "control" for block in words)
        is_silent = has_control and not self.has_words
        self._settle(("narration", "control") if is_silent else ())

    def take(self) -> str:
        """Return the text shown since the last call."""
        text = "".join(self._out)
        self._out.clear()
        return text

    def _keep(self, text: str, block: Block | None) -> None:
        self._waiting.append((text, block))
        self._waits += len(text)
        if self._waits > MOST_WAITING:
            self._settle(())

    def _settle(self, drops: Collection[str]) -> None:
        waiting, self._waiting = self._waiting, []
        self._waits = 0
        for text, block in waiting:
            if block is not None and block.kind in drops:
                self.note(block)
            else:
                self._put(text)

    def _put(self, text: str) -> None:
        self._out.append(self._gap.join(text))
        self.has_words = self.has_words or not text.isspace()


Kind = Literal[
    "tag",
    "mark",
    "control",
    "stray_end",
    "tool_call",
    "thinking",
    "role_tag",
    "tool_json",
    "narration",
]


class Block(msgspec.Struct, frozen=True):
    """One marker that the sanitiser removed."""

    kind: Kind
    start: int
    end: int
    """Offsets into the whole text, as for slices."""

    name: str = ""
    """Name of the tag or line marker, as in `tags.py`; for a control word, the word."""

    text: str = ""
    """The line of a line marker, after the removal of tags in it."""

    is_closed: bool = True
    is_nested: bool = False
    """True for a tag that contains another one of its name."""

    is_quoted: bool = False
    """Whether it was in code; then it is an example and not carried out."""

    is_too_long: bool = False
    """Whether a line was too long to be read."""


MOST_FENCED = 20_000
"""Most characters of a code block that are held back while it holds only markers."""


class Fence:
    """The beginning of a code block and the markers in it.

    Args:
        mark: the backticks or tildes of its fence.
        text: its first line.
    """

    __slots__ = ("blocks", "has_lost", "mark", "text")

    def __init__(self, mark: str, text: str) -> None:
        self.mark = mark
        self.text = text
        """All of it so far."""

        self.blocks: list[Block] = []
        """What the second stage takes out if there is nothing else."""

        self.has_lost = False
        """Whether the first stage took something out of it."""
