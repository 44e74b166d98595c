"""When the next call about a chat may go out; pure.

Messages and edits share what a platform takes in one chat: after either one there is a
pause. Edits of drafts wait longer, and give way when the platform is busy.
"""

from __future__ import annotations

# Chosen: as a delivery's own waits (`sending.py`).
FIRST_WAIT = 1.0
LONGEST_WAIT = 60.0


class Pacing:
    """The pauses of one chat; all times in seconds on the caller's monotonic clock.

    Args:
        pace: least time between two calls.
        draft_pace: least time between an edit and the one before.
    """

    __slots__ = (
        "_busy",
        "_draft_pace",
        "_drafted_at",
        "_free_at",
        "_held_until",
        "_pace",
    )

    def __init__(self, pace: float, draft_pace: float) -> None:
        self._pace = pace
        self._draft_pace = draft_pace
        self._free_at = 0.0
        self._drafted_at = 0.0
        self._held_until = 0.0
        self._busy = 0

    @property
    def message_at(self) -> float:
        """When the next message may go out."""
        return self._free_at

    @property
    def edit_at(self) -> float:
        """When the last edit of an answer may go out."""
        return max(self._free_at, self._drafted_at)

    @property
    def draft_at(self) -> float:
        """When the next call for a draft may go out."""
        return max(self.edit_at, self._held_until)

    def said(self, now: float) -> None:
        """Count a message that goes out now."""
        self._free_at = now + self._pace

    def edited(self, now: float) -> None:
        """Count an edit that goes out now, or the first message of a draft."""
        self.said(now)
        self._drafted_at = now + self._draft_pace

    def worked(self) -> None:
        """Learn that the platform took a call for a draft."""
        self._busy = 0

    def busy(self, now: float, retry_after: float | None) -> None:
        """Learn that the platform took no call for a draft.

        Args:
            now: when it said so.
            retry_after: after how many seconds it may be asked again; None: unknown.
        """
        self._busy += 1
        wait = min(FIRST_WAIT * 2.0 ** min(self._busy - 1, 6), LONGEST_WAIT)
        self._held_until = now + (wait if retry_after is None else retry_after)
