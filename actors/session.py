"""One conversation of one agent: its history, and at most one turn at a time.

The shell of `rules/queueing.py` and `rules/message_state.py`: what it hears, and what
it stops. How a turn is begun and its answer stored stands in `turn_taker.py`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

import msgspec

from actors import answers, consent, desk, names, trying, wording
from actors.agent import BeginsAnew
from actors.consent import Beside
from actors.desk_question import Standing
from actors.held import Held
from actors.history import SCHEMA, Conversation
from actors.hooking import HooksSaid
from actors.lifespan import Change
from actors.lineup import LineUp, LookedUp
from actors.open_messages import is_settled
from actors.outgoing import RetryCommit, Stored
from actors.protocol import (
    DrainOutbox,
    Granted,
    Hear,
    Release,
    StopCaused,
    TakeUp,
    TurnEnded,
    TurnSpent,
    TurnSpoke,
)
from actors.rules import commands, keys, message_state, queueing, stopping
from actors.rules.approvals import person
from actors.showing import DraftDue
from actors.signals import SignDue
from actors.staffing import Renewed
from actors.turn_taker import BeginAgain
from actors.unsaid import taken_up
from actors.vigil import LookAtTurn, SeeGone, see_gone
from actors.words import TurnMoved
from runtime.mailbox import MailboxConfig

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from actors.messages import Inbound
    from actors.persona import Persona
    from actors.rules.hooking import HookSpec

PAGE = 1000

OWN_WORDS: dict[str, Callable[[Inbound, Persona], answers.Answer]] = {
    "said": answers.reminder,
    "told": taken_up,
}
"""What an agent says, or has said, without a turn; by the occasion."""

NOT_ALL = "/stop all is for those who run this company; /stop is for everyone."


class Session(LineUp):
    """One conversation: its history, and at most one turn at a time.

    Takes: `Hear`, `StopCaused`, `Granted`, `TurnSpoke`, `TurnNoted`, `TurnEnded`;
        `Shorten` (asked), `Condensed`, `EndIfOver`, `EndNow` about its past; `Renewed`
        when its agent has changed.
    Sends: `StartTurn` and `Condense` to its agent; rows to the store; `Deliver` and
        `ShowDraft` to the connector; `Route` for what it hands to other agents,
        `StopCaused` for what is to end there.
    Keeps: the history, rebuilt from its journal stream, and what waits.
    Fails: when somebody else wrote to its stream, or on a damaged database; what it
        held goes back into its mailbox, and the next incarnation reads anew.
    Ends: after `idle_after` seconds without a message; the next one wakes it.
    """

    mailbox: ClassVar[MailboxConfig] = MailboxConfig(capacity=1024)

    async def on_start(self) -> None:
        """Rebuild the history from the newest snapshot and the journal after it.

        One that was killed could neither end its turn nor give its permit back.
        """
        self.tell(names.agent(self._persona.name), BeginsAnew(self.actor_ref))
        self.tell(names.LIMITER, Release(self.actor_urn))
        history, store = self._history, self._services.store
        snapshot = await store.snapshot(history.stream)
        if snapshot is not None and snapshot.schema == SCHEMA:
            history.restore(snapshot.sequence, snapshot.body)
        while True:
            events = await store.read(history.stream, history.version, PAGE)
            for event in events:
                history.replay(event.sequence, event.kind, event.body, event.at)
            if len(events) < PAGE:
                break
        self._queue.buffer_by(self._buffering_by(history.counted.policy))

    def on_stop(self) -> None:
        """End the turn; what was not answered is still in the store."""
        self._call_off()
        if self._attempt is not None:
            self._attempt.call_off()
        self._abandon_attempt()

    def on_failure(self, *_: object, **__: object) -> None:
        """Give back what this incarnation held, oldest first."""
        self._call_off()
        current = self._attempt
        if current is not None and not (current.is_started or current.is_over):
            current.held.state.on(message_state.Returns())  # it was not even begun
        self._abandon_attempt()
        for held in reversed(tuple(self._held.values())):
            past = held.state.past
            if held.others:  # which they were stands in the store
                past = msgspec.structs.replace(past, was_read=True)
            self.requeue(Hear(held.inbound, past))
        # What was stored and not sent on, should it have failed in between.
        connector = keys.parse_key(self._history.stream).connector
        self.tell(names.connector(connector), DrainOutbox())
        self.tell(names.ROUTER, TakeUp())

    def may_passivate(self) -> bool:
        """Whether nothing runs and nothing waits."""
        is_idle = self._queue.is_idle and not self._held
        return is_idle and self._rewriting is None and not self._must_end

    def on_receive(self, message: object) -> object:
        """Take one message of the way."""
        match message:
            case Hear():
                return self._hear(message)
            case StopCaused():
                self._stop_caused(message)
            case Renewed(persona=persona):
                self._renew(persona)
            case Stored() | RetryCommit() | HooksSaid():
                return self._on_commit(message)
            case BeginAgain(inbound_id=waited):
                self._begin_again(waited)
            case (
                Granted()
                | trying.Claimed()
                | trying.ClaimAgain()
                | TurnSpoke()
                | TurnSpent()
                | TurnMoved()
                | LookAtTurn()
                | DraftDue()
                | SignDue()
                | trying.WaitedLongEnough()
                | TurnEnded()
            ):
                return self._on_turn(message)
            case _ if isinstance(message, Beside | Change | LookedUp | SeeGone):
                return self._on_the_side(message)
            case _:
                return super().on_receive(message)
        return None

    def _on_the_side(self, message: Beside | Change | LookedUp | SeeGone) -> object:
        if isinstance(message, Beside):
            self._beside(message)
        elif isinstance(message, LookedUp):
            return self._on_line(message)
        elif isinstance(message, SeeGone):
            see_gone(message, self._persona.name, self, self._services)
        else:
            self._changes(message)
        return None

    # --- hearing ----------------------------------------------------------------

    def _hear(self, hear: Hear) -> object:
        inbound = hear.inbound
        if inbound.id in self._held:
            self._hear_again(self._held[inbound.id], hear.past)
            return None
        if self._history.has_answered(inbound.id):
            return None  # handed in again after a restart, when it was answered already
        command: commands.Command = commands.Words()
        if not (inbound.chain.agents or inbound.occasion):  # only people give commands
            command = commands.parse_command(inbound.text)
        state = message_state.MessageState(self._retries(inbound), hear.past)
        self._held[inbound.id] = Held(inbound, state)
        told = consent.told(hear, command, self, self._services)
        if told is not None:
            self._say(inbound, told)
        elif inbound.occasion in OWN_WORDS:
            self._put(OWN_WORDS[inbound.occasion](inbound, self._persona))
        elif isinstance(command, commands.Stop):
            self._stop(inbound, command)
        elif isinstance(command, commands.Asked) and not commands.skill_named(
            inbound.text, self._persona.skills
        ):
            return self._ask_desk(inbound, command)
        else:
            return self._find_place(self._held[inbound.id])
        return self._look_at_line()

    def _find_place(self, held: Held) -> Awaitable[None] | None:
        past, inbound = held.state.past, held.inbound
        hooks = self._services.hooks.hearing(inbound, self._persona.name)
        if hooks and not (past.attempts or past.was_running):
            return self._let_intercept(held, hooks)
        return self._line_up(held) or self._look_at_line()

    async def _let_intercept(self, held: Held, hooks: tuple[HookSpec, ...]) -> None:
        """Let hooks have a message for themselves; else it gets its place."""
        agent, services = self._persona.name, self._services
        answer = await wording.intercepted(held.inbound, agent, hooks, self, services)
        if answer is not None:
            self._put(answer)
        going_on = None if answer is not None else self._line_up(held)
        going_on = going_on or self._look_at_line()
        if going_on is not None:
            await going_on

    def _retries(self, inbound: Inbound) -> message_state.RetryPolicy:
        retries = self._services.account(inbound.address.connector).retries
        if inbound.occasion == "heartbeat":  # the next one comes anyway
            return msgspec.structs.replace(retries, retries_failures=False)
        return retries

    def _look_at_line(self) -> Awaitable[None] | None:
        current = self._queue.current
        waits = self._queue.waiting and self._rewriting is None
        may = waits and self._may_begin(current)
        return self._see_whether_it_waits() if may else None

    async def _ask_desk(self, inbound: Inbound, asked: commands.Asked) -> None:
        """Have a command answered that is not about what runs here."""
        queue, history = self._queue, self._history
        counted = history.counted
        standing = Standing(
            history.stream,
            Conversation() if counted.is_closed else counted,
            len(queue.waiting),
            is_busy=queue.current is not None,
            policy=queue.buffering.policy,
            usual=self._buffering_by("").policy,
            chosen=counted.policy,
            pace="running" if self._attempt is None else self._attempt.pace,
        )
        asker = (self._persona, self._services, self)
        told = await desk.answer(asked, inbound, standing, asker)
        if told.reset is None:
            self._put(desk.as_answer(told, inbound))
        else:
            self._end_by(inbound, told.text, flushes=told.reset != "forget")

    def _hear_again(self, held: Held, past: message_state.Past) -> None:
        """Begin at once with what waits for another attempt, if a person says so.

        What shares its turn with an earlier message hurries that.
        """
        waiting = self._held.get(self._queue.current or "", held)
        turn = (waiting.inbound, *waiting.others)
        may = any(x.id == held.inbound.id for x in turn)
        if may and self._may_begin(waiting.inbound.id) and waiting.state.hurry(past):
            self._begin(waiting, self._queue.generation)

    async def _see_whether_it_waits(self) -> None:
        """Go on at once if what waits for another attempt was dropped by hand."""
        inbound = self._held[self._queue.current or ""].inbound
        is_gone = await is_settled(self._services.store, inbound)
        if is_gone and self._may_begin(inbound.id):
            self._superseded(inbound)

    def _stop(self, inbound: Inbound, command: commands.Stop) -> None:
        """Stop what one person asked here, and what came of it elsewhere."""
        is_owner = person(inbound) in self._services.approvers
        if command.is_all and not is_owner:
            self._say(inbound, NOT_ALL)
            return
        stop = StopCaused(inbound, self._persona.name, is_all=command.is_all)
        held = [each.inbound for each in self._held.values() if each.inbound != inbound]
        mine = frozenset(
            each.id for each in held if command.is_all or stopping.is_of(each, inbound)
        )
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
        caused = [
            x.id
            for x in held
            if stopping.is_caused(x, by, agent, origin, is_all=stop.is_all)
            and stopping.is_in_scope(x, by, is_scoped=stop.is_scoped)
        ]
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
        is_stopped = any(isinstance(each, ended) for each in effects)
        return self._stop_looking(ids) or is_stopped, is_late
