"""Signs of life that people see of a turn beside words: typing, and late notices."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from actors import names
from actors.deliveries import Typing
from actors.protocol import ShowTyping, TurnNoted
from actors.rules.spans import spoken

if TYPE_CHECKING:
    from actors.messages import Inbound
    from actors.services import Services
    from runtime.actor import Actor
    from runtime.timers import Timer

STILL_AT_IT = "⏳ This takes a little longer. I am still at it."
SINCE = "⏳ I am still at it, for {span} now."

# Chosen: a fifth of the time before a platform stops showing it by itself.
IN_TIME = 0.8

SOON = 0.01
"""Seconds that make no difference to people."""


class SignDue(msgspec.Struct, frozen=True):
    """A note to the session: show again that somebody writes."""

    turn_id: str


class Signals:
    """The signs of life of one turn.

    All of them end with the turn, whatever becomes of it: they are the session's
    timers, and a platform is told no longer than the next one would be due.

    Args:
        turn_id: which turn.
        inbound: what it answers.
        session: on whose behalf things are told and timed.
        agent: who writes.
        services: settings, abilities of the connector, the time.
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
        typing_for = services.account(inbound.address.connector).abilities.typing_for
        every = services.presence.typing_every
        self._every = min(every, IN_TIME * typing_for) if typing_for else every

    def begin(self) -> None:
        """Show typing at once, and that it takes longer when it does."""
        if self._inbound.occasion:
            return  # nobody waits for it, and it mostly ends in silence
        self._type()
        self._later(self._services.limits.notice_after)

    def rest(self) -> None:
        """Show nothing while the turn only waits for people."""
        self.end()

    def go_on(self) -> None:
        """Show that it goes on."""
        if not self._inbound.occasion:
            self._type()
            self._later(self._services.presence.status_every)

    def type_on(self) -> None:
        """Show again that somebody writes."""
        if self._is_typing:
            self._type()

    def spoke(self) -> None:
        """Wait with the next notice: people read something now."""
        self._spoke_at = self._services.clock.monotonic()

    def is_late(self) -> bool:
        """Whether people are to be told now that it takes longer; else they are later.

        Words that they can read put it off.
        """
        connector = self._inbound.address.connector
        is_seen = self._services.account(connector).abilities.shows_drafts
        every, said_at = self._services.presence.status_every, self._spoke_at
        if is_seen and self._inbound.wants_drafts and said_at:
            left = said_at + every - self._services.clock.monotonic()
            # Why not above 0: what is due in no time would be due without end.
            if left > SOON or not every:
                self._later(left if every else 0.0)
                return False
        self._notices += 1
        self._later(every)
        return True

    def end(self) -> None:
        """Show no more signs of life."""
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
        if not self._services.account(connector).abilities.shows_typing:
            return
        self._is_typing = True
        self._tell(is_over=False)
        if self._typing is not None:  # two calls that waited may go on at once
            self._typing.cancel()
        self._typing = self._session.after(self._every, SignDue(self._turn_id))

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
        noted = TurnNoted(self._turn_id, key, text, "slow")
        self._slowness = self._session.after(seconds, noted)
