"""How long to wait between two tries; pure."""

from __future__ import annotations

FIRST_WAIT, LONGEST_WAIT = 1.0, 60.0
"""Seconds, doubled from the one to the other (F022)."""


class Waits:
    """How long to wait between two tries."""

    def __init__(self) -> None:
        self._next = FIRST_WAIT

    def next(self, asked: float | None = None) -> float:
        """Give the seconds until the next try.

        Args:
            asked: what the server asks for; it is not asked sooner.
        """
        wait, self._next = self._next, min(2 * self._next, LONGEST_WAIT)
        return max(wait, asked or 0.0)
