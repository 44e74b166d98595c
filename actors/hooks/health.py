"""Whether a hook is failing, and when it is skipped for that; pure.

Each message waits for a hanging hook until its time is over, and the next one of the
chat waits behind it. So after three failures in a row the hook is skipped for a while,
twice as long after each further failure; then one question tries it again.
"""

from __future__ import annotations

import msgspec

from actors.hooks.chain import Action, Trouble

# Chosen: one failure may be chance; three in a row are not.
PATIENCE = 3
FIRST_PAUSE = 1.0
LONGEST_PAUSE = 60.0

HARMLESS = frozenset({"paused", "down", "busy"})
"""Troubles that are no further failure of the hook: it was not asked."""


class HookCounts(msgspec.Struct):
    """Outcomes of the questions to one hook since its process began."""

    asked: int = 0
    continued: int = 0
    changed: int = 0
    cancelled: int = 0
    failed: int = 0
    told: int = 0
    """Finished turns it was told of."""

    missed: int = 0
    """Finished turns it was not told of: too many waited, or it did not run."""


class HookHealth:
    """The failures and pauses of one hook."""

    def __init__(self) -> None:
        self.counts = HookCounts()
        self.last_error = ""
        self.failures = 0
        """In a row."""

        self._paused_until = 0.0
        self._is_trying = False

    @property
    def is_failing(self) -> bool:
        """Whether it is skipped, but for a question now and then."""
        return self.failures >= PATIENCE

    def may_ask(self, now: float) -> bool:
        """Whether to ask it now; while it is failing, only one question at a time.

        Args:
            now: seconds on a clock that does not go backwards.
        """
        if self.failures < PATIENCE:
            return True
        if now < self._paused_until or self._is_trying:
            return False
        self._is_trying = True
        return True

    def answered(self, action: Action) -> None:
        """Count a verdict."""
        self.failures, self._is_trying = 0, False
        counts = self.counts
        counts.asked += 1
        if action == "continue":
            counts.continued += 1
        elif action == "change":
            counts.changed += 1
        else:
            counts.cancelled += 1

    def started(self) -> None:
        """Ask it again at once: its program was restarted."""
        self.failures, self._is_trying = 0, False

    def failed(
        self, trouble: Trouble, why: str, now: float, *, is_waited_for: bool = False
    ) -> None:
        """Count a question without a verdict.

        Args:
            trouble: why, in one word.
            why: the same, for people.
            now: seconds on a clock that does not go backwards.
            is_waited_for: whether somebody waited in vain, so that it counts as a
                failure though the hook was not asked.
        """
        self.counts.asked += 1
        self.counts.failed += 1
        if trouble != "paused":
            self.last_error = why
        if trouble in HARMLESS and not is_waited_for:
            # The probe was not asked either, unless it still runs.
            self._is_trying = self._is_trying and trouble != "down"
            return
        self._is_trying = False
        self.failures += 1
        if self.failures >= PATIENCE:
            times = min(self.failures - PATIENCE, 10)
            pause = min(LONGEST_PAUSE, FIRST_PAUSE * 2.0**times)
            self._paused_until = now + pause
