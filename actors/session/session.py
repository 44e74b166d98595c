"""One conversation of one agent: its history, and one turn at a time.

A turn that only waits is set aside, and others run beside it.

The session takes messages and carries out what its parts decide:

- `queue.py` says whose turn it is; `line.py` keeps the messages that are not settled;
- `running_turns.py` holds the turns that run, and makes the answer that settles each;
- `attempt.py` is one of them;
- `outbox.py` stores each answer, one after the other, and then sends it;
- `lifecycle.py` shortens the conversation and ends it;
- `consent.py` asks people whether a tool may run;
- `actors/hooks/asker.py` has hooks asked about a message that is about to be heard.

Everything that a turn says to people passes through the session: drafts through the
sanitiser, the answer through the parser of markers and the store.
"""

from __future__ import annotations

from collections.abc import Awaitable, Iterable
from typing import ClassVar, assert_never

import msgspec

from actors import names
from actors.agents.agent import SessionStarted
from actors.agents.messages import PersonaReplaced
from actors.agents.persona import Persona
from actors.commands import dispatch as desk, registry
from actors.hooks.asker import HookedMessage, SessionHooks
from actors.hooks.book import HooksAnswered
from actors.journal import answers
from actors.journal.answers import PendingMessage, without
from actors.journal.history import History, read_history
from actors.journal.unsettled import is_settled, settled_among
from actors.messages import commands, keys, state as message_state
from actors.messages.inbound import Inbound
from actors.messages.keys import account_of
from actors.messages.usage import Run
from actors.outbound import reactions
from actors.protocol import (
    CheckHeard,
    DrainOutbox,
    Hear,
    NotHeard,
    ReleasePermit,
    RouteUnanswered,
    ShortenPrompt,
    StopDelegated,
    TurnPaused,
)
from actors.schedule.occasions import LANES
from actors.services import Services
from actors.session import consent, queue as queueing, running_turns, stop as stopping
from actors.session.attempt import Attempt, Superseded, TurnMessage
from actors.session.consent import Beside
from actors.session.initiative import OWN_WORDS
from actors.session.lifecycle import BeginWaiting, Lifecycle, PastMessage, Step
from actors.session.line import SessionLine
from actors.session.outbox import (
    AnswerConcluded,
    AnswerContested,
    CommitDecided,
    EntryConcluded,
    OutboxItem,
    SessionOutbox,
    StoreAgain,
)
from actors.session.running_turns import Outcomes, RetryAt, RunningTurns, TurnStep
from actors.session.watchdog import CheckTurn, CheckTurnEnded, check_turn_ended
from actors.turn.steering import FetchSteering
from runtime.actor.actor import Actor
from runtime.actor.mailbox import MailboxConfig

NEXT = "Got it, I'll get to this next."

BEGIN_AGAIN_AFTER = 1.0
"""Seconds until a turn begins again without messages that somebody else settled."""

CONTEST_AGAIN_AFTER = 1.0
"""Seconds until the disk is asked again which messages of an answer are settled."""

PLACE_AGAIN_AFTER = 1.0
"""Seconds until the disk is asked again which messages shared a turn."""


class RetryTurn(msgspec.Struct, frozen=True):
    """Timer of a session: begin the turn of this message again."""

    inbound_id: str


class PlaceAgain(msgspec.Struct, frozen=True):
    """Timer of a session: read again which messages shared a turn, and place them."""


