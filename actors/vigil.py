"""Watches one attempt: warns when it stalls, ends it when it is stuck (B22, P4).

A stuck turn is cancelled, its people are told, and the next one begins; some seconds
later it is looked for. One that is still there is an error: its actor is killed, so
that what holds it up is left behind, and should even that not help, its agent is
restarted with all its conversations, which go on from what is stored. Whatever the turn
says meanwhile is no turn's words any more: its id is forgotten.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import msgspec

from actors import names
from actors.rules import stuck
from actors.rules.stuck import Remedy
from runtime.logs import EventLog

if TYPE_CHECKING:
    from actors.messages import Inbound
    from actors.rules.stuck import Pace
    from actors.services import Services
    from runtime.actor import Actor
    from runtime.timers import Timer

LOG = EventLog("watchdog")


# Chosen: the kernel leaves behind what does not end within 5 seconds.
LEFT_BEHIND_AFTER = 6.0
"""Seconds after which the actor of a killed turn is gone."""

# Chosen: nobody sees a difference of a hundredth in what takes minutes.
LEAST_LOOK = 0.01
"""Seconds between two looks, at least."""


class LookAtTurn(msgspec.Struct, frozen=True):
    """A note to the session: its turn may have stalled by now."""

    turn_id: str


class SeeGone(msgspec.Struct, frozen=True):
    """A note to the session: a turn that was ended from outside is gone by now."""

    turn_id: str
    tried: Remedy = "cancel"
    """What was done last to end it."""


class Vigil:
    """How one attempt gets on.

    Args:
        turn_id: which one.
        inbound: what it answers; for the log.
        agent: whose turn it is.
        session: on whose behalf things are timed.
        services: clock, counts, limits.
    """

    __slots__ = (
        "_agent",
        "_began_at",
        "_inbound",
        "_is_paused",
        "_moved_at",
        "_services",
        "_session",
        "_timer",
        "_turn_id",
        "pace",
    )

    def __init__(
        self,
        turn_id: str,
        inbound: Inbound,
        agent: str,
        session: Actor,
        services: Services,
    ) -> None:
        self._turn_id = turn_id
        self._inbound = inbound
        self._agent = agent
        self._session = session
        self._services = services
        self._began_at = self._moved_at = math.inf  # it has not begun
        self._is_paused = False
        self._timer: Timer | None = None
        self.pace: Pace = "running"
        """As it was when it was looked at last."""

    def begin(self) -> None:
        """Watch from now on."""
        self._began_at = self._moved_at = self._services.clock.monotonic()
        self._look_later()

    def move(self) -> None:
        """Learn that it gets on."""
        self._moved_at = self._services.clock.monotonic()
        self._is_paused = False
        if self.pace == "stalled":
            self._enter("running")

    def pause(self) -> None:
        """Learn that it waits for people until it moves again."""
        self._is_paused = True

    def look(self) -> bool:
        """See how it gets on; give whether it is stuck."""
        now = self._services.clock.monotonic()
        if self._is_paused:
            self._moved_at = now
        lasted, silent = now - self._began_at, now - self._moved_at
        pace = stuck.pace_of(self._services.watchdog.patience, lasted, silent)
        if pace != self.pace:
            self._enter(pace, lasted, silent)
        if pace == "stuck":
            return True
        self._look_later(lasted, silent)
        return False

    def end(self) -> None:
        """Watch no more."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def see_gone_later(self) -> None:
        """Have the session see that it is gone."""
        within = self._services.watchdog.recovered_within
        self._session.after(within, SeeGone(self._turn_id))

    def _enter(self, pace: Pace, lasted: float = 0.0, silent: float = 0.0) -> None:
        self.pace = pace
        self._services.metrics.pace(self._agent, pace)
        say = LOG.warning if pace in {"stalled", "stuck"} else LOG.info
        say(
            f"turn {pace}",
            correlation_id=self._inbound.correlation_id,
            agent=self._agent,
            turn=self._turn_id,
            seconds=round(lasted, 1),
            silent=round(silent, 1),
        )

    def _look_later(self, lasted: float = 0.0, silent: float = 0.0) -> None:
        self.end()
        patience = self._services.watchdog.patience
        seconds = stuck.look_after(patience, lasted, silent)
        if seconds < math.inf:
            # Why at least: what a float is off by would have it looked at for ever.
            wait = max(LEAST_LOOK, seconds)
            self._timer = self._session.after(wait, LookAtTurn(self._turn_id))


def see_gone(note: SeeGone, agent: str, session: Actor, services: Services) -> None:
    """See whether a turn that was ended from outside is gone; else do more."""
    turn = session.find(f"{names.turns(agent)}/{note.turn_id}")
    services.metrics.pace(agent, "recovered" if turn is None else "unrecovered")
    remedy = None if turn is None else stuck.next_remedy(note.tried)
    what = {"agent": agent, "turn": note.turn_id, "tried": note.tried}
    if turn is None:
        LOG.info("a stuck turn is gone", **what)
        return
    LOG.error("a stuck turn goes on", **what, next=remedy or "nothing")
    if remedy == "kill":
        turn.kill()
        wait = max(LEFT_BEHIND_AFTER, services.watchdog.recovered_within)
        session.after(wait, SeeGone(note.turn_id, remedy))
    elif remedy == "restart" and (branch := session.find(names.branch(agent))):
        branch.kill()  # with this session, so that nobody here can look once more
