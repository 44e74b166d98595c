"""One attempt at one message: its permit, its claim, its words, its report.

What a session keeps while it waits for a turn. Knows the session only as the actor
on whose behalf it tells; what people may see has been through the sanitiser.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from actors import answers, names, together
from actors.held import NOTHING, Held, Known
from actors.ledger import Run, Spent, total
from actors.protocol import (
    CancelTurn,
    Failed,
    Finished,
    Granted,
    StartTurn,
    TurnEnded,
    TurnNoted,
    TurnSpent,
    TurnSpoke,
)
from actors.rules import briefing, message_state
from actors.showing import DraftDue, Showing
from actors.signals import Signals, SignDue
from actors.trying import (
    ClaimAgain,
    Claimed,
    Message,
    Report,
    Superseded,
    WaitedLongEnough,
)
from actors.turn import TIMED_OUT
from actors.turnstile import Turnstile
from actors.vigil import LookAtTurn, Vigil
from actors.words import TurnMoved
from runtime.errors import DuplicateError, SequenceConflictError
from runtime.logs import EventLog

if TYPE_CHECKING:
    from actors.answers import Aside
    from actors.messages import Inbound
    from actors.persona import Persona
    from actors.rules.stuck import Pace
    from actors.services import Services
    from runtime.actor import Actor
    from runtime.reply import Reply
    from runtime.rows import Committed
    from runtime.timers import Timer

LOG = EventLog("session")

# Chosen: what a turn may take after its time is up until its report is here; longer,
# and it is lost: something broke, and nobody would tell the people who wait.
REPORT_WITHIN = 30.0

# Chosen: seconds until a failed commit is tried again; the disk may be full for
# hours, and a try is cheap.
RETRY_CLAIM = 1.0

RESTARTED = "⚠️ I am being restarted. Please ask again."
LOST_THREAD = "⚠️ I lost the thread. Please ask again."


class Attempt:
    """One turn of a session, from asking for a permit to its report.

    Args:
        turn_id: different for each attempt at the same message, also after a restart:
            what an earlier attempt still says is then told from this one's words.
        held: what it answers.
        generation: as in the queue's `Start`.
        session: on whose behalf things are told and timed.
        persona: whose turn it is.
        services: clock, store, counts, limits.
    """

    __slots__ = (
        "_began_at",
        "_claim_first",
        "_is_granted",
        "_known",
        "_patience",
        "_persona",
        "_services",
        "_session",
        "_spent",
        "_turnstile",
        "_vigil",
        "generation",
        "held",
        "id",
        "is_over",
        "is_started",
        "showing",
        "signals",
    )

    def __init__(
        self,
        turn_id: str,
        held: Held,
        generation: int,
        session: Actor,
        persona: Persona,
        services: Services,
    ) -> None:
        self.id = turn_id
        self.held = held
        self.generation = generation
        self.is_over = False
        """Whether it has reported; it can no longer be stopped then."""

        self._session = session
        self._persona = persona
        self._services = services
        self.showing = Showing(turn_id, held.inbound, session, persona)
        """What people see of it meanwhile."""

        self.signals = Signals(turn_id, held.inbound, session, persona.name, services)

        self._began_at = services.clock.monotonic()
        self._claim_first = False
        self._is_granted = False
        self._turnstile = Turnstile(session, turn_id, held.inbound.priority)
        self.is_started = False
        """Whether the agent was told."""

        self._vigil = Vigil(turn_id, held.inbound, persona.name, session, services)
        self._spent: tuple[Spent, ...] = ()
        self._known = NOTHING
        self._patience: Timer | None = None

    @property
    def inbound(self) -> Inbound:
        """The message it answers."""
        return self.held.inbound

    def begin(self, known: Known, *, claim_first: bool) -> Report | None:
        """Ask for a permit.

        Args:
            known: what the turn is told of the past.
            claim_first: whether the attempt must be durable before the model is asked.
        """
        self._known, self._claim_first = known, claim_first
        self.signals.begin()
        if self._turnstile.ask():
            return None
        return self._report(Failed(RESTARTED, "limiter"))

    def on(self, message: Message) -> Report | None:
        """Go on; gives the report when there is one, once."""
        if self.is_over:
            return None
        match message:
            case TurnSpoke() | TurnSpent() | TurnMoved():
                self._moved(message)
            case DraftDue() | SignDue():
                self._show(message)
            case LookAtTurn():
                return self._look()
            case Granted() | ClaimAgain() | Claimed():
                return self._on_permit(message)
            case WaitedLongEnough():
                self.cancel()  # should it run all the same
                self._vigil.see_gone_later()
                return self._report(self._lost())
            case TurnEnded(outcome=outcome):
                return self._report(outcome)
        return None

    def _show(self, due: DraftDue | SignDue) -> None:
        if isinstance(due, DraftDue):
            self.showing.show()
        else:
            self.signals.type_on()

    def _moved(self, message: TurnSpoke | TurnSpent | TurnMoved) -> None:
        self._vigil.move()
        if isinstance(message, TurnSpoke):
            self._spoke(message)
        elif isinstance(message, TurnSpent):
            self._spent = message.spent

    def _look(self) -> Report | None:
        """End it if it is stuck."""
        if not self._vigil.look():
            return None
        self.cancel()
        self._vigil.see_gone_later()
        lost, why = self._lost(), "stuck"
        stuck = msgspec.structs.replace(lost, text=TIMED_OUT, reason=why)
        return self._report(msgspec.structs.replace(stuck, trouble="timeout"))

    @property
    def pace(self) -> Pace:
        """How it gets on."""
        return self._vigil.pace

    def _on_permit(self, message: Granted | ClaimAgain | Claimed) -> Report | None:
        match message:
            case Granted():
                self._granted()
            case ClaimAgain():
                self._claim()
            case Claimed(outcome=outcome):
                return self._claimed(outcome)
        return None

    def run(self, outcome: Finished | Failed) -> Run:
        """Say what it took, until now."""
        wanted = self._persona.config.model
        last = outcome.spent[-1] if outcome.spent else None
        asked = outcome.asked if isinstance(outcome, Failed) else ""
        return Run(
            provider=last.provider if last else wanted,
            model=last.model if last else (asked or wanted),
            attempt=self.held.state.attempts,
            seconds=round(self._services.clock.monotonic() - self._began_at, 4),
            usage=outcome.usage,
            rounds=outcome.rounds,
            cost=round(sum(each.cost for each in outcome.spent), 8),
            spent=outcome.spent,
        )

    def count(self, outcome: Finished | Failed, run: Run) -> None:
        """Count how it ended, and say so in the log."""
        word = outcome.reason if isinstance(outcome, Failed) else "ok"
        self._services.metrics.turn(self._persona.name, word)
        self._services.metrics.stage("turn", run.seconds)
        LOG.info(
            "turn ended",
            correlation_id=self.inbound.correlation_id,
            agent=self._persona.name,
            outcome=word,
            attempt=run.attempt,
            seconds=run.seconds,
        )

    def cancel(self) -> Run | None:
        """Tell the agent that nobody waits for it any more.

        Returns:
            What it took until now; None: nothing.
        """
        if self.is_started:
            agent = names.agent(self._persona.name)
            self._session.tell(agent, CancelTurn(self.id))
        return self.run(self._lost()) if self._spent else None

    def call_off(self) -> None:
        """Store that it was not the message's fault: the runtime ends."""
        if self.is_started:
            self._turnstile.keep()
        if not self._is_granted or self.is_over:  # then nothing was claimed
            return
        effect = self.held.state.on(message_state.Returns())
        if isinstance(effect, message_state.PutOff):
            now = self._services.clock.wall()
            commit = together.as_put_back(self.held, effect, now)
            self._services.store.submit(commit, _pass_over)

    def leave(self) -> None:
        """Give back the permit, and void what would still remind the session of it."""
        self.is_over = True
        self.showing.end()
        self._vigil.end()
        self.signals.end()
        if self._patience is not None:
            self._patience.cancel()
        self._turnstile.leave()

    def _lost(self) -> Failed:
        calls = sum(each.calls for each in self._spent)
        return Failed(
            LOST_THREAD,
            "lost",
            usage=total(self._spent),
            rounds=calls,
            spent=self._spent,
        )

    def rest(self) -> None:
        """Have others run meanwhile: it only waits for people."""
        self._vigil.pause()
        self._turnstile.lend()
        self.signals.rest()

    def go_on(self, reply: Reply) -> None:
        """Answer whether the turn may go on, as soon as that is known."""
        self._vigil.move()
        self._turnstile.go_on(reply)
        self.signals.go_on()

    def _report(self, report: Report) -> Report:
        self.is_over = True
        self.signals.end()
        return report

    def _granted(self) -> None:
        if not self._turnstile.granted():
            return
        self._is_granted = True
        now = self._services.clock.monotonic()
        self._services.metrics.stage("queue", now - self._began_at)
        self._began_at = now
        self._claim()
        if not self._claim_first:
            self._start()

    def _claim(self) -> None:
        """Store that an attempt begins; a first claim that is lost does no harm."""
        note, turn_id, may_wait = self._session.note, self.id, not self._claim_first

        def done(outcome: Committed | Exception) -> None:
            if not may_wait or isinstance(outcome, Exception):
                note(Claimed(turn_id, outcome))

        now, steps = self._services.clock.wall(), self._known.steps
        row = together.as_claim(self.held, steps, now, may_wait=may_wait)
        self._services.store.submit(row, done)

    def _claimed(self, outcome: Committed | Exception) -> Report | None:
        if isinstance(outcome, DuplicateError):
            self.cancel()
            return self._report(Superseded())
        if isinstance(outcome, SequenceConflictError):
            raise outcome  # an earlier incarnation has begun it with others
        if isinstance(outcome, Exception):
            LOG.warning("start of a turn not stored", why=str(outcome))
            if not self.is_started:
                self._session.after(RETRY_CLAIM, ClaimAgain(self.id))
        elif not self.is_started:
            self._start()
        return None

    def _start(self) -> None:
        self.is_started = True
        self.held = held = msgspec.structs.replace(self.held, is_recorded=True)
        self._vigil.begin()
        session = self._session
        limits = self._services.limits
        seconds = self._persona.turn_seconds(limits) + REPORT_WITHIN
        self._patience = session.after(seconds, WaitedLongEnough(self.id))
        known = self._known
        start = StartTurn(
            turn_id=self.id,
            generation=self.generation,
            session=session.actor_ref,
            inbound=self._services.hooks.unshown(held.asked, self._persona.name),
            history=known.lines,
            earlier=known.earlier,
            summaries=known.summaries,
            answered=known.answered,
            steps=known.steps,
            attempt=self.held.state.attempts,
            reported=known.reported,
            resume=known.resume,
            conversation=known.steps.rpartition("/")[0],
            may_have_steps=held.state.may_have_steps or bool(held.also),
            is_steered=known.is_steered,
            injected=held.injected,
            mode=briefing.mode_of(self.inbound),
        )
        session.tell(names.agent(self._persona.name), start)

    def inject(self, injected: tuple[Inbound, ...]) -> tuple[Inbound, ...]:
        """Put messages into the turn; give all that it was given so far."""
        self._vigil.move()
        given = (*self.held.injected, *injected)
        self.held = msgspec.structs.replace(self.held, injected=given)
        return given

    def _spoke(self, spoke: TurnSpoke) -> None:
        self.signals.spoke()
        self.showing.take(spoke)

    def beside(self, noted: TurnNoted) -> tuple[Aside, ...]:
        """Give what is to be said beside the answer, after the words said so far."""
        services, connector = self._services, self.inbound.address.connector
        is_ours = noted.turn_id == self.id and not self.is_over
        is_seen = services.account(connector).abilities.shows_asides
        is_told = services.presence.tells(connector, noted.status)
        if not (is_ours and is_seen and is_told):
            return ()
        if noted.status == "slow" and not self.signals.is_late():
            return ()
        self.showing.show_now()
        aside = answers.aside(self.inbound, noted.key, noted.text, noted.status)
        return (aside,)


def _pass_over(_: object) -> None:
    """Nobody is left to tell; an attempt that stays counted is one too many."""
