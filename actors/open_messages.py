"""Who is on their way in one connector: what was taken in and not answered yet."""

from __future__ import annotations

from collections import OrderedDict

# Chosen: longer than any turn with its tries may take. What is still here then was
# answered by other ways (by hand, for one), and must not take up room for ever.
FORGET_AFTER = 3600.0


class OpenMessages:
    """The messages of one connector that wait for their answer.

    Args:
        most: how many there may be.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._since: OrderedDict[str, float] = OrderedDict()

    def __len__(self) -> int:
        """Say how many there are."""
        return len(self._since)

    def is_full(self, now: float) -> bool:
        """Whether one more is too many.

        Args:
            now: seconds on the monotonic clock.
        """
        while self._since and next(iter(self._since.values())) < now - FORGET_AFTER:
            self._since.popitem(last=False)
        return len(self._since) >= self._most

    def add(self, correlation_id: str, now: float) -> None:
        """Take one in."""
        self._since[correlation_id] = now

    def discard(self, correlation_id: str) -> None:
        """Learn that one was answered, or never will be."""
        self._since.pop(correlation_id, None)
