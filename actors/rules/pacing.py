"""When the next call about a chat may go out; pure.

Messages and edits share what a platform takes in one chat: after either one there is a
pause, and in a minute there may be so many. Edits of drafts wait longer, give way when
the platform is busy, and leave a part of each minute to the answers.
"""

from __future__ import annotations

from collections import deque

# Chosen: as a delivery's own waits (`sending.py`).
FIRST_WAIT = 1.0
LONGEST_WAIT = 60.0

MINUTE = 60.0

# Chosen: the last edits and further parts of one long answer.
KEPT = 4
"""The part of a minute, one in so many, that is kept for answers."""


class Pacing:
    """The pauses of one chat; all times in seconds on the caller's monotonic clock.

    Args:
        pace: least time between two calls.
        draft_pace: least time between an edit and the one before.
        per_minute: most messages and edits in any minute; 0: any.
    """

    __slots__ = (
        "_busy",
        "_draft_pace",
        "_drafted_at",
        "_free_at",
        "_held_until",
        "_pace",
        "_per_minute",
        "_times",
    )

    def __init__(self, pace: float, draft_pace: float, per_minute: int = 0) -> None:
        self._pace = pace
        self._per_minute = per_minute
        self._times: deque[float] = deque(maxlen=per_minute)
        """When the last calls were made, the oldest first."""

        self._draft_pace = draft_pace
        self._free_at = 0.0
        self._drafted_at = 0.0
        self._held_until = 0.0
        self._busy = 0

    @property
    def message_at(self) -> float:
        """When the next message may go out."""
        return max(self._free_at, self._after_others(self._per_minute))

    @property
    def edit_at(self) -> float:
        """When the last edit of an answer may go out."""
        return max(self.message_at, self._drafted_at)

    @property
    def draft_at(self) -> float:
        """When the next call for a draft may go out."""
        spare = self._per_minute - self._per_minute // KEPT
        return max(self.edit_at, self._held_until, self._after_others(spare))

    def said(self, now: float) -> None:
        """Count a message that goes out now."""
        self._free_at = now + self._pace
        self._times.append(now)

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

    def _after_others(self, most: int) -> float:
        """Give when fewer than so many calls were made within a minute."""
        is_full = 0 < most <= len(self._times)
        return self._times[-most] + MINUTE if is_full else 0.0
