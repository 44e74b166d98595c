"""A code block of which nothing has been shown yet; pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from actors.rules.blocks import Block

MOST_FENCED = 20_000
"""Characters of a code block that are kept back while it holds only marks."""


class Fence:
    """The beginning of a code block, and what was found in it.

    Args:
        mark: the backticks or tildes that it begins with.
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
