"""Rate limits and bounded maps. Pure.

Also the limiter of notices: a flood of refusals must not cause a flood of answers.

Who was told of a refusal lately: a flood is not answered by a flood; pure.
"""

from __future__ import annotations

from collections import OrderedDict, deque
from typing import TypeVar


class Quota:
    """Rate limit: at most `most` in any `period` seconds.

    Args:
        most: the limit, at least 1.
        period: seconds.
    """

    __slots__ = ("_past", "_period")

    def __init__(self, most: int, period: float) -> None:
        self._period = period
        self._past: deque[float] = deque(maxlen=most)

    @property
    def most(self) -> int:
        """The limit."""
        return self._past.maxlen or 0

    def take(self, now: float) -> float:
        """Take one if the limit allows it.

        Args:
            now: monotonic seconds.

        Returns:
            0.0 if it was taken; otherwise seconds until one is allowed.
        """
        if len(self._past) == self.most:
            wait = self._past[0] + self._period - now
            if wait > 0:
                return wait
        self._past.append(now)
        return 0.0


K = TypeVar("K")
V = TypeVar("V")


# Why no plain dict: to find its oldest entry takes the longer the more were deleted,
# and its `setdefault` and `update` would not call `__setitem__`.
class RecentMap(OrderedDict[K, V]):
    """A bounded map; the entry written longest ago makes room.

    Args:
        maxlen: most entries, at least one.
    """

    def __init__(self, maxlen: int) -> None:
        super().__init__()
        self.maxlen = maxlen

    def __setitem__(self, key: K, value: V) -> None:
        """Write an entry as the newest."""
        super().__setitem__(key, value)
        self.move_to_end(key)
        if len(self) > self.maxlen:
            self.popitem(last=False)


# Chosen: a person who is pushed out gets one notice too many.
MOST_TOLD = 256
"""Most people to remember; those notified longest ago are forgotten first."""


class NoticeLimiter:
    """Allows one notice per person and period.

    Args:
        every: the period in seconds; 0 allows every notice.
        most: most people to remember, at least one.
    """

    __slots__ = ("_told", "every")

    def __init__(self, every: float, most: int = MOST_TOLD) -> None:
        self.every = every
        """May be changed."""

        self._told: RecentMap[tuple[str, ...], float] = RecentMap(most)

    def may_tell(self, whose: tuple[str, ...], now: float) -> bool:
        """Return whether to notify a person now, which starts a new period.

        Args:
            whose: key of the person, chat and subject.
            now: seconds on the caller's monotonic clock.
        """
        at = self._told.get(whose)
        if at is not None and now - at < self.every:
            return False
        if self.every:
            self._told[whose] = now
        return True
