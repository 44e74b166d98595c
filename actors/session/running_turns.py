"""The turns of a session that run: one that others wait for, and those set aside.

Begins attempts, and makes of each report what the session is to do next: store an
answer, begin the turn again later, or pass over a message that is settled already.
"""

from __future__ import annotations

import msgspec

from actors.agents.persona import Persona
from actors.journal import answers
from actors.journal.answers import Aside, PendingMessage, combined
from actors.journal.history import History
from actors.messages import state as message_state
from actors.messages.inbound import Inbound
from actors.protocol import ApprovalDecided, Failed
from actors.services import Services
from actors.session import attempt as attempts
from actors.session.attempt import Attempt, Superseded
from actors.session.consent import ApprovalExpired, ApprovalRequests, Beside
from actors.session.outcomes import Outcomes, as_read
from runtime.actor.actor import Actor


class RetryAt(msgspec.Struct, frozen=True):
    """Begin the turn of a message again at this time."""

    inbound_id: str
    due_at: float
    """Unix seconds."""

    answer: answers.Answer | None = None
    """Stored before; None: the wait was stored earlier."""


TurnStep = answers.Answer | RetryAt | Superseded


class RunningTurns:
    """The attempts that run in a session, and their questions to people."""

    __slots__ = ("_approvals", "_history", "_services", "attempts")

    def __init__(self, history: History, services: Services) -> None:
        self._history = history
        self._services = services
        # Most conversations never ask.
        self._approvals: ApprovalRequests | None = None
        self.attempts: tuple[Attempt, ...] = ()
        """In the order in which they began; at most one for each message."""

    def of(self, inbound_id: str | None) -> Attempt | None:
        """Give the attempt at a message's turn; None: none runs."""
        for each in self.attempts:
            if each.inbound.id == inbound_id:
                return each
        return None

    def by_id(self, turn_id: str) -> Attempt | None:
        """Give an attempt; None: it is over, and its answer stored."""
        return next((each for each in self.attempts if each.id == turn_id), None)

    def is_late_for(self, inbound: Inbound) -> bool:
        """Whether a turn of a message's sender has its answer already."""
        whose = inbound.sender_id
        mine = [x.is_over for x in self.attempts if x.inbound.sender_id == whose]
        return any(mine)

    def begin(
        self,
        pending: PendingMessage,
        generation: int,
        session: Actor,
        persona: Persona,
        *,
        is_steered: bool,
    ) -> TurnStep | None:
        """Begin the turn of a message, if it is due and has attempts left.

        Args:
            generation: as in the queue's `BeginTurn`.
            is_steered: whether messages that come during the turn are put into it.
        """
        services, inbound = self._services, pending.inbound
        now = services.clock.wall()
        effect = pending.state.on(message_state.TurnDue(now))
        if isinstance(effect, message_state.WaitUntil):
            return RetryAt(inbound.id, effect.due_at)
        is_alone = not self.attempts
        current = Attempt(
            services.ids.new(), pending, generation, session, persona, services
        )
        self.attempts = (*self.attempts, current)
        if isinstance(effect, message_state.BeginAttempt):
            within = services.sessions.resume_within
            known = attempts.known_of(
                self._history, inbound, now, within, is_steered=is_steered
            )
            if not is_alone:  # nor does a model that keeps the conversation itself
                known = msgspec.structs.replace(known, resume="")
            must_be_stored = effect.must_be_stored or bool(pending.others)
            report = current.begin(known, claim_first=must_be_stored)
            return None if report is None else self._on_report(current, report, persona)
        if isinstance(effect, message_state.GiveUp):
            current.is_over = True
            return self._outcomes(persona).given_up(pending, None, effect, None)
        return None

    def on(self, message: attempts.TurnMessage, persona: Persona) -> TurnStep | None:
        """Pass a message to the attempt; messages of other attempts are ignored."""
        for current in self.attempts:  # mostly one, and asked at each of its words
            if current.id == message.turn_id:
                report = current.on(message)
                if report is not None:
                    return self._on_report(current, report, persona)
        return None

    def on_side_message(
        self, message: Beside, session: Actor, persona: Persona
    ) -> tuple[Aside, ...]:
        """Take a notice, a question or a decision beside the answer of the turn."""
        if self._approvals is None:
            self._approvals = ApprovalRequests(persona, self._services)
        if isinstance(message, ApprovalDecided | ApprovalExpired):
            return self._approvals.receive(message, None, session)
        return self._approvals.receive(message, self.by_id(message.turn_id), session)

    def drop(self, current: Attempt) -> PendingMessage:
        """Drop an attempt; give its message with what was put into the turn."""
        self.attempts = tuple([each for each in self.attempts if each is not current])
        if self._approvals is not None:
            self._approvals.forget(current.id)
        current.leave()
        return current.pending

    def _outcomes(self, persona: Persona) -> Outcomes:
        return Outcomes(self._history, persona, self._services)

    def _on_report(
        self, current: Attempt, report: attempts.TurnReport, persona: Persona
    ) -> TurnStep | None:
        if isinstance(report, Superseded):
            return report
        run = current.run(report)
        current.count(report, run)
        outcomes = self._outcomes(persona)
        if not isinstance(report, Failed):
            pending = current.pending = as_read(current.pending, report)
            return outcomes.finished(pending, report, run)
        now, pending = self._services.clock.wall(), current.pending
        effect = pending.state.on(attempts.as_fails(report, now))
        if isinstance(effect, message_state.Postpone):
            answer = answers.deferral(pending.inbound, report, effect, now, run)
            return RetryAt(pending.inbound.id, effect.due_at, combined(answer, pending))
        if isinstance(effect, message_state.GiveUp):
            pending = current.pending = as_read(pending, report)
            return outcomes.given_up(pending, report, effect, run)
        return None
