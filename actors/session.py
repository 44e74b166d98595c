"""One conversation of one agent: its history, and at most one turn at a time.

The shell of `rules/queueing.py`. Everything a turn says passes here on its way to
people, and only here: the draft through the sanitiser, the answer through the
parser of markers, both committed before they are sent.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, ClassVar, assert_never

import msgspec

from actors import answers, names
from actors.answers import Exchanged
from actors.messages import Draft, Inbound, Line
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
    TurnEnded,
    TurnSpoke,
)
from actors.rules import commands, queueing
from actors.rules.markers import Sanitizer
from runtime.actor import Actor
from runtime.errors import DuplicateError, StoreUnavailableError
from runtime.logs import EventLog
from runtime.mailbox import MailboxConfig
from runtime.store import Committed

if TYPE_CHECKING:
    from actors.answers import Answer
    from actors.persona import Persona
    from actors.rules.keys import SessionKey
    from actors.services import Services
    from runtime.timers import Timer

LOG = EventLog("session")

# Chosen: after the turn's own time-out a turn has this long to report before the
# session stops waiting for it.
REPORT_WITHIN = 30.0

# Chosen: seconds until a failed commit is tried again; the disk may be full for
# hours, and a try is cheap.
RETRY_COMMIT = 1.0

# Chosen: words said within 20 ms are shown together: nobody can tell, and a fast
# model would otherwise cost a message to three actors for each word.
DRAFT_PACE = 0.02

PAGE = 1000


class Stored(msgspec.Struct, frozen=True):
    """A note to itself: what became of a commit."""

    answer: answers.Answer
    outcome: Committed | Exception


class RetryCommit(msgspec.Struct, frozen=True):
    """A note to itself: try a commit again that the disk refused."""


class WaitedLongEnough(msgspec.Struct, frozen=True):
    """A note to itself: a turn should have reported by now."""

    turn_id: str


class DraftDue(msgspec.Struct, frozen=True):
    """A note to itself: show what has been said meanwhile."""


class CurrentTurn:
    """The turn that runs, or waits for its permit."""

    __slots__ = (
        "began_at",
        "generation",
        "inbound",
        "is_ending",
        "sanitizer",
        "unshown",
    )

    def __init__(self, inbound: Inbound, generation: int, now: float) -> None:
        self.inbound = inbound
        self.generation = generation
        self.sanitizer = Sanitizer()
        self.unshown = ""
        """Said and cleaned, but not shown yet."""

        self.began_at = now
        self.is_ending = False
        """Whether its answer is being stored; it can no longer be stopped."""

    @property
    def id(self) -> str:
        """The turn's id, different for each attempt at the same message."""
        return f"{self.inbound.id}.{self.generation}"


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
        self._stream = key.text
        self._persona = persona
        self._services = services
        self._queue = queueing.SessionQueue(services.limits.max_waiting)
        self._held: dict[str, Inbound] = {}
        self._turn: CurrentTurn | None = None
        self._lines: tuple[Line, ...] = ()
        self._version = 0
        self._outgoing: deque[Answer] = deque()
        self._patience: Timer | None = None
        self._next_draft: Timer | None = None

    async def on_start(self) -> None:
        """Rebuild the history from the journal."""
        while True:
            events = await self._services.store.read(self._stream, self._version, PAGE)
            for event in events:
                exchanged = msgspec.json.decode(event.body, type=Exchanged)
                self._remember(exchanged.lines)
                self._version = event.sequence
            if len(events) < PAGE:
                return

    def on_failure(self, *_args: object, **_kwargs: object) -> None:
        """Give back what this incarnation held, oldest first."""
        self._forget_turn()
        for inbound in reversed(tuple(self._held.values())):
            self.requeue(Hear(inbound))

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
            case Stored(answer=answer, outcome=outcome):
                self._stored(answer, outcome)
            case _:
                self._on_timer(message)

    def _on_timer(self, message: object) -> None:
        match message:
            case DraftDue():
                self._draft_due()
            case RetryCommit():
                self._store_next()
            case WaitedLongEnough(turn_id=turn_id):
                outcome = Failed("⚠️ I lost the thread. Please ask again.", "lost")
                self._turn_ended(TurnEnded(turn_id, outcome))
            case _:
                super().on_receive(message)

    # --- hearing ----------------------------------------------------------------

    def _hear(self, inbound: Inbound) -> None:
        if inbound.id in self._held:
            return  # handed in again after a restart; it has its place
        command: commands.Command = commands.Words()
        if not inbound.chain.agents:  # only people give commands
            command = commands.parse_command(inbound.text)
        self._held[inbound.id] = inbound
        match command:
            case commands.Words():
                self._effects(self._queue.on(queueing.Heard(inbound.id)))
            case commands.Stop():
                self._stop_answer(inbound)
            case commands.Help():
                self._say(inbound, commands.help_text())
            case commands.UnknownCommand(text=text):
                self._say(inbound, text)
            case _:
                assert_never(command)

    def _stop_answer(self, inbound: Inbound) -> None:
        if self._turn is not None and self._turn.is_ending:
            self._say(inbound, "Too late: the answer is on its way.")
            return
        effects = self._queue.on(queueing.StopAsked())
        self._effects(effects)
        self._say(inbound, "Stopped." if effects else "There is nothing to stop.")

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
                    self._cancelled(self._held[inbound_id])
                case queueing.DropWaiting(ids=ids):
                    for inbound_id in ids:
                        self._cancelled(self._held[inbound_id])
                case _:
                    assert_never(effect)

    def _refuse(self, inbound: Inbound) -> None:
        text = "I have too much to answer in this chat already. Please try again."
        self._commit(answers.notice(inbound, text, ("dropped", "busy")))

    def _say(self, inbound: Inbound, text: str) -> None:
        self._commit(answers.notice(inbound, text, ("replied", "command")))

    def _cancelled(self, inbound: Inbound) -> None:
        """Keep a cancelled message's words; the next question is heard with them."""
        if self._turn is not None and self._turn.inbound.id == inbound.id:
            self.tell(names.agent(self._key.agent), CancelTurn(self._turn.id))
            self._forget_turn()
        self._commit(answers.cancelled(inbound, self._asked(inbound)))

    # --- one turn ---------------------------------------------------------------

    def _begin(self, inbound: Inbound, generation: int) -> None:
        now = self._services.clock.monotonic()
        self._turn = turn = CurrentTurn(inbound, generation, now)
        wanted = Acquire(self.actor_urn, turn.id, self.actor_ref)
        if not self.tell(names.LIMITER, wanted):
            outcome = Failed("⚠️ I am being restarted. Please ask again.", "limiter")
            self._turn_ended(TurnEnded(turn.id, outcome))

    def _granted(self, turn_id: str) -> None:
        turn = self._turn
        if turn is None or turn.id != turn_id:  # stopped while it waited
            self.tell(names.LIMITER, Release(self.actor_urn))
            return
        now = self._services.clock.monotonic()
        self._services.metrics.stage("queue", now - turn.began_at)
        turn.began_at = now
        seconds = self._services.limits.turn_timeout + REPORT_WITHIN
        self._patience = self.after(seconds, WaitedLongEnough(turn_id))
        start = StartTurn(
            turn_id=turn_id,
            generation=turn.generation,
            session=self.actor_ref,
            inbound=turn.inbound,
            history=(*self._brought(turn.inbound), *self._lines),
        )
        self.tell(names.agent(self._key.agent), start)

    def _spoke(self, turn_id: str, text: str) -> None:
        turn = self._turn
        if turn is None or turn.id != turn_id:
            return  # a stopped turn's last words are nobody's business
        turn.unshown += turn.sanitizer.feed(text)
        if turn.unshown and self._next_draft is None:
            self._show_draft(turn)
            self._next_draft = self.after(DRAFT_PACE, DraftDue())

    def _draft_due(self) -> None:
        """Show what was said since the last draft."""
        self._next_draft = None
        turn = self._turn
        if turn is not None and turn.unshown:
            self._show_draft(turn)
            self._next_draft = self.after(DRAFT_PACE, DraftDue())

    def _show_draft(self, turn: CurrentTurn) -> None:
        inbound = turn.inbound
        draft = Draft(
            correlation_id=inbound.correlation_id,
            turn_id=turn.id,
            address=inbound.address,
            agent=self._key.agent,
            text=turn.unshown,
        )
        turn.unshown = ""
        self.tell(names.connector(inbound.address.connector), ShowDraft(draft))

    def _turn_ended(self, ended: TurnEnded) -> None:
        turn = self._turn
        if turn is None or turn.id != ended.turn_id or turn.is_ending:
            return  # stopped, or given up, before it reported
        turn.is_ending = True
        services = self._services
        seconds = services.clock.monotonic() - turn.began_at
        outcome = ended.outcome
        how = outcome.reason if isinstance(outcome, Failed) else "ok"
        services.metrics.turn(self._key.agent, how)
        services.metrics.stage("turn", seconds)
        LOG.info(
            "turn ended",
            correlation_id=turn.inbound.correlation_id,
            agent=self._key.agent,
            outcome=how,
            seconds=round(seconds, 4),
        )
        asked = self._asked(turn.inbound)
        self._commit(
            answers.failure(turn.inbound, asked, outcome)
            if isinstance(outcome, Failed)
            else answers.reply(turn.inbound, asked, outcome, self._persona, services)
        )

    # --- what is said ------------------------------------------------------------

    def _commit(self, answer: Answer) -> None:
        """Store an answer after those before it; `_stored` then goes on."""
        self._outgoing.append(answer)
        if len(self._outgoing) == 1:
            self._store_next()

    def _store_next(self) -> None:
        if not self._outgoing:
            return
        answer = self._outgoing[0]
        now = self._services.clock.wall()
        commit = answers.as_commit(answer, self._stream, self._version, now)
        note = self.note
        self._services.store.submit(
            commit, lambda outcome: note(Stored(answer, outcome))
        )

    def _stored(self, answer: Answer, outcome: Committed | Exception) -> None:
        is_mine = bool(self._outgoing) and self._outgoing[0] is answer
        if is_mine and isinstance(outcome, StoreUnavailableError):
            LOG.warning("answer waits for the disk", error_text=str(outcome))
            self.after(RETRY_COMMIT, RetryCommit())
            return
        if is_mine:
            self._outgoing.popleft()
        self._conclude(answer, outcome)
        if is_mine:
            self._store_next()

    def _conclude(self, answer: Answer, outcome: Committed | Exception) -> None:
        """Send what is stored now; go on with what waited for it."""
        inbound = answer.inbound
        self._held.pop(inbound.id, None)
        if isinstance(outcome, DuplicateError):
            # An earlier incarnation, or an earlier process, stored this answer; what
            # it could not send stands in the outbox.
            self.tell(names.connector(inbound.address.connector), DrainOutbox())
        elif isinstance(outcome, Exception):
            self._held[inbound.id] = inbound
            raise outcome
        else:
            if outcome.sequences:
                self._version = max(self._version, outcome.sequences[-1])
                self._remember(answer.lines)
            self._send(answer)
        self._after_answer(inbound)

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
        if self._turn is not None:
            self._turn = None
            self.tell(names.LIMITER, Release(self.actor_urn))
        if self._patience is not None:
            self._patience.cancel()
            self._patience = None
        if self._next_draft is not None:
            self._next_draft.cancel()
            self._next_draft = None

    def _brought(self, inbound: Inbound) -> tuple[Line, ...]:
        """Lines that a stateless client brought along, if this is the beginning."""
        return inbound.history if self._version == 0 else ()

    def _asked(self, inbound: Inbound) -> tuple[Line, ...]:
        asked = Line("user", inbound.text, name=inbound.sender_name)
        return (*self._brought(inbound), asked)

    def _remember(self, lines: tuple[Line, ...]) -> None:
        """Add to the history; keep no more of it than a prompt could ever hold."""
        # Why twice: the prompt's rules cut by whole turns and merge lines.
        most = 2 * self._persona.config.max_history + 2
        self._lines = (*self._lines, *lines)[-most:]
