"""The turn that a session waits for: what it has said so far, and its timers.

Knows no actor but its session's timers; what people may see of it has been through
the sanitiser.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from actors.messages import Draft
from actors.rules.markers import Sanitizer

if TYPE_CHECKING:
    from actors.messages import Inbound
    from runtime.timers import Timer


class WaitedLongEnough(msgspec.Struct, frozen=True):
    """A note to itself: a turn should have reported by now."""

    turn_id: str


class DraftDue(msgspec.Struct, frozen=True):
    """A note to itself: show what has been said meanwhile."""

    turn_id: str


class CurrentTurn:
    """The turn that runs, or waits for its permit.

    Args:
        turn_id: different for each attempt at the same message, also after a restart:
            what an earlier attempt still says is then told from this one's words.
        inbound: what it answers.
        generation: as in the queue's `Start`.
        now: seconds on the monotonic clock.
    """

    __slots__ = (
        "began_at",
        "generation",
        "id",
        "inbound",
        "is_ending",
        "is_granted",
        "next_draft",
        "patience",
        "sanitizer",
        "unshown",
    )

    def __init__(
        self, turn_id: str, inbound: Inbound, generation: int, now: float
    ) -> None:
        self.id = turn_id
        self.inbound = inbound
        self.generation = generation
        self.sanitizer = Sanitizer()
        self.unshown = ""
        """Said and cleaned, but not shown yet."""

        self.began_at = now
        self.is_granted = False
        """Whether it has its permit; a second one changes nothing."""

        self.is_ending = False
        """Whether its answer is being stored; it can no longer be stopped."""

        self.patience: Timer | None = None
        self.next_draft: Timer | None = None

    def hear(self, text: str) -> None:
        """Take what the model said next, markers and all."""
        self.unshown += self.sanitizer.feed(text)

    def take_draft(self, agent: str) -> Draft:
        """Give what has not been shown yet; from now on it counts as shown."""
        draft = Draft(
            correlation_id=self.inbound.correlation_id,
            turn_id=self.id,
            address=self.inbound.address,
            agent=agent,
            text=self.unshown,
        )
        self.unshown = ""
        return draft

    def cancel_timers(self) -> None:
        """Void what would still remind the session of this turn."""
        for timer in (self.patience, self.next_draft):
            if timer is not None:
                timer.cancel()
