"""What people see while an answer is written: drafts, typing, and late notices."""

from __future__ import annotations

import msgspec
import trio

from actors import names
from actors.agents.persona import Persona
from actors.config.presence import TYPING_EVERY
from actors.messages.deliveries import Draft, Typing
from actors.messages.inbound import Inbound
from actors.protocol import ShowDraft, ShowTyping, TurnReported, TurnStreamed
from actors.rules.markers.parser import cleaner
from actors.rules.text.durations import spoken
from actors.services import Services
from runtime.actor.actor import Actor
from runtime.actor.timers import Timer

# Chosen: words said within 20 ms are shown together: nobody can tell, and a fast
# model would otherwise cost a message to two actors for each word.
DRAFT_PACE = 0.02

# Chosen: where a platform lets drafts be edited once a second, words come into the next
# edit a tenth of that later at most, and cost a few messages to actors in place of one
# for each word.
SHARE_OF_PACE = 0.1
LONGEST_PACE = 0.25


class DraftDue(msgspec.Struct, frozen=True):
    """Timer of a session: show the words said since the last draft."""

    turn_id: str


class DraftStream:
    """The drafts of one turn's answer, sanitised and paced.

    Args:
        persona: who speaks, and which parts of its text people may see.
    """

    __slots__ = (
        "_agent",
        "_egress",
        "_fresh_starts",
        "_inbound",
        "_is_seen",
        "_next_draft",
        "_not_before",
        "_pace",
        "_reply_to",
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
        services: Services,
    ) -> None:
        connector = inbound.address.connector
        account = services.accounts[connector]
        shared = min(account.abilities.draft_pace * SHARE_OF_PACE, LONGEST_PACE)
        self._pace = max(DRAFT_PACE, shared)
        """Seconds between two drafts."""

        self._is_seen = not account.has_presence or services.shows_drafts(connector)
        """Whether the courier would make anything of them."""

        self._turn_id = turn_id
        self._inbound = inbound
        self._reply_to = inbound.answered_id  # here, as it is asked for at each draft
        self._session = session
        self._agent = persona.name
        self._egress = persona.egress
        self._sanitizer = cleaner(self._egress)
        self._unshown = ""  # sanitised words that are not shown yet
        self._shown = 0  # characters since the last fresh start
        self._fresh_starts = 0  # how often the model took its words back
        self._next_draft: Timer | None = None
        self._not_before = 0.0  # on trio's clock: when the next draft may be shown

    def take(self, spoke: TurnStreamed) -> None:
        """Take the next words; show them now, or soon."""
        if not self._is_seen:
            return
        if spoke.starts_over:
            # A draft with another turn id begins anew. Not every platform can take back
            # what people saw, but the answer will be complete.
            self._sanitizer, self._unshown = cleaner(self._egress), ""
            self._fresh_starts += 1
            self._shown = 0
        self._unshown += self._sanitizer.feed(spoke.text)
        if self._next_draft is None and self._unshown:
            # Why no timer at each draft: most models speak slower than the pace.
            early = self._not_before - trio.current_time()
            if early <= 0:
                self.show()
            else:
                due = DraftDue(self._turn_id)
                self._next_draft = self._session.after(early, due)

    def show_now(self) -> None:
        """Show all words so far, before a notice follows them."""
        self.end()
        self.show()

    def show(self) -> None:
        """Show the words said since the last draft."""
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
            reply_to=self._reply_to,
        )
        self._shown += len(self._unshown)
        self._unshown = ""
        session.tell(names.connector(draft.address.connector), ShowDraft(draft))
        self._not_before = trio.current_time() + self._pace

    def end(self) -> None:
        """Cancel the timer of the next draft."""
        if self._next_draft is not None:
            self._next_draft.cancel()
            self._next_draft = None


STILL_AT_IT = "⏳ This takes a little longer. I am still at it."
SINCE = "⏳ I am still at it, for {span} now."

# Chosen: typing is renewed a fifth of the time before the platform lets it expire.
IN_TIME = 0.8

SOON = 0.01
"""Seconds too short for people to notice."""


class RenewTyping(msgspec.Struct, frozen=True):
    """Timer of a session: show again that the agent is typing."""

    turn_id: str