class Session(Actor):
    """One conversation: its history, and one turn at a time but for those that wait.

    Takes: `Hear`, `CheckHeard` and `StopDelegated` from the router; `PermitGranted`
        from the limiter; `TurnStreamed`, `TurnReported`, `RequestApproval`,
        `FetchSteering` and `TurnEnded` from its turn; `ShortenPrompt`, `Condensed`,
        `EndIfExpired` and `DropConversation` about its past; `PersonaReplaced` when its
        agent has changed.
    Sends: `StartTurn` and `Condense` to its agent; commits to the store; `Deliver` and
        `ShowDraft` to the connector; `Route` and `StopDelegated` to the router for
        what it hands to other agents.
    Keeps: the history, rebuilt from its journal stream, and the unsettled messages.
    Fails: when somebody else wrote to its stream, or on a damaged database. Its
        unsettled messages go back into its mailbox for the next incarnation.
    Ends: after `idle_after` seconds without a message; the next message wakes it.

    Args:
        key: names the conversation and its journal stream.
    """

    mailbox: ClassVar[MailboxConfig] = MailboxConfig(capacity=1024)

    def __init__(self, key: str, persona: Persona, services: Services) -> None:
        super().__init__()
        self._persona = persona
        self._services = services
        self._history = history = History(key, persona.config.max_history)
        self._line = SessionLine(history, services)
        self._queue = self._line.queue
        self._turns = RunningTurns(history, services)
        self._outbox = SessionOutbox(history, persona.name, services)
        self._lifecycle = Lifecycle(history, persona.name, services)
        self._hooks = SessionHooks(services)

    async def on_start(self) -> None:
        """Rebuild the history from the newest snapshot and the journal after it.

        A session that was killed could not end its turn or give its permit back, so
        both are done here.
        """
        self.tell(names.agent(self._persona.name), SessionStarted(self.actor_ref))
        self.tell(names.LIMITER, ReleasePermit(self.actor_urn))
        history = self._history
        await read_history(history, self._services.store)
        self._queue.buffer_by(self._line.settings_by(history.counted.policy))

    def on_stop(self) -> None:
        """End the turn; unanswered messages stay in the store."""
        self._lifecycle.call_off(self)
        for current in self._turns.attempts:
            current.call_off()
            self._cancel_turn(current)

    def on_failure(self, *_: object, **__: object) -> None:
        """Put the unsettled messages back into the mailbox, in their order."""
        self._lifecycle.call_off(self)
        for current in self._turns.attempts:
            if not (current.is_started or current.is_over):
                # The agent was not told to start it: the attempt does not count.
                current.pending.state.on(message_state.TurnCancelled())
            self._cancel_turn(current)
        for hear in self._line.hear_again():
            self.requeue(hear)
        # The session may have failed between storing an answer and sending it.
        connector = keys.parse_key(self._history.stream).connector
        self.tell(names.connector(connector), DrainOutbox())
        self.tell(names.ROUTER, RouteUnanswered())

    def may_passivate(self) -> bool:
        """Whether nothing runs, nothing waits, and nothing is to be forgotten."""
        return not (self._is_busy() or self._lifecycle.must_end)

    def _is_busy(self) -> bool:
        return not self._line.is_idle or self._lifecycle.under_way is not None

    def on_receive(self, message: object) -> object:
        """Take one message."""
        match message:
            case Hear():
                return self._hear(message)
            case StopDelegated():
                self._stop_caused(message)
            case PersonaReplaced(persona=persona):
                self._renew(persona)
            case CommitDecided() | StoreAgain():
                return self._on_commit(message)
            case _ if isinstance(message, TurnMessage):
                step = self._turns.on(message, self._persona)
                if isinstance(message, CheckTurn):
                    self._let_others_pass(message.turn_id)
                return None if step is None else self._on_turn_step(step)
            case _:
                return self._on_the_side(message)
        return None

    def _on_the_side(self, message: object) -> object:
        """Take a timer, or a request of the turn."""
        match message:
            case RetryTurn(inbound_id=waited):
                self._begin_if_free(waited)
            case HooksAnswered():
                return self._hooked(message)
            case PlaceAgain():
                return None if self._hooks.is_open else self._place_unplaced()
            case queueing.DebounceElapsed():
                self._carry_out(self._queue.on(message))
            case FetchSteering():
                self._inject(message)
            case CheckTurnEnded():
                check_turn_ended(message, self._persona.name, self, self._services)
            case _:
                return self._on_asked(message)
        return None

    def _on_asked(self, message: object) -> object:
        if isinstance(message, Beside):
            for said in self._turns.on_side_message(message, self, self._persona):
                self._put(said)
            if isinstance(message, TurnPaused):
                self._let_others_pass(message.turn_id)
        elif isinstance(message, CheckHeard):
            if not self._knows(message.message_id):
                self.tell(names.ROUTER, NotHeard(message.message_id))
        elif isinstance(message, PastMessage):
            wanted = message.turn_id if isinstance(message, ShortenPrompt) else ""
            current = self._turns.by_id(wanted)
            is_busy = self._is_busy()
            self._step(self._lifecycle.on(message, self, current, is_busy=is_busy))
        else:
            return super().on_receive(message)
        return None

    # --- settings ---------------------------------------------------------------

    def _renew(self, persona: Persona) -> None:
        """Use the agent's settings as they are now."""
        self._persona = persona
        self._outbox.renew()
        self._history.max_history = persona.config.max_history
        buffering = self._line.settings_by(self._history.counted.policy)
        self._queue.adopt(self._services.limits.max_waiting, buffering)

    # --- hearing ----------------------------------------------------------------

    def _hear(self, hear: Hear) -> object:
        inbound, line = hear.inbound, self._line
        if inbound.id in line.pending:
            self._retry_now(line.pending[inbound.id], hear.past)
            return None
        if self._history.has_answered(inbound.id):
            return None  # it came again after a restart, and is answered already
        command: commands.Command = commands.PlainText()
        if not (inbound.chain.agents or inbound.occasion):  # only people give commands
            command = commands.parse_command(inbound.text)
        pending = line.take_in(inbound, hear.past)
        told = consent.decision_in(hear, command, self, self._services)
        if isinstance(told, str):
            self._say(inbound, told)
        elif told is not None:
            return self._say_later(inbound, told)
        elif isinstance(command, commands.Stop):
            self._stop(inbound, command)
        elif isinstance(command, commands.OtherCommand) and not registry.skill_named(
            inbound.text, self._persona.skills
        ):
            return self._answer_command(inbound, command)
        else:
            return self._line_up(pending) or self._check_waiting()
        return self._check_waiting()

    async def _say_later(self, inbound: Inbound, told: Awaitable[str]) -> None:
        """Say what another node has to tell first."""
        self._say(inbound, await told)
        if (going_on := self._check_waiting()) is not None:
            await going_on

    def _knows(self, message_id: str) -> bool:
        pending, history = self._line.pending, self._history
        return message_id in pending or history.has_answered(message_id)

    def _line_up(self, pending: PendingMessage) -> Awaitable[None] | None:
        """Ask hooks about a message, or give it its place, behind those before it."""
        if self._line.waits_behind(pending):
            return None
        if self._hooks.ask(pending, self._persona, self):
            self._line.hold(pending)
            return None
        return self._place(pending)

    async def _hooked(self, message: HooksAnswered) -> None:
        """Go on with a message that hooks were asked about, and with those behind."""
        hooked = self._hooks.take(message, self._persona)
        if hooked is None:
            return
        if hooked.answer is not None:
            self._put(hooked.answer)
        await self._place_unplaced(hooked)
        if (going_on := self._check_waiting()) is not None:
            await going_on

    async def _answer_command(
        self, inbound: Inbound, asked: commands.OtherCommand
    ) -> None:
        """Answer a command that is not about the running turn."""
        turns = self._turns
        current = turns.of(self._queue.current) or next(iter(turns.attempts), None)
        standing = self._line.standing("running" if current is None else current.pace)
        asker = (self._persona, self._services, self)
        told = await desk.answer(asked, inbound, standing, asker)
        if told.reset is None:
            self._put(desk.as_answer(told, inbound))
            return
        # The conversation ends when it is this message's turn.
        pending, flushes = self._line.pending[inbound.id], told.reset != "forget"
        pending = msgspec.structs.replace(pending, told=told.text, flushes=flushes)
        self._line.pending[inbound.id] = pending
        self._line_up(pending)

    def _retry_now(
        self, pending: PendingMessage, past: message_state.AttemptHistory
    ) -> None:
        """Retry the waiting turn at once, if a person ended the wait of its message.

        The message may share the turn of an earlier one.
        """
        turn = self._queue.turn(pending.inbound.id)
        first = "" if turn is None else turn.first.id
        if self._may_begin(first) and self._line.pending[first].state.hurry(past):
            self._begin_if_free(first)

    def _check_waiting(self) -> Awaitable[None] | None:
        waits = self._queue.waiting and self._lifecycle.under_way is None
        return self._check_settled() if waits and self._to_begin else None

    async def _check_settled(self) -> None:
        """Go on at once if a message that waits for a retry was dropped by hand."""
        for inbound_id in self._to_begin:
            if not self._may_begin(inbound_id):
                continue
            inbound = self._line.pending[inbound_id].inbound
            is_gone = await is_settled(self._services.store, inbound)
            if is_gone and self._may_begin(inbound_id):
                self._superseded(inbound)

    # --- places in the queue ------------------------------------------------------

    def _arrival_of(self, pending: PendingMessage) -> queueing.Arrival:
        is_late = self._turns.is_late_for(pending.inbound)
        return self._line.arrival_of(pending, self._persona, is_late=is_late)

    def _place(self, pending: PendingMessage) -> Awaitable[None] | None:
        """Say a message of the runtime, or give it its place in the queue."""
        inbound = pending.inbound
        if inbound.occasion in OWN_WORDS:
            self._put(OWN_WORDS[inbound.occasion](inbound, self._persona))
            return None
        heard = self._arrival_of(pending)
        if heard.is_owed and not pending.told:
            return self._recover_place(pending, heard)
        self._carry_out(self._queue.on(heard))
        return None

    async def _recover_place(
        self, pending: PendingMessage, heard: queueing.Arrival
    ) -> None:
        """Give a message of an earlier process its place, with those of its turn."""
        again = await self._line.recover(pending, heard)
        if again is None:
            self.after(PLACE_AGAIN_AFTER, PlaceAgain())
        else:
            self._carry_out(self._queue.on(again))

    async def _place_unplaced(self, hooked: HookedMessage | None = None) -> None:
        """Place the messages that waited for the disk or a hook, in their order.

        Args:
            hooked: the one that hooks were asked about just now.
        """
        for inbound_id in self._line.take_unplaced():
            pending = self._line.pending.get(inbound_id)
            if pending is None:
                continue
            place = self._line_up
            if hooked is not None and inbound_id == hooked.pending.inbound.id:
                if hooked.answer is not None:
                    continue
                place = self._place
            if (placing := place(pending)) is not None:
                await placing

    def _carry_out(self, effects: Iterable[queueing.Effect]) -> None:
        """Carry out the effects of the queue, in order."""
        for effect in effects:
            match effect:
                case queueing.BeginTurn():
                    self._start(effect)
                case queueing.CancelCurrent():
                    self._cancel_current(effect)
                case queueing.RefuseMessage(id=inbound_id):
                    refused = running_turns.refused(
                        self._line.pending[inbound_id].inbound
                    )
                    self._outbox.put_sparingly(refused, self)
                case queueing.DropWaiting():
                    self._drop(effect)
                case (
                    queueing.KeepWaiting()
                    | queueing.Debounce()
                    | queueing.InjectMessages()
                ):
                    self._keep_waiting(effect)
                case _:
                    assert_never(effect)

    def _start(self, start: queueing.BeginTurn) -> None:
        self._acknowledge(start.id, *start.also)
        if start.also and not self._line.pending[start.id].is_recorded:
            self._count("merged", len(start.also))
        self._begin(self._line.put_together(start), start.generation)

    def _keep_waiting(
        self, effect: queueing.KeepWaiting | queueing.Debounce | queueing.InjectMessages
    ) -> None:
        """Carry out the effects that only let messages wait."""
        match effect:
            case queueing.KeepWaiting(id=inbound_id, is_noted=is_noted):
                self._acknowledge(inbound_id)
                if is_noted:
                    self._say_next(self._line.pending[inbound_id].inbound)
            case queueing.Debounce(number=number, seconds=seconds):
                self.after(seconds, queueing.DebounceElapsed(number))
            case queueing.InjectMessages(ids=ids):
                self._count("steered", len(ids))  # `_inject` hands them to the turn

    def _acknowledge(self, *ids: str) -> None:
        for pending in map(self._line.pending.__getitem__, ids):
            if not pending.told:  # a command gets no reaction
                agent, services = self._persona.name, self._services
                reactions.acknowledge(
                    pending.inbound, agent, "received", self, services
                )

    def _say_next(self, inbound: Inbound) -> None:
        if self._services.accounts[inbound.address.connector].abilities.shows_asides:
            self._put(answers.aside(inbound, "next", NEXT))

    def _count(self, outcome: str, count: int = 1) -> None:
        self._services.metrics.buffered.add(count, self._persona.name, outcome)

    def _inject(self, asked: FetchSteering) -> None:
        """Put messages that came meanwhile into the running turn."""
        reply, current = self.defer_reply(), self._turns.by_id(asked.turn_id)
        if reply is None:
            return
        if current is None or current.is_over:
            reply.offer(())
            return
        effects = self._queue.on(queueing.RoundStarting(current.generation))
        self._carry_out(effects)
        new = tuple(
            self._line.pending[inbound_id].inbound
            for effect in effects
            if isinstance(effect, queueing.InjectMessages)
            for inbound_id in effect.ids
        )
        reply.offer(current.inject(new))

    # --- stopping ---------------------------------------------------------------

    def _stop(self, inbound: Inbound, command: commands.Stop) -> None:
        """Stop what one person asked here, and what was handed on because of it."""
        if command.is_all and account_of(inbound) not in self._services.approvers:
            self._say(inbound, stopping.NOT_ALL)
            return
        stop = StopDelegated(inbound, self._persona.name, is_all=command.is_all)
        pending = (each.inbound for each in self._line.pending.values())
        mine = stopping.ids_of_asker(pending, inbound, is_all=command.is_all)
        is_stopped, is_late = self._stop_messages(mine, stop)
        told = stopping.stop_notice(
            is_stopped=is_stopped,
            is_late=is_late,
            is_busy=bool(self._queue.begun),
            may_hand_on=bool(
                self._persona.colleagues or self._persona.config.is_conductor
            ),
            has_lanes=self._has_lanes,
        )
        self._say(inbound, told)
        self.tell(names.ROUTER, stop)

    @property
    def _has_lanes(self) -> bool:
        """Whether scheduled work of this chat may be going on beside it."""
        key = keys.parse_key(self._history.stream)
        sessions = names.sessions(self._persona.name)
        lanes = (msgspec.structs.replace(key, lane=each).text for each in LANES)
        return any(self.find(f"{sessions}/{each}") is not None for each in lanes)

    def _stop_caused(self, stop: StopDelegated) -> None:
        """Stop what another agent gave this one to do."""
        pending = (each.inbound for each in self._line.pending.values())
        caused = frozenset(x.id for x in pending if stopping.is_meant(x, stop))
        self._stop_messages(caused, stop)

    def _stop_messages(
        self, ids: frozenset[str], stop: StopDelegated
    ) -> tuple[bool, bool]:
        """Stop some messages.

        Returns:
            Whether any was stopped, and whether the answer to one is being stored.
        """
        meant = [x for x in self._turns.attempts if x.inbound.id in ids]
        effects: list[queueing.Effect] = self._queue.on(queueing.StopRequested(ids))
        late: set[str] = set()
        for current in meant:
            if current.is_over:
                # Its answer is being stored, and goes out before anything said here.
                late.add(current.inbound.id)
                self._drop_turn(current)
                self._outbox.stop_after(current.inbound, stop)
        effects = [
            each
            for each in effects
            if not (isinstance(each, queueing.CancelCurrent) and each.id in late)
        ]
        self._carry_out(effects)
        unplaced = self._line.stop_unplaced(ids)
        for pending in unplaced:
            self._settle_stopped(pending)
        if self._hooks.drop(ids):
            self.note(PlaceAgain())  # those behind it need not wait for the hook
        ended = queueing.CancelCurrent | queueing.DropWaiting
        is_stopped = any(isinstance(each, ended) for each in effects)
        return bool(unplaced) or is_stopped, bool(late)

    def _cancel_current(self, cancel: queueing.CancelCurrent) -> None:
        self._services.metrics.turns.add(1, self._persona.name, "cancelled")
        current = self._turns.of(cancel.id)
        run = None if current is None else self._cancel_turn(current)
        pending = self._line.pending[cancel.id]
        if cancel.reason == "stopped":
            self._settle_stopped(pending, run)
        else:
            self._count("interrupted")
            self._put(self._outcomes.interrupted(pending, run))

    def _drop(self, drop: queueing.DropWaiting) -> None:
        for inbound_id in drop.ids:
            pending = self._line.pending[inbound_id]
            if drop.reason == "stopped":
                self._settle_stopped(pending)
            else:
                self._count("overflow")
                dropped = running_turns.dropped(pending.inbound)
                self._outbox.put_sparingly(dropped, self)

    def _settle_stopped(self, pending: PendingMessage, run: Run | None = None) -> None:
        self._lifecycle.call_off_by(pending.inbound, self)
        self._put(self._outcomes.stopped(pending, run))

    # --- one turn ---------------------------------------------------------------

    def _may_begin(self, inbound_id: str) -> bool:
        """Whether this message has its turn, and no attempt runs."""
        turn = self._queue.turn(inbound_id)
        if turn is None or turn.first.id != inbound_id:
            return False
        return not turn.is_ending and self._turns.of(inbound_id) is None

    @property
    def _to_begin(self) -> tuple[str, ...]:
        """Ids of messages that have their turn, and wait for an attempt."""
        return tuple(filter(self._may_begin, self._queue.begun))

    def _begin_if_free(self, inbound_id: str) -> None:
        turn = self._queue.turn(inbound_id)
        if turn is not None and self._may_begin(inbound_id):
            self._begin(self._line.pending[inbound_id], turn.generation)

    def _let_others_pass(self, turn_id: str) -> None:
        """Set a turn aside that only waits: it keeps no other people waiting."""
        current = self._turns.by_id(turn_id)
        if current is not None and not current.is_over and current.keeps_waiting:
            self._carry_out(self._queue.on(queueing.TurnWaits(current.inbound.id)))

    def _begin(self, pending: PendingMessage, generation: int) -> None:
        """Begin a turn, or first end the conversation before it."""
        lifecycle, inbound = self._lifecycle, pending.inbound
        if lifecycle.is_resetting:
            return  # the turn begins when the reset is stored
        why = lifecycle.expired()
        if pending.told:
            self._step(lifecycle.end("command", self, inbound, by=pending))
        elif why is not None:
            self._step(lifecycle.end(why, self, inbound))
        else:
            notice = lifecycle.notice_of_reset(inbound)
            if notice is not None:
                self._put(notice)
            is_steered = self._queue.manner.injects
            step = self._turns.begin(
                pending, generation, self, self._persona, is_steered=is_steered
            )
            if step is not None:
                self._on_turn_step(step)

    def _begin_waiting(self) -> None:
        """Begin the turns that waited for a reset."""
        now = self._services.clock.wall()
        for inbound_id in self._to_begin:
            if self._line.pending[inbound_id].state.past.due_at <= now:
                self._begin_if_free(inbound_id)

    def _on_turn_step(self, step: TurnStep) -> Awaitable[None] | None:
        """Carry out what follows from a message of the turn."""
        match step:
            case Superseded(pending=pending) if pending.others:
                return self._begin_without_settled(pending)
            case Superseded(pending=pending):
                self._superseded(pending.inbound)
            case RetryAt(inbound_id=inbound_id, due_at=due_at, answer=answer):
                if answer is not None:
                    self._put(answer)
                    self._drop_turn_of(inbound_id)
                self._retry_later(inbound_id, due_at)
                self._carry_out(self._queue.on(queueing.TurnWaits(inbound_id)))
            case _:
                self._put(step)
        return None

    async def _begin_without_settled(self, pending: PendingMessage) -> None:
        """Begin the turn again without the messages that somebody else has settled."""
        inbound = pending.inbound
        gone = await settled_among(self._services.store, (inbound, *pending.others))
        if inbound.id in gone:
            self._superseded(inbound)  # the others have turns of their own
            return
        pending.state.on(message_state.TurnCancelled())
        self._drop_turn_of(inbound.id)
        self._leave_out(gone)
        self._line.pending[inbound.id] = pending.without(gone)
        self._queue.on(queueing.MembersSettled(gone))
        due_at = self._services.clock.wall() + BEGIN_AGAIN_AFTER
        self._retry_later(inbound.id, due_at)

    def _retry_later(self, inbound_id: str, due_at: float) -> None:
        wait = max(0.0, due_at - self._services.clock.wall())
        self.after(wait, RetryTurn(inbound_id))

    def _drop_turn_of(self, inbound_id: str) -> None:
        current = self._turns.of(inbound_id)
        if current is not None:
            self._drop_turn(current)

    def _drop_turn(self, current: Attempt) -> None:
        """Drop an attempt, and the compaction that runs by its permit."""
        self._lifecycle.call_off_compaction(current.id, self)
        pending = self._turns.drop(current)
        if pending.inbound.id in self._line.pending:
            self._line.pending[pending.inbound.id] = pending

    def _cancel_turn(self, current: Attempt) -> Run | None:
        """Cancel and drop an attempt; give what its turn took until now."""
        run = current.cancel()
        self._drop_turn(current)
        return run

    # --- answers ----------------------------------------------------------------

    @property
    def _outcomes(self) -> Outcomes:
        return Outcomes(self._history, self._persona, self._services)

    def _put(self, answer: OutboxItem) -> None:
        self._outbox.put(answer, self)

    def _say(self, inbound: Inbound, text: str) -> None:
        self._put(answers.notice(inbound, text, ("replied", "command")))

    def _on_commit(self, message: CommitDecided | StoreAgain) -> Awaitable[None] | None:
        """Go on after a commit, or write it again."""
        if isinstance(message, StoreAgain):
            self._outbox.store_next(self)
            return None
        concluded = self._outbox.take(message, self)
        match concluded:
            case None:
                return None
            case AnswerContested(answer=answer):
                return self._contest(answer)
            case EntryConcluded():
                self._step(self._lifecycle.entered(concluded))
            case AnswerConcluded():
                self._conclude(concluded)
        self._outbox.store_next(self)
        return None

    async def _contest(self, answer: answers.Answer) -> None:
        """Store an answer without the messages that somebody else has settled."""
        asked = (answer.inbound, *(each.inbound for each in answer.also))
        gone = await settled_among(self._services.store, asked)
        if not gone:
            self.after(CONTEST_AGAIN_AFTER, StoreAgain())  # the disk does not say
            return
        self._leave_out(gone - {answer.inbound.id})
        if answer.inbound.id in gone:
            self._conclude(self._outbox.give_way(answer, self))
        else:
            self._outbox.put_instead(without(answer, gone))
        self._outbox.store_next(self)

    def _conclude(self, concluded: AnswerConcluded) -> None:
        """Go on after an answer is stored: begin the next turn, flush the history."""
        answer, lifecycle = concluded.answer, self._lifecycle
        is_end = lifecycle.concluded(concluded)
        is_final = answer.put_off is None
        self._outbox.announce(concluded, self)
        if concluded.is_own and is_final and (chosen := answer.carried.policy):
            self._queue.buffer_by(self._line.settings_by(chosen))
        if concluded.was_waited_for and is_final:
            pending = self._line.pending.get(answer.inbound.id)
            begun = 0 if pending is None else pending.state.attempts
            self._outbox.show_end(answer, begun, self)
            # If somebody else stored it, the other messages are checked one by one.
            others = answer.also if concluded.is_own else ()
            self._settled(answer.inbound.id, *[each.inbound.id for each in others])
        if is_end:
            self._begin_waiting()  # if the command itself was given up meanwhile
        self._step(lifecycle.flush_if_due(answer.inbound, self))
        lifecycle.watch_the_time(self)

    def _settled(self, first: str, *others: str) -> None:
        """Go on when messages are settled; those that their turn missed come next."""
        self._line.settle({first, *others})
        turn = self._queue.turn(first)
        if turn is not None and turn.first.id == first:
            self._drop_turn_of(first)
            missed = map(self._line.pending.get, turn.members)
            again = tuple(
                [self._arrival_of(each) for each in missed if each is not None]
            )
            ended = queueing.TurnSettled(first, turn.generation, again)
            self._carry_out(self._queue.on(ended))

    def _superseded(self, inbound: Inbound) -> None:
        """Go on after a message that somebody else has settled."""
        self._history.note_answered(inbound.id)
        reactions.withdrawn(inbound, self._persona.name, self, self._services)
        self.tell(names.connector(inbound.address.connector), DrainOutbox())
        self._settled(inbound.id)

    def _leave_out(self, gone: frozenset[str]) -> None:
        """Forget messages that somebody else has settled."""
        for inbound in self._line.leave_out(gone):
            reactions.withdrawn(inbound, self._persona.name, self, self._services)

    # --- the past ---------------------------------------------------------------

    def _step(self, step: Step | None) -> None:
        """Carry out what the lifecycle asks for."""
        if isinstance(step, BeginWaiting):
            self._begin_waiting()
        elif step is not None:
            self._put(step)
