"""How much of something is let through in a while; pure."""

from __future__ import annotations

from collections import deque


class Quota:
    """At most so many in any `period` seconds.

    Args:
        most: how many; at least 1.
        period: seconds.
    """

    __slots__ = ("_past", "_period")

    def __init__(self, most: int, period: float) -> None:
        self._period = period
        self._past: deque[float] = deque(maxlen=most)

    @property
    def most(self) -> int:
        """How many there may be."""
        return self._past.maxlen or 0

    def take(self, now: float) -> float:
        """Let one more through, if there is room.

        Args:
            now: monotonic seconds.

        Returns:
            0.0 if it is let through; else seconds until there is room again.
        """
        if len(self._past) == self.most:
            wait = self._past[0] + self._period - now
            if wait > 0:
                return wait
        self._past.append(now)
        return 0.0
