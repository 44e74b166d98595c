"""One conversation of one agent: its history, and at most one turn at a time.

The shell of `rules/queueing.py` and `rules/message_state.py`. Everything a turn says
passes here on its way to people, and only here: drafts through the sanitiser, the
answer through the parser of markers, both committed before they are sent.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, assert_never

import msgspec

from actors import answers, attachments, attempt, consent, names
from actors.attempt import Attempt, Held
from actors.consent import Beside, Consent
from actors.history import SCHEMA, History
from actors.messages import Inbound, Line
from actors.open_messages import is_settled
from actors.outgoing import Concluded, Outgoing, RetryCommit, Stored
from actors.protocol import (
    DrainOutbox,
    Failed,
    Finished,
    Granted,
    Hear,
    StopCaused,
    TakeUp,
    TurnEnded,
    TurnSpoke,
)
from actors.rules import commands, keys, message_state, queueing, stopping
from actors.showing import DraftDue
from runtime.actor import Actor
from runtime.logs import EventLog
from runtime.mailbox import MailboxConfig

if TYPE_CHECKING:
    from actors.answers import Answer, Aside
    from actors.ledger import Run
    from actors.persona import Persona
    from actors.services import Services

LOG = EventLog("session")

BUSY = "I have too much to answer in this chat already. Please try again."
GAVE_UP = "⚠️ I tried this {count} times and could not finish it. Please ask anew."

PAGE = 1000


class BeginAgain(msgspec.Struct, frozen=True):
    """A note to itself: the wait of a message is over."""

    inbound_id: str


class Session(Actor):
    """One conversation: its history, and at most one turn at a time.

    Takes: `Hear`, `StopCaused`, `Granted`, `TurnSpoke`, `TurnNoted`, `TurnEnded`.
    Sends: `StartTurn` to its agent; rows to the store; `Deliver` and `ShowDraft` to
        the connector; `Route` for what it hands to other agents, `StopCaused` for
        what is to end there.
    Keeps: the history, rebuilt from its journal stream, and what waits.
    Fails: when somebody else wrote to its stream, or on a damaged database; what it
        held goes back into its mailbox, and the next incarnation reads anew.
    Ends: after `idle_after` seconds without a message; the next one wakes it.
    """

    mailbox: ClassVar[MailboxConfig] = MailboxConfig(capacity=1024)

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

    async def on_start(self) -> None:
        """Rebuild the history from the newest snapshot and the journal after it."""
        history, store = self._history, self._services.store
        snapshot = await store.snapshot(history.stream)
        if snapshot is not None and snapshot.schema == SCHEMA:
            history.restore(snapshot.sequence, snapshot.body)
        while True:
            events = await store.read(history.stream, history.version, PAGE)
            for event in events:
                history.replay(event.sequence, event.kind, event.body, event.at)
            if len(events) < PAGE:
                return

    def on_stop(self) -> None:
        """Give back the permit; what was not answered is still in the store."""
        if self._attempt is not None:
            self._attempt.call_off()
        self._abandon_attempt()

    def on_failure(self, *_: object, **__: object) -> None:
        """Give back what this incarnation held, oldest first."""
        current = self._attempt
        if current is not None and not (current.is_started or current.is_over):
            current.held.state.on(message_state.Returns())  # it was not even begun
        self._abandon_attempt()
        for held in reversed(tuple(self._held.values())):
            self.requeue(Hear(held.inbound, held.state.past))
        # What was stored and not sent on, should it have failed in between.
        connector = keys.parse_key(self._history.stream).connector
        self.tell(names.connector(connector), DrainOutbox())
        self.tell(names.ROUTER, TakeUp())

    def may_passivate(self) -> bool:
        """Whether nothing runs and nothing waits."""
        return self._queue.is_idle and not self._held

    def on_receive(self, message: object) -> object:
        """Take one message of the way."""
        match message:
            case Hear():
                self._hear(message)
                if self._queue.waiting and self._attempt is None:
                    return self._see_whether_it_waits()
            case StopCaused():
                self._stop_caused(message)
            case Stored() | RetryCommit():
                self._on_commit(message)
            case BeginAgain(inbound_id=inbound_id):
                self._begin_again(inbound_id)
            case (
                Granted()
                | attempt.Claimed()
                | attempt.ClaimAgain()
                | TurnSpoke()
                | DraftDue()
                | attempt.WaitedLongEnough()
                | TurnEnded()
            ):
                self._on_turn(message)
            case _ if isinstance(message, Beside):
                self._beside(message)
            case _:
                return super().on_receive(message)
        return None

    # --- hearing ----------------------------------------------------------------

    def _hear(self, hear: Hear) -> None:
        inbound = hear.inbound
        if inbound.id in self._held:
            self._hear_again(self._held[inbound.id], hear.past)
            return
        if self._history.has_answered(inbound.id):
            return  # handed in again after a restart, when it was answered already
        command: commands.Command = commands.Words()
        if not inbound.chain.agents:  # only people give commands
            command = commands.parse_command(inbound.text)
        retries = self._services.account(inbound.address.connector).retries
        state = message_state.MessageState(retries, hear.past)
        self._held[inbound.id] = Held(inbound, state)
        told = consent.told(inbound, command, self, self._services)
        if told is not None:
            self._say(inbound, told)
        elif isinstance(command, commands.Stop):
            self._stop(inbound)
        else:
            heard = queueing.Heard(inbound.id, is_owed=hear.past.was_read)
            self._effects(self._queue.on(heard))

    def _hear_again(self, held: Held, past: message_state.Past) -> None:
        """Begin at once with what waits for another attempt, if a person says so."""
        is_waiting = self._queue.current == held.inbound.id and self._attempt is None
        if is_waiting and held.state.hurry(past):
            self._begin(held, self._queue.generation)

    async def _see_whether_it_waits(self) -> None:
        """Go on at once if what waits for another attempt was dropped by hand."""
        inbound = self._held[self._queue.current or ""].inbound
        if await is_settled(self._services.store, inbound):
            self._superseded(inbound)

    def _stop(self, inbound: Inbound) -> None:
        """Stop what one person asked here, and what came of it elsewhere."""
        stop = StopCaused(inbound, self._persona.name)
        held = [each.inbound for each in self._held.values()]
        mine = frozenset(each.id for each in held if stopping.is_of(each, inbound))
        is_stopped, is_late = self._stop_these(mine, stop)
        told = stopping.told(
            is_stopped=is_stopped,
            is_late=is_late,
            is_busy=self._queue.current is not None,
            may_hand_on=bool(self._persona.colleagues),
        )
        self._say(inbound, told)
        self.tell(names.ROUTER, stop)

    def _stop_caused(self, stop: StopCaused) -> None:
        """Stop what another agent gave this one to do."""
        by, agent, origin = stop.by, stop.agent, stop.correlation_id
        held = [each.inbound for each in self._held.values()]
        caused = [x.id for x in held if stopping.is_caused(x, by, agent, origin)]
        self._stop_these(frozenset(caused), stop)

    def _stop_these(self, ids: frozenset[str], stop: StopCaused) -> tuple[bool, bool]:
        """Stop some of what is held; give whether it was, and whether one is late."""
        current = self._attempt
        is_late = current is not None and current.is_over and current.inbound.id in ids
        effects: list[queueing.Effect] = self._queue.on(queueing.StopAsked(ids))
        if current is not None and is_late:
            # Its answer is on its way to the disk, and goes out before all of this.
            self._forget_attempt()
            effects = [e for e in effects if not isinstance(e, queueing.CancelCurrent)]
            self._outgoing.stop_after(current.inbound, stop)
        self._effects(effects)
        ended = queueing.CancelCurrent | queueing.DropWaiting
        return any(isinstance(each, ended) for each in effects), is_late

    def _effects(self, effects: list[queueing.Effect]) -> None:
        for effect in effects:
            match effect:
                case queueing.Start(id=inbound_id, generation=generation):
                    self._begin(self._held[inbound_id], generation)
                case queueing.Wait():
                    pass  # its turn comes; nothing is owed before that
                case queueing.Refuse(id=inbound_id):
                    self._refuse(self._held[inbound_id].inbound)
                case queueing.CancelCurrent(id=inbound_id):
                    self._services.metrics.turn(self._persona.name, "cancelled")
                    self._abandon_attempt()
                    self._cancelled(self._held[inbound_id].inbound)
                case queueing.DropWaiting(ids=ids):
                    for inbound_id in ids:
                        self._cancelled(self._held[inbound_id].inbound)
                case _:
                    assert_never(effect)

    def _refuse(self, inbound: Inbound) -> None:
        self._put(answers.notice(inbound, BUSY, ("dropped", "busy"), "busy"))

    def _say(self, inbound: Inbound, text: str) -> None:
        self._put(answers.notice(inbound, text, ("replied", "command")))

    def _cancelled(self, inbound: Inbound) -> None:
        """Keep a cancelled message's words, and that nobody answered them."""
        self._put(answers.cancelled(inbound, self._asked(inbound)))

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
            report = current.begin(
                (*history.brought(inbound), *history.lines),
                f"{history.stream}/{inbound.id}",
                history.reported(inbound.id),
                resume=history.resume_at(now, services.sessions.resume_within),
                claim_first=effect.must_be_stored,
            )
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
        self.tell(names.connector(inbound.address.connector), DrainOutbox())
        self._after_answer(inbound)

    def _answered(self, inbound: Inbound, finished: Finished, run: Run) -> None:
        asked = self._asked(inbound, finished.heard)
        self._put(
            answers.reply(inbound, asked, finished, self._persona, self._services, run)
        )

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

    def _put(self, answer: Answer | Aside) -> None:
        self._outgoing.put(answer, self)

    def _on_commit(self, message: Stored | RetryCommit) -> None:
        """Go on after a commit, or try it again."""
        if isinstance(message, RetryCommit):
            self._outgoing.store_next(self)
        elif (concluded := self._outgoing.take(message, self)) is not None:
            self._conclude(concluded)
            self._outgoing.store_next(self)

    def _conclude(self, concluded: Concluded) -> None:
        """Count what is stored, and was sent; go on with what waited for it."""
        answer = concluded.answer
        inbound = answer.inbound
        connector = inbound.address.connector
        if concluded.is_own and answer.put_off is None:
            self._services.metrics.message(connector, answer.settled[0])
        elif concluded.was_waited_for and not concluded.is_own:
            self.tell(names.connector(connector), DrainOutbox())
        if concluded.was_waited_for and answer.put_off is None:
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

    def _abandon_attempt(self) -> None:
        """Forget an attempt before it has ended; it need not go on."""
        if self._attempt is not None:
            self._attempt.cancel()
        self._forget_attempt()

    def _asked(self, inbound: Inbound, heard: str | None = None) -> tuple[Line, ...]:
        text = attachments.unread(inbound) if heard is None else heard
        asked = Line("user", text, name=inbound.sender_name)
        return (*self._history.brought(inbound), asked)
