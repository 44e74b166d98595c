"""One attempt at a message's turn: its permit, its claim, its words, its report.

The session holds at most one attempt. An attempt first asks the limiter for a permit,
then stores that it begins (the claim), then has the agent start the turn. It ends with
one report. It knows the session only as the actor that sends and sets timers for it.

The permit is a lease, taken by the id of the turn. While the turn does nothing but wait
for people it rests, and another turn may run in its place; before it goes on, it takes
the permit again. The limiter knows the permit by session and turn: to release one twice
does no harm.
"""

from __future__ import annotations

from typing import Literal

import msgspec

from actors import names
from actors.agents.persona import Persona
from actors.hooks.book import patience
from actors.journal import answers
from actors.journal.answers import NOTHING_KNOWN, Aside, PendingMessage, TurnContext
from actors.journal.history import History
from actors.messages import state as message_state
from actors.messages.inbound import ALONE, Inbound, Usage
from actors.messages.progress import Pace
from actors.messages.tracing import Stage, TracedStep
from actors.messages.usage import Run, Spent, total
from actors.protocol import (
    AcquirePermit,
    CancelTurn,
    Failed,
    Finished,
    PermitGranted,
    ReleasePermit,
    StartTurn,
    TurnEnded,
    TurnProgressed,
    TurnReported,
    TurnSpent,
    TurnStreamed,
)
from actors.rules.prompt import brief as briefing
from actors.services import Services
from actors.session import shared_turns as together
from actors.session.progress import DraftDue, DraftStream, ProgressSignals, RenewTyping
from actors.session.watchdog import CheckTurn, TurnWatchdog
from actors.turn.turn import TIMED_OUT
from runtime.actor.actor import Actor
from runtime.actor.reply import Reply
from runtime.errors import DuplicateError, SequenceConflictError
from runtime.store.rows import Committed
from runtime.telemetry.logs import EventLog

State = Literal["none", "requested", "held", "resting", "requested_again", "kept"]


class PermitLease(msgspec.Struct, eq=False):
    """What a session knows of the permit of one attempt.

    Args:
        inbound: the message that it answers.
        is_suspect: see `AcquirePermit`.
    """

    _session: Actor
    _turn_id: str
    _inbound: Inbound
    _model: str
    is_suspect: bool = False
    _state: State = "none"
    _replies: list[Reply] = msgspec.field(default_factory=list)

    @property
    def is_resting(self) -> bool:
        """Whether the turn waits for people, and another may run in its place."""
        return self._state == "resting"

    def acquire(self) -> bool:
        """Ask for the permit; give whether there is a limiter to ask."""
        self._state = "requested"
        return self._ask(is_under_way=False)

    def granted(self) -> bool:
        """Take the permit; give whether the attempt may begin now.

        False for an attempt that resumes, and for a second permit.
        """
        if self._state == "requested":
            self._state = "held"
            return True
        if self._state == "requested_again":
            self._state = "held"
            self._answer(may=True)
        return False

    def rest(self) -> None:
        """Give the permit back while the turn only waits for people."""
        if self._state == "held":
            self._state = "resting"
            self._give_back()

    def resume(self, reply: Reply) -> None:
        """Answer True as soon as the permit is held, False if it never will be."""
        if self._state == "resting":
            self._state = "requested_again"
            if not self._ask(is_under_way=True):
                self._state = "resting"
                reply.offer(False)  # noqa: FBT003  the answer itself
                return
        self._replies.append(reply)
        if self._state != "requested_again":
            self._answer(may=self._state == "held")

    def keep(self) -> None:
        """Leave the permit to the limiter, which takes back what the dead hold.

        For a session that ends: its turn may run a moment longer, and no other turn is
        to run in its place meanwhile.
        """
        if self._state == "held":
            self._state = "kept"

    def release(self) -> None:
        """Give the permit back for good, or withdraw the request for it."""
        is_kept = self._state == "kept"
        self._state = self._state if is_kept else "none"
        self._answer(may=False)
        if not is_kept:
            self._give_back()

    def _give_back(self) -> None:
        back = ReleasePermit(self._session.actor_urn, self._turn_id)
        self._session.tell(names.LIMITER, back)

    def _ask(self, *, is_under_way: bool) -> bool:
        session = self._session
        wanted = AcquirePermit(
            session.actor_urn,
            self._turn_id,
            session.actor_ref,
            self._inbound.priority,
            is_under_way,
            self._model,
            sender=(self._inbound.address.connector, self._inbound.sender_id),
            caller=self._inbound.caller,
            is_suspect=self.is_suspect,
        )
        return session.tell(names.LIMITER, wanted)

    def _answer(self, *, may: bool) -> None:
        replies, self._replies = self._replies, []
        for reply in replies:
            reply.offer(may)


