"""Takes one turn after the other, and puts what comes of each on its way to people.

The lower half of a session: what was heard stands in the queue already; here it is
begun, reported, stored and sent. Everything a turn says passes here on its way to
people, and only here: drafts through the sanitiser, the answer through the parser of
markers, both committed before they are sent.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, assert_never

import msgspec

from actors import (
    acknowledgement,
    answers,
    attachments,
    attempt,
    names,
    reply_windows,
)
from actors.attempt import Attempt
from actors.chapters import Reset
from actors.consent import Beside, Consent
from actors.held import Held, Known
from actors.history import History
from actors.messages import Inbound, Line
from actors.outgoing import Concluded, Entered, Outgoing, RetryCommit, Said, Stored
from actors.protocol import DrainOutbox, Failed, Finished
from actors.rules import message_state, queueing
from runtime.actor import Actor

if TYPE_CHECKING:
    from actors.ledger import Run
    from actors.persona import Persona
    from actors.services import Services

BUSY = "I have too much to answer in this chat already. Please try again."
ALONE = frozenset({"cron", "heartbeat"})
"""What comes again and again is told nothing of the conversation: cheap (F294)."""

GAVE_UP = "⚠️ I tried this {count} times and could not finish it. Please ask anew."


class BeginAgain(msgspec.Struct, frozen=True):
    """A note to itself: the wait of a message is over."""

    inbound_id: str


class TurnTaker(Actor):
    """At most one turn at a time, and the answers on their way to the disk.

    Args:
        key: names the conversation, and its journal stream.
        persona: who answers.
        services: store, clock, counts, limits.
    """

    def __init__(self, key: str, persona: Persona, services: Services) -> None:
        super().__init__()
        self._persona = persona
        self._services = services
        self._queue = queueing.SessionQueue(services.limits.max_waiting)
        self._held: dict[str, Held] = {}
        self._consent: Consent | None = None  # most conversations ask for nothing
        self._attempt: Attempt | None = None
        self._history = History(key, persona.config.max_history)
        self._outgoing = Outgoing(self._history, services)

    def _effects(self, effects: list[queueing.Effect]) -> None:
        for effect in effects:
            match effect:
                case queueing.Start(id=inbound_id, generation=generation):
                    self._acknowledge(inbound_id)
                    self._begin(self._held[inbound_id], generation)
                case queueing.Wait(id=inbound_id):
                    self._acknowledge(inbound_id)  # its turn comes
                case queueing.Refuse(id=inbound_id):
                    self._refuse(self._held[inbound_id].inbound)
                case queueing.CancelCurrent(id=inbound_id):
                    self._services.metrics.turn(self._persona.name, "cancelled")
                    run = self._abandon_attempt()
                    self._cancelled(self._held[inbound_id].inbound, run)
                case queueing.DropWaiting(ids=ids):
                    for inbound_id in ids:
                        self._cancelled(self._held[inbound_id].inbound)
                case _:
                    assert_never(effect)

    def _acknowledge(self, inbound_id: str) -> None:
        inbound = self._held[inbound_id].inbound
        acknowledgement.received(inbound, self._persona.name, self, self._services)

    def _refuse(self, inbound: Inbound) -> None:
        self._put(answers.notice(inbound, BUSY, ("dropped", "busy"), "busy"))

    def _say(self, inbound: Inbound, text: str) -> None:
        self._put(answers.notice(inbound, text, ("replied", "command")))

    def _cancelled(self, inbound: Inbound, run: Run | None = None) -> None:
        """Keep a cancelled message's words, and that nobody answered them."""
        self._put(answers.cancelled(inbound, self._asked(inbound), run))

    # --- one turn ---------------------------------------------------------------

    def _begin(self, held: Held, generation: int) -> None:
        services = self._services
        now = services.clock.wall()
        effect = held.state.on(message_state.Begins(now))
        if isinstance(effect, message_state.WaitUntil):
            self._begin_later(held, effect.due_at)
            return
        self._attempt = current = Attempt(
            services.ids.new(), held, generation, self, self._persona, services
        )
        if isinstance(effect, message_state.BeginAttempt):
            history, inbound = self._history, held.inbound
            known = Known(
                steps=f"{history.stream}/{inbound.id}",
                reported=history.reported(inbound.id),
                answered=history.answered,
            )
            if inbound.occasion not in ALONE:
                known = msgspec.structs.replace(
                    known,
                    lines=(*history.brought(inbound), *history.lines),
                    earlier=history.earlier,
                    summaries=tuple(each.text for each in history.summaries),
                    resume=history.resume_at(now, services.sessions.resume_within),
                )
            report = current.begin(known, claim_first=effect.must_be_stored)
            if report is not None:
                self._reported(current, report)
        elif isinstance(effect, message_state.GiveUp):
            current.is_over = True
            failed = Failed(GAVE_UP.format(count=held.state.attempts), effect.reason)
            self._give_up(held.inbound, failed, effect, None)

    def _begin_again(self, inbound_id: str) -> None:
        if self._queue.current == inbound_id and self._attempt is None:
            self._begin(self._held[inbound_id], self._queue.generation)

    def _begin_later(self, held: Held, due_at: float) -> None:
        wait = max(0.0, due_at - self._services.clock.wall())
        self.after(wait, BeginAgain(held.inbound.id))

    def _on_turn(self, message: attempt.Message) -> None:
        current = self._attempt
        if current is None or current.id != message.turn_id:
            return  # stopped, or given up; its last words are nobody's business
        if (report := current.on(message)) is not None:
            self._reported(current, report)

    def _beside(self, message: Beside) -> None:
        """Tell people something beside the answer that is being written."""
        asking = self._consent = self._consent or Consent(self._persona, self._services)
        for said in asking.receive(message, self._attempt, self):
            self._put(said)

    def _reported(self, current: Attempt, report: attempt.Report) -> None:
        inbound = current.inbound
        if isinstance(report, attempt.Superseded):
            self._superseded(inbound)
            return
        run = current.run(report)
        current.count(report, run)
        if isinstance(report, Failed):
            self._failed(current, report, run)
        else:
            self._answered(inbound, report, run)

    def _superseded(self, inbound: Inbound) -> None:
        """Go on after a message that somebody else has settled."""
        self._history.note_answered(inbound.id)
        acknowledgement.withdrawn(inbound, self._persona.name, self, self._services)
        self.tell(names.connector(inbound.address.connector), DrainOutbox())
        self._after_answer(inbound)

    def _answered(self, inbound: Inbound, finished: Finished, run: Run) -> None:
        asked = self._asked(inbound, finished.heard)
        if inbound.occasion in ALONE:  # the model goes on elsewhere
            finished = msgspec.structs.replace(finished, resume="")
        persona, services = self._persona, self._services
        answer = answers.reply(inbound, asked, finished, persona, services, run)
        if finished.carried.ends:
            ends = Reset(
                id=services.ids.new(),
                reason="model",
                messages=self._history.said + len(answer.lines),
                sender_id=inbound.sender_id,
            )
            answer = msgspec.structs.replace(answer, ends=ends)
        self._put(reply_windows.opened(answer, persona))

    def _failed(self, current: Attempt, failed: Failed, run: Run) -> None:
        now = self._services.clock.wall()
        effect = current.held.state.on(attempt.as_fails(failed, now))
        if isinstance(effect, message_state.PutOff):
            answer = answers.deferral(current.inbound, failed, effect, now, run)
            self._put(answers.with_new_ids(answer, self._services.ids))
            self._forget_attempt()
            self._begin_later(current.held, effect.due_at)
        elif isinstance(effect, message_state.GiveUp):
            self._give_up(current.inbound, failed, effect, run)

    def _give_up(
        self,
        inbound: Inbound,
        failed: Failed,
        given_up: message_state.GiveUp,
        run: Run | None,
    ) -> None:
        settled = (given_up.state, given_up.reason)
        asked = self._asked(inbound)
        answer = answers.failure(inbound, asked, failed, settled, run)
        if given_up.state == "dead":  # it may be tried again by hand
            answer = answers.with_new_ids(answer, self._services.ids)
        self._put(answer)

    # --- what is said ------------------------------------------------------------

    def _put(self, answer: Said) -> None:
        self._outgoing.put(answer, self)

    def _on_commit(self, message: Stored | RetryCommit) -> None:
        """Go on after a commit, or try it again."""
        if isinstance(message, RetryCommit):
            self._outgoing.store_next(self)
        elif (concluded := self._outgoing.take(message, self)) is not None:
            if isinstance(concluded, Entered):
                self._entered(concluded)
            else:
                self._conclude(concluded)
            self._outgoing.store_next(self)

    def _entered(self, entered: Entered) -> None:
        """Go on after something in the journal that answers nobody."""

    def _conclude(self, concluded: Concluded) -> None:
        """Count what is stored, and was sent; go on with what waited for it."""
        answer = concluded.answer
        inbound = answer.inbound
        connector = inbound.address.connector
        if concluded.is_own and answer.put_off is None:
            self._services.metrics.message(connector, answer.settled[0])
            now = self._services.clock.wall()
            replied = reply_windows.told(answer, self._persona.name, now)
            if replied is not None:
                self.tell(names.ROUTER, replied)
        elif concluded.was_waited_for and not concluded.is_own:
            self.tell(names.connector(connector), DrainOutbox())
        if concluded.was_waited_for and answer.put_off is None:
            held = self._held.get(inbound.id)
            begun = 0 if held is None else held.state.attempts
            agent = self._persona.name
            acknowledgement.concluded(answer, begun, agent, self, self._services)
            self._after_answer(inbound)

    def _after_answer(self, inbound: Inbound) -> None:
        # A dict that was emptied is three times as large as an empty one.
        self._held = {k: each for k, each in self._held.items() if k != inbound.id}
        if self._queue.current == inbound.id:
            self._forget_attempt()
            ended = queueing.TurnEnded(inbound.id, self._queue.generation)
            self._effects(self._queue.on(ended))

    def _forget_attempt(self) -> None:
        current, self._attempt = self._attempt, None
        if current is not None:
            if self._consent is not None:
                self._consent.forget(current.id)
            current.leave()

    def _abandon_attempt(self) -> Run | None:
        """Forget an attempt before it has ended; give what it took until now."""
        run = None if self._attempt is None else self._attempt.cancel()
        self._forget_attempt()
        return run

    def _asked(self, inbound: Inbound, heard: str | None = None) -> tuple[Line, ...]:
        text = attachments.unread(inbound) if heard is None else heard
        asked = Line("user", text, name=inbound.sender_name)
        return (*self._history.brought(inbound), asked)
