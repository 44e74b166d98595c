"""How much runs at once, and whether that is too much for longer than a moment."""

from __future__ import annotations

import msgspec


class Limit(msgspec.Struct):
    """How many of something run, and since when they are too many."""

    most: int
    running: int = 0
    since: float | None = None

    def begin(self, now: float) -> None:
        """One more runs."""
        self.running += 1
        if self.running > self.most and self.since is None:
            self.since = now

    def end(self, now: float) -> bool:
        """One less runs; True if they were too many for longer than a moment.

        One that was stopped may end a moment after its successor began.
        """
        since = self.since
        self.running -= 1
        if self.running <= self.most:
            self.since = None
        return since is not None and now > since
