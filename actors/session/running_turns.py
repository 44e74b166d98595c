"""The turns of a session that run: one that others wait for, and those set aside.

Begins attempts, and makes of each report what the session is to do next: store an
answer, begin the turn again later, or pass over a message that is settled already.

`Outcomes` says what settles the messages of a turn, by how it ended: answered, put off,
given up, stopped or interrupted; or refused or dropped, for want of a place. Each of
these becomes one `Answer`, which the outbox stores and sends.
"""

from __future__ import annotations

import msgspec

from actors.agents.persona import Persona
from actors.journal import answers
from actors.journal.answers import (
    Answer,
    Aside,
    PendingMessage,
    combined,
    said_meanwhile,
)
from actors.journal.history import History, Reset
from actors.messages import busy_policies, state as message_state
from actors.messages.inbound import ALONE, Inbound, TranscriptLine
from actors.messages.usage import Run
from actors.protocol import ApprovalDecided, Failed, Finished
from actors.rules.prompt.untrusted import sender_of
from actors.services import Services
from actors.session import attempt as attempts, reply_windows
from actors.session.attempt import Attempt, Superseded
from actors.session.consent import ApprovalExpired, ApprovalRequests, Beside
from actors.session.initiative import settle_decision
from actors.turn import files as attachments
from runtime.actor.actor import Actor

BUSY = "I have too much to answer in this chat already. Please try again."
DROPPED = (
    "⚠️ Too much came in at once, so I let the oldest go: “{words}”. While more waits,"
    " the oldest goes first. Please send again what I do not answer."
)
GAVE_UP = "⚠️ I tried this {count} times and could not finish it. Please ask anew."


def as_read(pending: PendingMessage, outcome: Finished | Failed) -> PendingMessage:
    """Leave out messages put into a turn that never read them; they get their own."""
    read = tuple([x for x in pending.injected if x.id in outcome.joined])
    return msgspec.structs.replace(pending, injected=read)


class Outcomes(msgspec.Struct, eq=False):
    """Writes the answers of one conversation's turns."""

    _history: History
    _persona: Persona
    _services: Services

    def finished(self, pending: PendingMessage, finished: Finished, run: Run) -> Answer:
        """Answer with what the model said."""
        inbound = pending.inbound
        asked = self._asked(pending, finished.heard)
        if inbound.occasion in ALONE:  # the model goes on elsewhere
            finished = msgspec.structs.replace(finished, resume="")
        persona, services = self._persona, self._services
        if inbound.occasion == "autonomous":
            made = (services.ids, services.clock.wall())
            return settle_decision(inbound, finished, persona, made, run)
        if finished.is_withheld:
            withheld = answers.withheld(inbound, asked, finished, persona, run)
            return combined(withheld, pending)
        answer = answers.reply(pending.asked, asked, finished, persona, services, run)
        answer = msgspec.structs.replace(answer, inbound=inbound)
        if finished.carried.ends:
            ends = Reset(
                id=services.ids.new(),
                reason="model",
                messages=self._history.said + len(answer.lines),
                sender_id=inbound.sender_id,
            )
            answer = msgspec.structs.replace(answer, ends=ends)
        return combined(reply_windows.with_window(answer, persona), pending)

    def given_up(
        self,
        pending: PendingMessage,
        failed: Failed | None,
        given_up: message_state.GiveUp,
        run: Run | None,
    ) -> Answer:
        """Say that there is no answer.

        Args:
            failed: how the turn ended; None: none was begun, all attempts are used up.
            run: what the turn took, if one was begun.
        """
        if failed is None:
            text = GAVE_UP.format(count=pending.state.attempts)
            failed = Failed(text, given_up.reason)
        settled = (given_up.state, given_up.reason)
        asked = self._asked(pending)
        now = self._services.clock.wall()
        answer = answers.failure(pending.inbound, asked, failed, settled, now, run)
        return combined(answer, pending)

    def stopped(self, pending: PendingMessage, run: Run | None = None) -> Answer:
        """Keep a stopped message's words, and that nobody answered them.

        A stopped command leaves nothing in the conversation.
        """
        inbound = pending.inbound
        if pending.told:
            return answers.notice(inbound, "(stopped)", ("cancelled", "stopped"))
        return combined(answers.cancelled(inbound, self._asked(pending), run), pending)

    def interrupted(self, pending: PendingMessage, run: Run | None) -> Answer:
        """Keep words whose turn newer words of their sender have ended."""
        return answers.interrupted(pending, self._asked(pending), run)

    def _asked(
        self, pending: PendingMessage, heard: str | None = None
    ) -> tuple[TranscriptLine, ...]:
        """Give what was asked as lines of the history."""
        inbound = pending.inbound
        text = attachments.named_only(pending.asked) if heard is None else heard
        everybody = self._persona.everybody
        asked = TranscriptLine("user", text, name=sender_of(inbound, everybody))
        brought = self._history.brought(inbound)
        return (*brought, asked, *said_meanwhile(pending.injected, everybody))


def refused(inbound: Inbound) -> Answer:
    """Say that a message finds no place in the queue."""
    return answers.notice(inbound, BUSY, ("dropped", "busy"), "busy")


def dropped(inbound: Inbound) -> Answer:
    """Say that a message was let go because too many waited."""
    words = busy_policies.shortened(inbound.text) or "…"
    text = DROPPED.format(words=words)
    return answers.notice(inbound, text, ("dropped", "overflow"), "busy")


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
