"""Keeps the beginning and the end of what a program writes.

Pure. The beginning says what was asked, the end how it went; what lies between is
counted.
"""

from __future__ import annotations


class Capture:
    """What was written so far, within bounds.

    Args:
        most: bytes that are kept; half of them from the beginning.
    """

    def __init__(self, most: int) -> None:
        self._first_most = most - most // 2
        self._last_most = most // 2
        self._first = bytearray()
        self._last = bytearray()
        self.total = 0
        """Bytes that were written, kept or not."""

    def add(self, piece: bytes) -> None:
        """Take in what was written next."""
        self.total += len(piece)
        room = self._first_most - len(self._first)
        self._first += piece[:room]
        self._last += piece[room:]
        # Why twice: moving the end with each small piece would cost more than it holds.
        if len(self._last) > 2 * self._last_most:
            del self._last[: len(self._last) - self._last_most]

    @property
    def missing(self) -> int:
        """Bytes that were not kept."""
        return max(0, self.total - self._first_most - self._last_most)

    def text(self) -> bytes:
        """Give what was kept, and say between how much is missing."""
        missing = self.missing
        if not missing:
            return bytes(self._first + self._last)
        note = f"\n[... {missing} bytes left out ...]\n".encode()
        last = self._last[len(self._last) - self._last_most :]
        return bytes(self._first) + note + bytes(last)