LOG = EventLog("session")

# Chosen: a turn that has not reported by then is lost: something broke, and nobody else
# would tell the people who wait.
REPORT_WITHIN = 30.0
"""Seconds between the end of a turn's time and its report."""

# Chosen: the disk may be full for hours, and an attempt to write is cheap.
RETRY_CLAIM = 1.0
"""Seconds until a claim that the disk refused is stored again."""

RESTARTED = "⚠️ I am being restarted. Please ask again."
LOST_THREAD = "⚠️ I lost the thread. Please ask again."


class ClaimDecided(msgspec.Struct, frozen=True):
    """The claim of an attempt is stored, or the store refused it."""

    turn_id: str
    outcome: Committed | Exception


class RetryClaim(msgspec.Struct, frozen=True):
    """Timer of a session: store the claim of the attempt again."""

    turn_id: str


class Superseded(msgspec.Struct, frozen=True):
    """Somebody else has settled a message of the turn: by hand, or another process."""

    pending: PendingMessage


TurnMessage = (
    PermitGranted
    | ClaimDecided
    | RetryClaim
    | TurnStreamed
    | TurnSpent
    | TurnProgressed
    | CheckTurn
    | DraftDue
    | RenewTyping
    | TurnEnded
)
"""What a session passes on to its attempt."""

TurnReport = Finished | Failed | Superseded


def as_fails(failed: Failed, now: float) -> message_state.TurnFailed:
    """Give the event for the message's state; `now` in Unix seconds."""
    reason, may_retry = failed.reason, failed.may_retry
    return message_state.TurnFailed(reason, may_retry, now, failed.not_before)


def known_of(
    history: History,
    inbound: Inbound,
    now: float,
    resume_within: float,
    *,
    is_steered: bool,
) -> TurnContext:
    """Give what a turn is told of the conversation so far.

    Args:
        now: Unix seconds.
        resume_within: seconds for which a model may resume the conversation that it
            keeps itself.
        is_steered: whether messages that come during the turn are put into it.
    """
    known = TurnContext(
        steps=f"{history.stream}/{inbound.id}",
        reported=history.reported(inbound.id),
        answered=history.answered,
        is_steered=is_steered,
    )
    if inbound.occasion in ALONE:
        return known
    return msgspec.structs.replace(
        known,
        lines=(*history.brought(inbound), *history.lines),
        earlier=history.earlier,
        summaries=tuple([each.text for each in history.summaries]),
        resume=history.resume_at(now, resume_within),
    )


