"""Watches one attempt: warns when its turn stalls, ends it when the turn is stuck.

The session cancels a stuck turn, tells people, and begins the next one. Some seconds
later it checks that the turn's actor has ended. If not, it kills that actor; if the
actor is still there after that, it restarts the agent with all its conversations, which
go on from what is stored. Whatever a cancelled turn still says is ignored: its id is
forgotten.
"""

from __future__ import annotations

import math

import msgspec

from actors import names
from actors.messages import progress as stuck
from actors.messages.inbound import Inbound
from actors.messages.progress import Pace, Remedy
from actors.services import Services
from runtime.actor.actor import Actor
from runtime.actor.timers import Timer
from runtime.telemetry.logs import EventLog

LOG = EventLog("watchdog")


# Chosen: longer than any commit under load, shorter than people wait.
ENDED_WITHIN = 10.0
"""Seconds after which a cancelled turn must have ended, and a killed one be gone."""

# Chosen: nobody sees a difference of a hundredth in what takes minutes.
LEAST_LOOK = 0.01
"""Least seconds between two checks."""


class CheckTurn(msgspec.Struct, frozen=True):
    """Timer of a session: the turn may have stalled, or its report may be overdue."""

    turn_id: str


class CheckTurnEnded(msgspec.Struct, frozen=True):
    """Timer of a session: the actor of a cancelled turn should have ended by now."""

    turn_id: str
    tried: Remedy = "cancel"
    """What the session did last to end it."""


class TurnWatchdog(msgspec.Struct, eq=False):
    """Tells whether one turn runs, has stalled, or is stuck.

    Args:
        inbound: the message that it answers; for the log.
        session: the actor that sets the timers.
    """

    _turn_id: str
    _inbound: Inbound
    _agent: str
    _session: Actor
    _services: Services
    pace: Pace = "running"
    """As of the last check."""

    is_quiet: bool = False
    """Whether it had said nothing for so long, at the last check, that other people
    need not wait for it."""

    _began_at: float = math.inf  # the turn has not begun
    _moved_at: float = math.inf
    _due_at: float = math.inf
    """When its report is overdue, in monotonic seconds."""

    _is_paused: bool = False
    _timer: Timer | None = None

    def begin(self, seconds: float) -> None:
        """Start to watch: the turn begins, and reports within so many seconds."""
        self._began_at = self._moved_at = self._services.clock.monotonic()
        self._due_at = self._began_at + seconds
        self._check_later(self._began_at)

    def move(self) -> None:
        """Note that the turn has made progress."""
        self._moved_at = self._services.clock.monotonic()
        self._is_paused = self.is_quiet = False
        if self.pace == "stalled":
            self._enter("running")

    def pause(self) -> None:
        """Note that the turn waits for people until its next progress."""
        self._is_paused = True

    def is_overdue(self) -> bool:
        """Whether the turn should have reported by now."""
        return self._services.clock.monotonic() >= self._due_at

    def is_stuck(self) -> bool:
        """Check the turn; give whether it is stuck."""
        now = self._services.clock.monotonic()
        if self._is_paused:
            self._moved_at = now
        lasted, silent = now - self._began_at, now - self._moved_at
        patience = self._services.watchdog.patience
        self.is_quiet = 0 < patience.quiet_after <= silent
        pace = stuck.pace_of(patience, lasted, silent)
        if pace != self.pace:
            self._enter(pace, lasted, silent)
        if pace == "stuck":
            return True
        self._check_later(now)
        return False

    def end(self) -> None:
        """Stop watching."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def check_ended_later(self) -> None:
        """Have the session check later that the turn's actor has ended."""
        self._session.after(ENDED_WITHIN, CheckTurnEnded(self._turn_id))

    def _enter(self, pace: Pace, lasted: float = 0.0, silent: float = 0.0) -> None:
        self.pace = pace
        self._services.metrics.paces.add(1, self._agent, pace)
        say = LOG.warning if pace in {"stalled", "stuck"} else LOG.info
        say(
            f"turn {pace}",
            correlation_id=self._inbound.correlation_id,
            agent=self._agent,
            turn=self._turn_id,
            seconds=round(lasted, 1),
            silent=round(silent, 1),
        )

    def _check_later(self, now: float) -> None:
        if self._timer is not None:
            self.end()
        patience = self._services.watchdog.patience
        lasted, silent = now - self._began_at, now - self._moved_at
        seconds = stuck.look_after(patience, lasted, silent)
        # Why at least: a rounding error of a float would cause checks without end.
        wait = max(LEAST_LOOK, min(seconds, self._due_at - now))
        self._timer = self._session.after(wait, CheckTurn(self._turn_id))


def check_turn_ended(
    note: CheckTurnEnded, agent: str, session: Actor, services: Services
) -> None:
    """Check that the actor of a cancelled turn has ended; else use the next remedy."""
    turn = session.find(f"{names.turns(agent)}/{note.turn_id}")
    services.metrics.paces.add(1, agent, "recovered" if turn is None else "unrecovered")
    remedy = None if turn is None else stuck.next_remedy(note.tried)
    what = {"agent": agent, "turn": note.turn_id, "tried": note.tried}
    if turn is None:
        LOG.info("a stuck turn is gone", **what)
        return
    LOG.error("a stuck turn goes on", **what, next=remedy or "nothing")
    if remedy == "kill":
        turn.kill()
        session.after(ENDED_WITHIN, CheckTurnEnded(note.turn_id, remedy))
    elif remedy == "restart" and (branch := session.find(names.branch(agent))):
        branch.kill()  # with this session, so that nobody here can look once more