class ProgressSignals:
    """The typing indicator and the late notices of one turn.

    They end with the turn, however it ends: the session holds their timers, and a
    platform shows typing no longer than until the next renewal would be due.
    """

    __slots__ = (
        "_agent",
        "_began_at",
        "_every",
        "_inbound",
        "_is_typing",
        "_notices",
        "_services",
        "_session",
        "_slowness",
        "_spoke_at",
        "_turn_id",
        "_typing",
    )

    def __init__(
        self,
        turn_id: str,
        inbound: Inbound,
        session: Actor,
        agent: str,
        services: Services,
    ) -> None:
        self._turn_id = turn_id
        self._inbound = inbound
        self._session = session
        self._agent = agent
        self._services = services
        self._began_at = services.clock.monotonic()
        self._notices = 0
        self._spoke_at = 0.0  # never
        self._is_typing = False
        self._typing: Timer | None = None
        self._slowness: Timer | None = None
        typing_for = services.accounts[inbound.address.connector].abilities.typing_for
        seconds = IN_TIME * typing_for if typing_for else TYPING_EVERY
        self._every = min(TYPING_EVERY, seconds)

    def begin(self) -> None:
        """Show typing at once, and a notice later if the turn takes long."""
        if self._inbound.occasion:
            return  # nobody waits for the turn, and it mostly ends in silence
        self._type()
        self._later(self._services.limits.notice_after)

    def rest(self) -> None:
        """Show nothing while the turn only waits for people."""
        self.end()

    def resume(self) -> None:
        """Show typing again: the turn goes on."""
        if not self._inbound.occasion:
            self._type()
            self._later(self._services.presence.status_every)

    def show_typing_again(self) -> None:
        """Renew the typing indicator."""
        if self._is_typing:
            self._type()

    def spoke(self) -> None:
        """Put the next notice off: people have words to read now."""
        self._spoke_at = self._services.clock.monotonic()

    def is_late(self) -> bool:
        """Whether to send the late notice now; if not, a timer is set for it.

        Words that people can read put the notice off.
        """
        connector = self._inbound.address.connector
        is_seen = self._services.shows_drafts(connector)
        every, said_at = self._services.presence.status_every, self._spoke_at
        if is_seen and self._inbound.wants_drafts and said_at:
            left = said_at + every - self._services.clock.monotonic()
            # Why not above 0: a rounding error would set a timer of 0 without end.
            if left > SOON or not every:
                self._later(left if every else 0.0)
                return False
        self._notices += 1
        self._later(every)
        return True

    def end(self) -> None:
        """Stop typing and notices."""
        if self._slowness is not None:
            self._slowness.cancel()
            self._slowness = None
        if self._typing is not None:
            self._typing.cancel()
            self._typing = None
        if self._is_typing:
            self._is_typing = False
            self._tell(is_over=True)

    def _type(self) -> None:
        connector = self._inbound.address.connector
        if not self._services.accounts[connector].abilities.shows_typing:
            return
        self._is_typing = True
        self._tell(is_over=False)
        if self._typing is not None:  # two tool calls may resume at the same time
            self._typing.cancel()
        self._typing = self._session.after(self._every, RenewTyping(self._turn_id))

    def _tell(self, *, is_over: bool) -> None:
        inbound = self._inbound
        typing = Typing(
            correlation_id=inbound.correlation_id,
            reply_id=inbound.id,
            address=inbound.address,
            agent=self._agent,
            is_over=is_over,
        )
        connector = names.connector(inbound.address.connector)
        self._session.tell(connector, ShowTyping(typing))

    def _later(self, seconds: float) -> None:
        if self._slowness is not None:
            self._slowness.cancel()
            self._slowness = None
        if not (seconds and self._services.limits.notice_after):
            return
        number = self._notices + 1
        text = STILL_AT_IT
        if self._notices:
            now = self._services.clock.monotonic() + seconds
            text = SINCE.format(span=spoken(now - self._began_at))
        key = "slow" if number == 1 else f"slow{number}"
        noted = TurnReported(self._turn_id, key, text, "slow")
        self._slowness = self._session.after(seconds, noted)
