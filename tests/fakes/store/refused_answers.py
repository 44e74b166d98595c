"""A store whose disk is full at the moment in which an answer is to be stored."""

from __future__ import annotations

from runtime.store.port import Done
from runtime.store.rows import Commit
from tests.fakes.store.in_memory import MemoryStore


class RefusedAnswers(MemoryStore):
    """Refuses the first commits that settle a message.

    Args:
        times: how many.
    """

    def __init__(self, times: int = 1) -> None:
        super().__init__()
        self._left = times
        self.refused = 0

    def submit(self, commit: Commit, done: Done) -> None:
        """Store one unit without waiting; see the port."""
        if commit.settles and self._left:
            self._left -= 1
            self.refused += 1
            self._fails_at = (self._commits + 1,)
        super().submit(commit, done)
