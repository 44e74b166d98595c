"""How far a bot has read; pure.

A message counts as read when it was accepted, not when it came. All before the place
was; of what is behind it some may have been, which the database knows.
"""

from __future__ import annotations


class Marks:
    """What is under way, and up to where nothing is.

    Args:
        place: an id; all up to it was accepted.
    """

    def __init__(self, place: int) -> None:
        self._newest = place
        self._under_way: dict[int, int] = {}
        self._held_at: int | None = None

    @property
    def place(self) -> int:
        """The id up to which all was accepted; it never goes back."""
        return self._free_place if self._held_at is None else self._held_at

    @property
    def _free_place(self) -> int:
        if not self._under_way:
            return self._newest
        return min(self._newest, min(self._under_way) - 1)

    @property
    def is_held(self) -> bool:
        """Whether the place stays, whatever is accepted."""
        return self._held_at is not None

    def begin(self, message: int) -> None:
        """Note that a message came; call it in the order in which they came."""
        if message > self.place:
            self._under_way[message] = self._under_way.get(message, 0) + 1

    def end(self, message: int) -> None:
        """Note that a message was accepted, or will never be."""
        left = self._under_way.pop(message, 0) - 1
        if left > 0:
            self._under_way[message] = left
        elif left == 0:
            self._newest = max(self._newest, message)

    def hold(self) -> None:
        """Let the place stay: something behind it may be missing."""
        if self._held_at is None:
            self._held_at = self._free_place

    def release(self) -> None:
        """Let the place go on: nothing is missing any more."""
        self._held_at = None