class Attempt:
    """One attempt at a turn, from asking for a permit to its report.

    Args:
        turn_id: new for each attempt at the same message, also after a restart, so that
            late words of an earlier attempt are recognised.
        pending: the message that the turn answers, and those that share the turn.
        generation: as in the queue's `BeginTurn`.
    """

    __slots__ = (
        "_began_at",
        "_claim_first",
        "_is_granted",
        "_known",
        "_permit",
        "_persona",
        "_prepared",
        "_services",
        "_session",
        "_spent",
        "_watchdog",
        "drafts",
        "generation",
        "id",
        "inbound",
        "is_over",
        "is_started",
        "pending",
        "signals",
    )

    def __init__(
        self,
        turn_id: str,
        pending: PendingMessage,
        generation: int,
        session: Actor,
        persona: Persona,
        services: Services,
    ) -> None:
        self.id = turn_id
        self.pending = pending
        self.inbound = pending.inbound
        """The message it answers."""

        self.generation = generation
        self.is_over = False
        """Whether it has reported; then it can no longer be stopped."""

        self._session = session
        self._persona = persona
        self._services = services
        self.drafts = DraftStream(turn_id, pending.inbound, session, persona, services)
        """The drafts of the answer."""

        self.signals = ProgressSignals(
            turn_id, pending.inbound, session, persona.name, services
        )

        self._began_at = services.clock.monotonic()
        self._prepared = 0.0
        self._claim_first = False
        self._is_granted = False
        self._permit = PermitLease(
            session,
            turn_id,
            pending.inbound,
            persona.config.model,
            is_suspect=pending.state.is_suspect,
        )
        self.is_started = False
        """Whether the agent was told to start the turn."""

        self._watchdog = TurnWatchdog(
            turn_id, pending.inbound, persona.name, session, services
        )
        self._spent: tuple[Spent, ...] = ()
        self._known = NOTHING_KNOWN

    def begin(self, known: TurnContext, *, claim_first: bool) -> TurnReport | None:
        """Ask for a permit.

        Args:
            claim_first: whether the claim must be durable before the model is asked.

        Returns:
            A report if there is no limiter to ask.
        """
        self._known, self._claim_first = known, claim_first
        self.signals.begin()
        if self._permit.acquire():
            return None
        return self._report(Failed(RESTARTED, "limiter"))

    def on(self, message: TurnMessage) -> TurnReport | None:
        """Take one message; give the report when there is one, once."""
        if self.is_over:
            return None
        match message:
            case TurnStreamed():
                self._watchdog.move()
                self.signals.spoke()
                self.drafts.take(message)
            case TurnSpent(spent=spent):
                self._watchdog.move()
                self._spent = spent
            case TurnProgressed():
                self._watchdog.move()
            case DraftDue() | RenewTyping():
                self._show(message)
            case CheckTurn():
                return self._look()
            case TurnEnded(outcome=outcome, prepared=prepared):
                self._prepared = prepared
                return self._report(outcome)
            case _:
                return self._on_permit(message)
        return None

    def _show(self, due: DraftDue | RenewTyping) -> None:
        if isinstance(due, DraftDue):
            self.drafts.show()
        else:
            self.signals.show_typing_again()

    def _look(self) -> TurnReport | None:
        """End the turn if it is stuck, or its report overdue."""
        is_overdue = self._watchdog.is_overdue()
        if not (is_overdue or self._watchdog.is_stuck()):
            return None
        self.cancel()  # in case it still runs
        self._watchdog.check_ended_later()
        lost, why = self._lost(), "stuck"
        if is_overdue:
            return self._report(lost)
        stuck = msgspec.structs.replace(lost, text=TIMED_OUT, reason=why)
        return self._report(msgspec.structs.replace(stuck, trouble="timeout"))

    @property
    def pace(self) -> Pace:
        """How the turn gets on."""
        return self._watchdog.pace

    def _on_permit(
        self, message: PermitGranted | RetryClaim | ClaimDecided
    ) -> TurnReport | None:
        match message:
            case PermitGranted():
                self._granted()
            case RetryClaim():
                self._claim()
            case ClaimDecided(outcome=outcome):
                return self._claimed(outcome)
        return None

    def run(self, outcome: Finished | Failed) -> Run:
        """Give what the turn took until now."""
        wanted = self._persona.config.model
        last = outcome.spent[-1] if outcome.spent else None
        asked = outcome.asked if isinstance(outcome, Failed) else ""
        return Run(
            provider=last.provider if last else wanted,
            model=last.model if last else (asked or wanted),
            attempt=self.pending.state.attempts,
            seconds=round(self._services.clock.monotonic() - self._began_at, 4),
            prepared=self._prepared,
            usage=outcome.usage,
            rounds=outcome.rounds,
            cost=round(sum([each.cost for each in outcome.spent]), 8),
            spent=outcome.spent,
        )

    def count(self, outcome: Finished | Failed, run: Run) -> None:
        """Count how the turn ended, and log it."""
        word = outcome.reason if isinstance(outcome, Failed) else "ok"
        self._services.metrics.turns.add(1, self._persona.name, word)
        self._services.metrics.stages.observe(
            run.seconds, "turn", example=self.inbound.correlation_id
        )
        if self._services.trace is not None:
            self._trace("turn", run.seconds, word, run)
        LOG.info(
            "turn ended",
            correlation_id=self.inbound.correlation_id,
            agent=self._persona.name,
            outcome=word,
            attempt=run.attempt,
            seconds=run.seconds,
        )

    def _trace(
        self, stage: Stage, seconds: float, outcome: str = "ok", run: Run | None = None
    ) -> None:
        """Report a step to tracing."""
        trace = self._services.trace
        if trace is not None:
            trace(
                TracedStep(
                    stage=stage,
                    correlation_id=self.inbound.correlation_id,
                    seconds=seconds,
                    agent=self._persona.name,
                    turn=self.id,
                    outcome=outcome,
                    name="" if run is None else run.model,
                    model="" if run is None else run.provider,
                    usage=Usage() if run is None else run.usage,
                )
            )

    def cancel(self) -> Run | None:
        """Have the agent cancel the turn.

        Returns:
            What the turn took until now; None: nothing.
        """
        if self.is_started:
            agent = names.agent(self._persona.name)
            self._session.tell(agent, CancelTurn(self.id))
            if self._services.trace is not None:
                now = self._services.clock.monotonic()
                self._trace("turn", now - self._began_at, "cancelled")
        return self.run(self._lost()) if self._spent else None

    def call_off(self) -> None:
        """Store that the attempt does not count: the runtime ends."""
        if self.is_started:
            self._permit.keep()
        if not self._is_granted or self.is_over:  # then nothing was claimed
            return
        effect = self.pending.state.on(message_state.TurnCancelled())
        if isinstance(effect, message_state.Postpone):
            now = self._services.clock.wall()
            commit = together.as_put_off(self.pending, effect, now)
            self._services.store.submit(commit, _pass_over)

    def leave(self) -> None:
        """Release the permit and cancel all timers."""
        self.is_over = True
        self.drafts.end()
        self._watchdog.end()
        self.signals.end()
        self._permit.release()

    def _lost(self) -> Failed:
        calls = sum(each.calls for each in self._spent)
        return Failed(
            LOST_THREAD,
            "lost",
            usage=total(self._spent),
            rounds=calls,
            spent=self._spent,
        )

    @property
    def keeps_waiting(self) -> bool:
        """Whether it only waits: for people, or for a model that says nothing."""
        return self._permit.is_resting or self._watchdog.is_quiet

    def rest(self) -> None:
        """Let other turns run while this one only waits for people."""
        self._watchdog.pause()
        self._permit.rest()
        self.signals.rest()

    def resume(self, reply: Reply) -> None:
        """Answer whether the turn may go on, as soon as that is known."""
        self._watchdog.move()
        self._permit.resume(reply)
        self.signals.resume()

    def _report(self, report: TurnReport) -> TurnReport:
        self.is_over = True
        self.signals.end()
        return report

    def _granted(self) -> None:
        if not self._permit.granted():
            return
        self._is_granted = True
        now = self._services.clock.monotonic()
        self._services.metrics.stages.observe(now - self._began_at, "queue")
        if self._services.trace is not None:
            self._trace("queue", now - self._began_at)
        self._began_at = now
        self._claim()
        if not self._claim_first:
            self._start()

    def _claim(self) -> None:
        """Store that the attempt begins; a first claim that is lost does no harm."""
        note, turn_id, may_wait = self._session.note, self.id, not self._claim_first

        def done(outcome: Committed | Exception) -> None:
            if not may_wait or isinstance(outcome, Exception):
                note(ClaimDecided(turn_id, outcome))

        now, steps = self._services.clock.wall(), self._known.steps
        row = together.as_claim(self.pending, steps, now, may_wait=may_wait)
        self._services.store.submit(row, done)

    def _claimed(self, outcome: Committed | Exception) -> TurnReport | None:
        if isinstance(outcome, DuplicateError):
            self.cancel()
            return self._report(Superseded(self.pending))
        if isinstance(outcome, SequenceConflictError):
            raise outcome  # an earlier incarnation has begun it with others
        if isinstance(outcome, Exception):
            LOG.warning("start of a turn not stored", why=str(outcome))
            if not self.is_started:
                self._session.after(RETRY_CLAIM, RetryClaim(self.id))
        elif not self.is_started:
            self._start()
        return None

    def _start(self) -> None:
        self.is_started = True
        self.pending = pending = msgspec.structs.replace(self.pending, is_recorded=True)
        session = self._session
        limits = self._services.limits
        asked = self._services.hooks.sending(
            pending.inbound.address.connector, self._persona.name
        )
        seconds, question = self._persona.turn_seconds(limits), pending.asked
        if asked:
            hooks = self._services.hooks
            seconds += patience(asked)
            question = hooks.unshown(question, self._persona.name)
        self._watchdog.begin(seconds + REPORT_WITHIN)
        known = self._known
        start = StartTurn(
            turn_id=self.id,
            generation=self.generation,
            session=session.actor_ref,
            inbound=question,
            history=known.lines,
            earlier=known.earlier,
            summaries=known.summaries,
            answered=known.answered,
            steps=known.steps,
            attempt=self.pending.state.attempts,
            reported=known.reported,
            resume=known.resume,
            conversation=known.steps.rpartition("/")[0],
            may_have_steps=pending.state.may_have_steps or bool(pending.also),
            is_steered=known.is_steered,
            injected=pending.injected,
            mode=briefing.mode_of(self.inbound),
        )
        session.tell(names.agent(self._persona.name), start)

    def inject(self, injected: tuple[Inbound, ...]) -> tuple[Inbound, ...]:
        """Put messages into the turn; give all that were put into it so far."""
        self._watchdog.move()
        given = (*self.pending.injected, *injected)
        self.pending = msgspec.structs.replace(self.pending, injected=given)
        return given

    def beside(self, noted: TurnReported) -> tuple[Aside, ...]:
        """Give the notice that people get during the turn, after its words so far."""
        services, connector = self._services, self.inbound.address.connector
        is_ours = noted.turn_id == self.id and not self.is_over
        is_seen = services.accounts[connector].abilities.shows_asides
        is_told = services.presence.tells(connector, noted.status)
        if not (is_ours and is_seen and is_told):
            return ()
        if noted.status == "slow" and not self.signals.is_late():
            return ()
        self.drafts.show_now()
        aside = answers.aside(self.inbound, noted.key, noted.text, noted.status)
        return (aside,)


def _pass_over(_: object) -> None:
    """Ignore the outcome: nobody is left to tell, and no harm if the attempt counts."""
