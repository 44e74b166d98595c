"""What people see of an answer while it is being written: drafts."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from actors import names
from actors.deliveries import Draft, replied_to
from actors.protocol import ShowDraft
from actors.rules.markers import cleaner

if TYPE_CHECKING:
    from actors.messages import Inbound
    from actors.persona import Persona
    from actors.protocol import TurnSpoke
    from runtime.actor import Actor
    from runtime.timers import Timer

# Chosen: words said within 20 ms are shown together: nobody can tell, and a fast
# model would otherwise cost a message to two actors for each word.
DRAFT_PACE = 0.02


class DraftDue(msgspec.Struct, frozen=True):
    """A note to the session: show what has been said meanwhile."""

    turn_id: str


class Showing:
    """The drafts of one turn's answer, cleaned and paced.

    Args:
        turn_id: the turn that speaks.
        inbound: what is answered, and where.
        session: on whose behalf things are told and timed.
        persona: who speaks, and what of its text is shown.
    """

    __slots__ = (
        "_agent",
        "_egress",
        "_fresh_starts",
        "_inbound",
        "_next_draft",
        "_sanitizer",
        "_session",
        "_shown",
        "_turn_id",
        "_unshown",
    )

    def __init__(
        self,
        turn_id: str,
        inbound: Inbound,
        session: Actor,
        persona: Persona,
    ) -> None:
        self._turn_id = turn_id
        self._inbound = inbound
        self._session = session
        self._agent = persona.name
        self._egress = persona.egress
        self._sanitizer = cleaner(self._egress)
        self._unshown = ""  # said and cleaned, but not shown yet
        self._shown = 0  # characters, since the last fresh start
        self._fresh_starts = 0  # how often what was said was taken back
        self._next_draft: Timer | None = None

    def take(self, spoke: TurnSpoke) -> None:
        """Take the next words; show them now, or soon."""
        if spoke.starts_over:
            # A draft of another turn id begins anew; what people saw cannot be taken
            # back everywhere, but the answer will be a whole one.
            self._sanitizer, self._unshown = cleaner(self._egress), ""
            self._fresh_starts += 1
            self._shown = 0
        self._unshown += self._sanitizer.feed(spoke.text)
        if self._next_draft is None:
            self.show()

    def show_now(self) -> None:
        """Show what has been said, before something else is said beside it."""
        self.end()
        self.show()

    def show(self) -> None:
        """Show what was said since the last draft."""
        self._next_draft = None
        if not self._unshown:
            return
        inbound, session = self._inbound, self._session
        fresh = f"~{self._fresh_starts}" if self._fresh_starts else ""
        draft = Draft(
            correlation_id=inbound.correlation_id,
            reply_id=inbound.id,
            turn_id=f"{self._turn_id}{fresh}",
            address=inbound.address,
            agent=self._agent,
            text=self._unshown,
            begins_at=self._shown,
            reply_to=replied_to(inbound),
        )
        self._shown += len(self._unshown)
        self._unshown = ""
        session.tell(names.connector(draft.address.connector), ShowDraft(draft))
        self._next_draft = session.after(DRAFT_PACE, DraftDue(self._turn_id))

    def end(self) -> None:
        """Void what would still remind the session of a draft."""
        if self._next_draft is not None:
            self._next_draft.cancel()
            self._next_draft = None
