"""What is shown of a text, and what is kept back until more is known; pure.

A line of narration, or a word that may be a control word, is shown or not by what
comes after it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from actors.rules.gap import Gap

if TYPE_CHECKING:
    from collections.abc import Collection

    from actors.rules.blocks import Block

MOST_WAITING = 2_000
"""Characters that are kept back; what is longer is shown."""


class Shown:
    """The end of the sanitiser.

    Args:
        blocks: where to note what was taken out; None notes nothing.
    """

    __slots__ = ("_blocks", "_gap", "_out", "_waiting", "_waits", "has_words")

    def __init__(self, blocks: list[Block] | None) -> None:
        self._blocks = blocks
        self._gap = Gap()
        self._out: list[str] = []
        self._waiting: list[tuple[str, Block | None]] = []
        self._waits = 0  # characters
        self.has_words = False
        """Whether anything but blanks has been shown."""

    @property
    def is_quiet(self) -> bool:
        """Whether words go out as they are."""
        return not self._waiting and not self._gap.is_open

    def skip(self, text: str) -> None:
        """Note words that go out as they are; only while `is_quiet`."""
        self._gap.join(text)
        self.has_words = self.has_words or not text.isspace()

    def show(self, text: str) -> None:
        """Show the next piece; blanks wait if something before them does."""
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
        """Keep a line back; `block` is what is noted if it is never shown."""
        self._keep(text, block)

    def note(self, block: Block) -> None:
        """Note that something is taken out here."""
        self.gap()
        if self._blocks is not None:
            self._blocks.append(block)

    def gap(self) -> None:
        """Join what comes to what there is."""
        self._gap.open()

    def drop_narration(self) -> None:
        """Throw away what only announced a call."""
        if self._waiting:
            waiting, self._waiting = self._waiting, []
            self._waits = 0
            for text, block in waiting:
                if block is not None and block.kind == "narration":
                    self.note(block)
                else:
                    self._keep(text, block)

    def finish(self) -> None:
        """Decide on what still waits: narration is an answer if there is no other."""
        words = [block for _, block in self._waiting if block is not None]
        has_control = any(block.kind == "control" for block in words)
        is_silent = has_control and not self.has_words
        self._settle(("narration", "control") if is_silent else ())

    def take(self) -> str:
        """Give what was shown since the last time."""
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
