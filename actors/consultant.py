"""Answers an agent's colleague behind the scenes: a conversation that nobody reads.

A consultant is to a colleague what a session is to people. It has its agent run a turn
for each question, and keeps what was said in a book of its own (`rules/book.py`), whose
journal makes rows of ledger and audit like any other.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import msgspec

from actors import consultations, names
from actors.agent import BeginsAnew
from actors.collaborating import CancelConsult, Consult, Consultancy
from actors.condensing import Shorten, Shortened
from actors.ledger import Run, total
from actors.protocol import (
    AskLeave,
    CancelTurn,
    Finished,
    Leave,
    StartTurn,
    TurnEnded,
    TurnGoesOn,
    TurnNoted,
    TurnRests,
    TurnSpent,
    TurnSpoke,
)
from actors.rules import markers, tool_results
from actors.rules.book import Book, Consulted, Terms
from actors.rules.keys import parse_key
from actors.words import TurnMoved
from runtime.actor import Actor
from runtime.errors import SequenceConflictError, StoreUnavailableError
from runtime.logs import EventLog
from runtime.mailbox import MailboxConfig
from runtime.rows import Committed

if TYPE_CHECKING:
    from collections.abc import Callable

    from actors.collaborating import Outcome
    from actors.ledger import Spent
    from actors.messages import Line
    from actors.persona import Persona
    from actors.protocol import Failed
    from actors.services import Services
    from runtime.reply import Reply
    from runtime.timers import Timer

LOG = EventLog("consultant")

MOST_OPEN = 32
"""Questions of one book that are answered at once; a turn asks far fewer."""

# Chosen: seconds until a commit is tried again that the disk refused; whoever asks
# waits no longer than its own time.
RETRY_COMMIT = 1.0

NOBODY_TO_ASK = "it needs somebody's leave, and behind the scenes nobody can be asked"
GONE = "it is not here any more"
UNKNOWN = (
    "there is no consultation with that session_id, or it is too long ago; leave"
    " session_id out to begin one"
)
FULL = "that consultation is as long as it may be; leave session_id out to begin one"
BUSY = "it is being asked too much at once"
LATE = "it did not answer in time"
STOPPED = "nobody waits for it any more"
BROKE = "something broke while it was answering"


class Stored(msgspec.Struct, frozen=True):
    """A note to itself: what became of a commit."""

    outcome: Committed | Exception


class StoreAgain(msgspec.Struct, frozen=True):
    """A note to itself: the disk may take it now."""


class TimeIsUp(msgspec.Struct, frozen=True):
    """A note to itself: nobody waits for this turn any longer."""

    turn_id: str


@dataclass(slots=True)
class Question:
    """One question that is being answered."""

    consult: Consult
    reply: Reply
    history: tuple[Line, ...]
    began_at: float
    timer: Timer | None = None
    spent: tuple[Spent, ...] = ()


@dataclass(slots=True)
class Unstored:
    """What is on its way to the disk, and who waits for it."""

    event: Consulted
    reply: Reply
    answer: Consultancy


class Consultant(Actor):
    """Answers what one agent asks another, for one person in one chat.

    Takes: `Consult` (asked), `CancelConsult`; `TurnEnded`, `TurnSpent` and whatever
        else a turn says to its session.
    Sends: `StartTurn` and `CancelTurn` to its agent; rows to the store.
    Keeps: the book, rebuilt from the journal stream that is its key; what is being
        answered.
    Fails: when somebody else wrote to its stream, or on a damaged database; whoever
        asks is told so, and its next incarnation reads anew.
    Ends: after `idle_after` seconds without a question; the next one wakes it.
    """

    mailbox: ClassVar[MailboxConfig] = MailboxConfig(capacity=1024)

    def __init__(
        self, key: str, persona: Callable[[], Persona], services: Services
    ) -> None:
        super().__init__()
        self._key = key
        self._agent = parse_key(key).agent
        self._persona = persona  # asked each time: agents may change
        self._services = services
        config = services.collaboration
        terms = Terms(
            max_sessions=config.max_sessions,
            max_exchanges=config.max_exchanges,
            max_age=config.max_age,
        )
        self._book = Book(terms)
        self._version = 0
        self._open: dict[str, Question] = {}  # by turn
        self._unstored: list[Unstored] = []

    async def on_start(self) -> None:
        """Rebuild the book; one that was killed could not end its turns."""
        self.tell(names.agent(self._agent), BeginsAnew(self.actor_ref))
        store = self._services.store
        self._version = await consultations.read(store, self._key, self._book)

    def on_stop(self) -> None:
        """Tell those who wait that nobody answers any more."""
        self._give_up()

    def on_failure(self, *_: object, **__: object) -> None:
        """Tell those who wait that it broke."""
        self._give_up()

    def may_passivate(self) -> bool:
        """Whether nothing is being answered."""
        return not (self._open or self._unstored)

    def on_receive(self, message: object) -> object:
        """Take a question, or what a turn says."""
        match message:
            case Consult():
                self._asked(message)
            case CancelConsult(inbound_id=inbound_id):
                self._cancel(inbound_id)
            case TurnEnded() | TurnSpent() | TimeIsUp():
                self._on_turn(message)
            case Stored(outcome=outcome):
                self._stored(outcome)
            case StoreAgain():
                self._store_next()
            case _:
                return self._turn_wants(message)
        return None

    def _turn_wants(self, message: object) -> object:
        """Answer a turn as a session would that has no people."""
        match message:
            case TurnSpoke() | TurnMoved() | TurnNoted() | TurnRests():
                return None
            case AskLeave():
                return Leave("unasked", why=NOBODY_TO_ASK)
            case TurnGoesOn():
                return True
            case Shorten(turn_id=turn_id):
                question = self._open.get(turn_id)
                lines = () if question is None else question.history
                return Shortened("kept", lines, 0, ())
            case _:
                return super().on_receive(message)

    # --- questions ----------------------------------------------------------------

    def _asked(self, consult: Consult) -> None:
        reply = self.defer_reply()
        if reply is None:
            return
        now = self._services.clock.wall()
        inbound_id = consult.inbound.id
        known = self._book.find(consult.session, now)
        running = self._find(inbound_id)
        if (answered := self._book.answer(inbound_id)) is not None:
            known_files = answered.files
            told = Consultancy("ok", answered.said, answered.is_done, known_files)
            reply.offer(told)
        elif running is not None:
            running.reply = reply  # who asked first is gone
        elif known is None and not consult.is_new:
            reply.offer(Consultancy("unknown_session", UNKNOWN))
        elif known is not None and self._book.is_full(known):
            reply.offer(Consultancy("session_full", FULL))
        elif len(self._open) >= MOST_OPEN:
            reply.offer(Consultancy("busy", BUSY))
        else:
            lines = () if known is None else known.lines(self._agent)
            self._begin(consult, lines, reply)

    def _begin(self, consult: Consult, lines: tuple[Line, ...], reply: Reply) -> None:
        services = self._services
        turn_id, inbound = services.ids.new(), consult.inbound
        start = StartTurn(
            turn_id=turn_id,
            generation=0,
            session=self.actor_ref,
            inbound=inbound,
            history=lines,
            attempt=consult.attempt,
            conversation=self._key,
            mode="collaboration",
        )
        if not self.tell(names.agent(self._agent), start):
            reply.offer(Consultancy("failed", GONE))
            return
        left = max(0.0, inbound.chain.deadline - services.clock.wall())
        self._open[turn_id] = Question(
            consult,
            reply,
            lines,
            services.clock.monotonic(),
            self.after(left, TimeIsUp(turn_id)),
        )

    def _find(self, inbound_id: str) -> Question | Unstored | None:
        """Give what was asked before, and has not been answered yet."""
        for question in self._open.values():
            if question.consult.inbound.id == inbound_id:
                return question
        for unstored in self._unstored:
            event = unstored.event
            if event.inbound_id == inbound_id and event.state != "cancelled":
                return unstored
        return None

    def _on_turn(self, message: TurnEnded | TurnSpent | TimeIsUp) -> None:
        question = self._open.get(message.turn_id)
        if question is None:
            return  # cancelled; its last words are nobody's business
        match message:
            case TurnSpent(spent=spent):
                question.spent = spent
            case TimeIsUp():
                self._end(message.turn_id, "late", LATE)
            case TurnEnded(outcome=outcome):
                self._close(message.turn_id)
                if isinstance(outcome, Finished):
                    self._answered(question, outcome)
                else:
                    self._failed(question, outcome)

    def _cancel(self, inbound_id: str) -> None:
        for turn_id, question in tuple(self._open.items()):
            if question.consult.inbound.id == inbound_id:
                self._end(turn_id, "cancelled", STOPPED)

    def _close(self, turn_id: str) -> Question:
        question = self._open.pop(turn_id)
        if question.timer is not None:
            question.timer.cancel()
        return question

    def _end(self, turn_id: str, outcome: Outcome, why: str) -> None:
        """End a turn before it has an answer; what it took is paid for."""
        question = self._close(turn_id)
        self.tell(names.agent(self._agent), CancelTurn(turn_id))
        event = self._event(question, "", question.spent)
        reason = "timeout" if outcome == "late" else "stopped"
        event = msgspec.structs.replace(event, state="cancelled", reason=reason)
        self._store(Unstored(event, question.reply, Consultancy(outcome, why)))

    # --- answers -------------------------------------------------------------------

    def _answered(self, question: Question, finished: Finished) -> None:
        egress = self._persona().spoken_to().egress
        parsed = markers.parse(finished.text, "assistant", egress)
        said = tool_results.bound(
            parsed.visible, self._services.collaboration.max_chars
        )
        is_done = any(markers.ends(word) for word in parsed.controls)
        event = self._event(question, said, finished.spent, finished.rounds)
        files = finished.carried.files
        event = msgspec.structs.replace(event, is_done=is_done, files=files)
        answer = Consultancy("ok", said, is_done, files)
        self._store(Unstored(event, question.reply, answer))

    def _failed(self, question: Question, failed: Failed) -> None:
        event = self._event(question, "", failed.spent, failed.rounds)
        event = msgspec.structs.replace(event, state="dead", reason=failed.reason)
        is_late = failed.trouble == "timeout"
        answer = Consultancy("late" if is_late else "failed", failed.text)
        self._store(Unstored(event, question.reply, answer))

    def _event(
        self,
        question: Question,
        said: str,
        spent: tuple[Spent, ...],
        rounds: int = 0,
    ) -> Consulted:
        consult = question.consult
        run = None
        if spent:
            now = self._services.clock.monotonic()
            run = Run(
                provider=spent[-1].provider,
                model=spent[-1].model,
                attempt=consult.attempt,
                seconds=round(now - question.began_at, 4),
                usage=total(spent),
                rounds=rounds,
                cost=round(sum(each.cost for each in spent), 8),
                spent=spent,
            )
        return Consulted(
            inbound_id=consult.inbound.id,
            session=consult.session,
            sender_id=consult.inbound.sender_id,
            source=consult.source,
            asked=consult.inbound.text,
            said=said,
            run=run,
        )

    def _store(self, unstored: Unstored) -> None:
        """Store what was said, after what was said before it."""
        self._unstored.append(unstored)
        if len(self._unstored) == 1:
            self._store_next()

    def _store_next(self) -> None:
        if not self._unstored:
            return
        row = consultations.as_commit(
            (self._key, self._version),
            self._unstored[0].event,
            self._book,
            self._services,
        )
        note = self.note
        self._services.store.submit(row, lambda outcome: note(Stored(outcome)))

    def _stored(self, outcome: Committed | Exception) -> None:
        """Answer whoever waits, as soon as the answer is durable."""
        if not self._unstored:
            return  # an earlier incarnation's
        if isinstance(outcome, SequenceConflictError):
            raise outcome
        if isinstance(outcome, StoreUnavailableError):
            LOG.warning("consultation waits for the disk", why=str(outcome))
            self.after(RETRY_COMMIT, StoreAgain())
            return
        unstored, *self._unstored = self._unstored
        if isinstance(outcome, Committed):
            self._version = outcome.sequences[-1]
            self._book.take(unstored.event, self._services.clock.wall())
        else:
            LOG.fault("consultation not stored", outcome, book=self._key)
        unstored.reply.offer(unstored.answer)
        self._store_next()

    def _give_up(self) -> None:
        agent = names.agent(self._agent)
        for turn_id, question in self._open.items():
            self.tell(agent, CancelTurn(turn_id))
            question.reply.offer(Consultancy("failed", BROKE))
        for unstored in self._unstored:
            unstored.reply.offer(Consultancy("failed", BROKE))
        self._open.clear()
