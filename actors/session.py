"""One conversation of one agent: its history, and at most one turn at a time.

The shell of `rules/queueing.py`. Everything a turn says passes here on its way to
people, and only here: the draft through the sanitiser, the answer through the
parser of markers, both committed before they are sent.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, assert_never

import msgspec

from actors import answers, names
from actors.answers import Exchanged
from actors.current_turn import CurrentTurn, DraftDue, WaitedLongEnough
from actors.history import History
from actors.messages import Inbound, Line
from actors.outgoing import Outgoing, RetryCommit, Stored
from actors.protocol import (
    Acquire,
    CancelTurn,
    Deliver,
    DrainOutbox,
    Failed,
    Granted,
    Hear,
    Release,
    Route,
    ShowDraft,
    StartTurn,
    TakeUp,
    TurnEnded,
    TurnSpoke,
)
from actors.rules import commands, queueing
from runtime.actor import Actor
from runtime.errors import (
    DuplicateError,
    SequenceConflictError,
    StoreUnavailableError,
)
from runtime.logs import EventLog
from runtime.mailbox import MailboxConfig

if TYPE_CHECKING:
    from actors.answers import Answer
    from actors.persona import Persona
    from actors.rules.keys import SessionKey
    from actors.services import Services
    from runtime.store import Committed

LOG = EventLog("session")

# Chosen: after the turn's own time-out a turn has this long to report before the
# session stops waiting for it.
REPORT_WITHIN = 30.0

# Chosen: seconds until a failed commit is tried again; the disk may be full for
# hours, and a try is cheap.
RETRY_COMMIT = 1.0

# Chosen: words said within 20 ms are shown together: nobody can tell, and a fast
# model would otherwise cost a message to two actors for each word.
DRAFT_PACE = 0.02

LOST = "⚠️ I had an answer, but it could not be stored. Please ask again."

PAGE = 1000


class Session(Actor):
    """One conversation: its history, and at most one turn at a time.

    Takes: `Hear`, `Granted`, `TurnSpoke`, `TurnEnded`.
    Sends: `StartTurn` to its agent; rows to the store; `Deliver` and `ShowDraft` to
        the connector; `Route` for what it hands to other agents.
    Keeps: the history, rebuilt from its journal stream, and what waits.
    Fails: when somebody else wrote to its stream, or on a damaged database; what it
        held goes back into its mailbox, and the next incarnation reads anew.
    Ends: after `idle_after` seconds without a message; the next one wakes it.
    """

    mailbox: ClassVar[MailboxConfig] = MailboxConfig(capacity=1024)

    def __init__(self, key: SessionKey, persona: Persona, services: Services) -> None:
        super().__init__()
        self._key = key
        self._persona = persona
        self._services = services
        self._queue = queueing.SessionQueue(services.limits.max_waiting)
        self._held: dict[str, Inbound] = {}
        self._turn: CurrentTurn | None = None
        self._history = History(persona.config.max_history)
        self._outgoing = Outgoing(key.text, self._history, services, self.note)

    async def on_start(self) -> None:
        """Rebuild the history from the journal."""
        history, store = self._history, self._services.store
        while True:
            events = await store.read(self._key.text, history.version, PAGE)
            for event in events:
                exchanged = msgspec.json.decode(event.body, type=Exchanged)
                history.add(event.sequence, exchanged.inbound_id, exchanged.lines)
            if len(events) < PAGE:
                return

    def on_stop(self) -> None:
        """Give back the permit; what was not answered is still in the store."""
        self._abandon_turn()

    def on_failure(self, *_: object, **__: object) -> None:
        """Give back what this incarnation held, oldest first."""
        self._abandon_turn()
        for inbound in reversed(tuple(self._held.values())):
            self.requeue(Hear(inbound))
        # What was stored and not sent on, should it have failed in between.
        self.tell(names.connector(self._key.connector), DrainOutbox())
        self.tell(names.ROUTER, TakeUp())

    def may_passivate(self) -> bool:
        """Whether nothing runs and nothing waits."""
        return self._queue.is_idle and not self._held

    def on_receive(self, message: object) -> None:
        """Take one message of the way."""
        match message:
            case Hear(inbound=inbound):
                self._hear(inbound)
            case Granted(turn_id=turn_id):
                self._granted(turn_id)
            case TurnSpoke(turn_id=turn_id, text=text):
                self._spoke(turn_id, text)
            case TurnEnded():
                self._turn_ended(message)
            case Stored():
                self._stored(message)
            case _:
                self._on_timer(message)

    def _on_timer(self, message: object) -> None:
        match message:
            case DraftDue(turn_id=turn_id):
                self._draft_due(turn_id)
            case RetryCommit():
                self._outgoing.store_next()
            case WaitedLongEnough(turn_id=turn_id):
                outcome = Failed("⚠️ I lost the thread. Please ask again.", "lost")
                self._turn_ended(TurnEnded(turn_id, outcome))
            case _:
                super().on_receive(message)

    # --- hearing ----------------------------------------------------------------

    def _hear(self, inbound: Inbound) -> None:
        if inbound.id in self._held or self._history.has_answered(inbound.id):
            return  # handed in again after a restart; it has its place, or had it
        command: commands.Command = commands.Words()
        if not inbound.chain.agents:  # only people give commands
            command = commands.parse_command(inbound.text)
        self._held[inbound.id] = inbound
        match command:
            case commands.Words():
                self._effects(self._queue.on(queueing.Heard(inbound.id)))
            case commands.Stop():
                self._stop(inbound)
            case commands.Help():
                self._say(inbound, commands.help_text())
            case commands.UnknownCommand(text=text):
                self._say(inbound, text)
            case _:
                assert_never(command)

    def _stop(self, inbound: Inbound) -> None:
        ending = self._turn if self._turn is not None and self._turn.is_ending else None
        effects = self._queue.on(queueing.StopAsked())
        if ending is not None:
            # Its answer is on its way to the disk, and goes out before all of this.
            self._forget_turn()
            effects = [e for e in effects if not isinstance(e, queueing.CancelCurrent)]
        self._effects(effects)
        if effects:
            self._say(inbound, "Stopped.")
        elif ending is not None:
            self._say(inbound, "Too late: the answer is on its way.")
        else:
            self._say(inbound, "There is nothing to stop.")

    def _effects(self, effects: list[queueing.Effect]) -> None:
        for effect in effects:
            match effect:
                case queueing.Start(id=inbound_id, generation=generation):
                    self._begin(self._held[inbound_id], generation)
                case queueing.Wait():
                    pass  # its turn comes; nothing is owed before that
                case queueing.Refuse(id=inbound_id):
                    self._refuse(self._held[inbound_id])
                case queueing.CancelCurrent(id=inbound_id):
                    self._services.metrics.turn(self._key.agent, "cancelled")
                    self._abandon_turn()
                    self._cancelled(self._held[inbound_id])
                case queueing.DropWaiting(ids=ids):
                    for inbound_id in ids:
                        self._cancelled(self._held[inbound_id])
                case _:
                    assert_never(effect)

    def _refuse(self, inbound: Inbound) -> None:
        text = "I have too much to answer in this chat already. Please try again."
        self._outgoing.put(answers.notice(inbound, text, ("dropped", "busy")))

    def _say(self, inbound: Inbound, text: str) -> None:
        self._outgoing.put(answers.notice(inbound, text, ("replied", "command")))

    def _cancelled(self, inbound: Inbound) -> None:
        """Keep a cancelled message's words, and that nobody answered them."""
        self._outgoing.put(answers.cancelled(inbound, self._asked(inbound)))

    # --- one turn ---------------------------------------------------------------

    def _begin(self, inbound: Inbound, generation: int) -> None:
        now = self._services.clock.monotonic()
        turn_id = self._services.ids.new()
        self._turn = turn = CurrentTurn(turn_id, inbound, generation, now)
        wanted = Acquire(self.actor_urn, turn.id, self.actor_ref)
        if not self.tell(names.LIMITER, wanted):
            outcome = Failed("⚠️ I am being restarted. Please ask again.", "limiter")
            self._turn_ended(TurnEnded(turn.id, outcome))

    def _granted(self, turn_id: str) -> None:
        turn = self._turn
        if turn is None or turn.id != turn_id or turn.is_granted:
            return  # stopped while it waited, and then the permit was given back
        turn.is_granted = True
        now = self._services.clock.monotonic()
        self._services.metrics.stage("queue", now - turn.began_at)
        turn.began_at = now
        seconds = self._services.limits.turn_timeout + REPORT_WITHIN
        turn.patience = self.after(seconds, WaitedLongEnough(turn_id))
        start = StartTurn(
            turn_id=turn_id,
            generation=turn.generation,
            session=self.actor_ref,
            inbound=turn.inbound,
            history=(*self._history.brought(turn.inbound), *self._history.lines),
        )
        self.tell(names.agent(self._key.agent), start)

    def _spoke(self, turn_id: str, text: str) -> None:
        turn = self._turn
        if turn is None or turn.id != turn_id or turn.is_ending:
            return  # a stopped turn's last words are nobody's business
        turn.hear(text)
        if turn.unshown and turn.next_draft is None:
            self._show_draft(turn)

    def _draft_due(self, turn_id: str) -> None:
        """Show what was said since the last draft."""
        turn = self._turn
        if turn is None or turn.id != turn_id:
            return
        turn.next_draft = None
        if turn.unshown:
            self._show_draft(turn)

    def _show_draft(self, turn: CurrentTurn) -> None:
        draft = turn.take_draft(self._key.agent)
        self.tell(names.connector(draft.address.connector), ShowDraft(draft))
        turn.next_draft = self.after(DRAFT_PACE, DraftDue(turn.id))

    def _turn_ended(self, ended: TurnEnded) -> None:
        turn = self._turn
        if turn is None or turn.id != ended.turn_id or turn.is_ending:
            return  # stopped, or given up, before it reported
        turn.is_ending = True
        services, outcome = self._services, ended.outcome
        seconds = services.clock.monotonic() - turn.began_at
        word = outcome.reason if isinstance(outcome, Failed) else "ok"
        services.metrics.turn(self._key.agent, word)
        services.metrics.stage("turn", seconds)
        LOG.info(
            "turn ended",
            correlation_id=turn.inbound.correlation_id,
            agent=self._key.agent,
            outcome=word,
            seconds=round(seconds, 4),
        )
        asked = self._asked(turn.inbound)
        if isinstance(outcome, Failed):
            self._cancel_turn(turn)  # should it run all the same
            answer = answers.failure(turn.inbound, asked, outcome)
        else:
            answer = answers.reply(
                turn.inbound, asked, outcome, self._persona, services
            )
        self._outgoing.put(answer)

    # --- what is said ------------------------------------------------------------

    def _stored(self, stored: Stored) -> None:
        """Go on after a commit."""
        answer, outcome = stored.answer, stored.outcome
        if not self._outgoing.is_next(answer):
            self._stored_before(answer, outcome)
        elif isinstance(outcome, StoreUnavailableError):
            LOG.warning("answer waits for the disk", error_text=str(outcome))
            self.after(RETRY_COMMIT, RetryCommit())
        elif isinstance(outcome, SequenceConflictError):
            raise outcome
        elif isinstance(outcome, Exception) and not isinstance(outcome, DuplicateError):
            self._cannot_store(answer, outcome)
        else:
            self._outgoing.drop_next()
            self._conclude(answer, outcome)
            self._outgoing.store_next()

    def _cannot_store(self, answer: Answer, error: Exception) -> None:
        """Say that an answer is lost which can never be stored.

        Asking the model again would end the same way. If not even that can be said,
        the message stays unsettled for the next start.
        """
        inbound = answer.inbound
        LOG.fault("answer not stored", error, correlation_id=inbound.correlation_id)
        if answer.settled[0] != "dead":
            lost = answers.notice(inbound, LOST, ("dead", "not_stored"))
            self._outgoing.replace_next(lost)
            return
        self._outgoing.drop_next()
        self._held.pop(inbound.id, None)
        self._after_answer(inbound)
        self._outgoing.store_next()

    def _stored_before(self, answer: Answer, outcome: Committed | Exception) -> None:
        """Send what an earlier incarnation stored.

        The same message may be held by this one, too; then its answer turns out to be
        stored when it is stored again.
        """
        if not isinstance(outcome, Exception):
            self._take_up(answer, outcome)
            self._send(answer)

    def _conclude(self, answer: Answer, outcome: Committed | Exception) -> None:
        """Send what is stored now; go on with what waited for it."""
        inbound = answer.inbound
        self._held.pop(inbound.id, None)
        if isinstance(outcome, Exception):
            # An earlier incarnation, or an earlier process, stored this answer; what
            # it could not send stands in the outbox.
            self._history.note_answered(inbound.id)
            self.tell(names.connector(inbound.address.connector), DrainOutbox())
        else:
            self._take_up(answer, outcome)
            self._send(answer)
        self._after_answer(inbound)

    def _take_up(self, answer: Answer, committed: Committed) -> None:
        """Add to the history what was stored, unless it was read from the journal."""
        if committed.sequences:
            self._history.add(committed.sequences[-1], answer.inbound.id, answer.lines)
        else:
            self._history.note_answered(answer.inbound.id)

    def _send(self, answer: Answer) -> None:
        inbound = answer.inbound
        self._services.metrics.message(inbound.address.connector, answer.settled[0])
        for delivery in answer.deliveries:
            self.tell(names.connector(inbound.address.connector), Deliver(delivery))
        for handed in answer.handed:
            self.tell(names.ROUTER, Route(handed))

    def _after_answer(self, inbound: Inbound) -> None:
        turn = self._turn
        if turn is None or turn.inbound.id != inbound.id:
            return
        self._forget_turn()
        ended = queueing.TurnEnded(inbound.id, turn.generation)
        self._effects(self._queue.on(ended))

    def _forget_turn(self) -> None:
        turn, self._turn = self._turn, None
        if turn is not None:
            turn.cancel_timers()
            self.tell(names.LIMITER, Release(self.actor_urn))

    def _abandon_turn(self) -> None:
        """Forget a turn before it has ended; it need not go on."""
        if self._turn is not None:
            self._cancel_turn(self._turn)
        self._forget_turn()

    def _cancel_turn(self, turn: CurrentTurn) -> None:
        if turn.is_granted:
            self.tell(names.agent(self._key.agent), CancelTurn(turn.id))

    def _asked(self, inbound: Inbound) -> tuple[Line, ...]:
        asked = Line("user", inbound.text, name=inbound.sender_name)
        return (*self._history.brought(inbound), asked)
