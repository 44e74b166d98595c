"""A map that holds a bounded number of entries: the newest; pure."""

from __future__ import annotations

from typing import TypeVar

K = TypeVar("K")
V = TypeVar("V")


class Recent(dict[K, V]):
    """Entries by key; what was written longest ago makes room.

    Args:
        maxlen: how many it holds, at least one.
    """

    def __init__(self, maxlen: int) -> None:
        super().__init__()
        self.maxlen = maxlen

    def __setitem__(self, key: K, value: V) -> None:
        """Write an entry, as the newest."""
        self.pop(key, None)
        super().__setitem__(key, value)
        if len(self) > self.maxlen:
            del self[next(iter(self))]
