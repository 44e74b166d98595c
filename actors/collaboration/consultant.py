"""The actor that answers an agent's colleague behind the scenes.

A consultant is to a colleague what a session is to people. It has its agent run a turn
for each question, and keeps what was said in a book of its own
(`actors/delegation/consultations.py`), whose journal makes rows of ledger and audit
like any other.

How a book of consultations is written down and read back.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar

import msgspec

from actors import names
from actors.agents.agent import SessionStarted
from actors.agents.persona import Persona
from actors.collaboration.colleagues import HELD_BACK
from actors.delegation.consultations import (
    Consultation,
    ConsultationBook,
    ConsultationLimits,
    Consulted,
)
from actors.delegation.messages import (
    CancelConsult,
    Consult,
    ConsultationResult,
    Outcome,
)
from actors.journal import records
from actors.messages.inbound import TranscriptLine
from actors.messages.keys import parse_key
from actors.messages.usage import Run, Spent, total
from actors.protocol import (
    ApprovalResult,
    CancelTurn,
    Failed,
    Finished,
    PromptShortened,
    RequestApproval,
    ResumeTurn,
    ShortenPrompt,
    StartTurn,
    TurnEnded,
    TurnPaused,
    TurnProgressed,
    TurnReported,
    TurnSpent,
    TurnStreamed,
)
from actors.rules.markers import parser as markers
from actors.rules.prompt import tools as tool_results
from actors.services import Services
from runtime.actor.actor import Actor
from runtime.actor.committer import Committer
from runtime.actor.mailbox import MailboxConfig
from runtime.actor.reply import Reply
from runtime.actor.timers import Timer
from runtime.errors import SequenceConflictError
from runtime.store.port import Store
from runtime.store.rows import Append, Commit, Committed, NewEvent, Snapshot
from runtime.telemetry.logs import EventLog

KIND = "consulted"
"""Name of the event."""

SCHEMA = 1
"""Version of the snapshot's shape."""

SNAPSHOT_EVERY = 50
"""Events; as many as are read at most when somebody asks again."""

PAGE = 1000


async def read(store: Store, stream: str, book: ConsultationBook) -> int:
    """Fill a book with what its stream tells; give the number of the last event.

    Raises:
        runtime.errors.StoreError: it cannot be read.
        msgspec.DecodeError: the same.
    """
    version = 0
    snapshot = await store.snapshot(stream)
    if snapshot is not None and snapshot.schema == SCHEMA:
        kept = msgspec.json.decode(snapshot.body, type=dict[str, Consultation])
        book.consultations.update(kept)
        version = snapshot.sequence
    while True:
        events = await store.read(stream, version, PAGE)
        for event in events:
            version = event.sequence
            if event.kind == KIND:
                book.take(msgspec.json.decode(event.body, type=Consulted), event.at)
        if len(events) < PAGE:
            return version


def as_commit(
    stream: tuple[str, int],
    event: Consulted,
    book: ConsultationBook,
    services: Services,
) -> Commit:
    """Write one event down, and the rows that follow from it.

    Args:
        stream: the book's, and the number of its last event.
    """
    name, version = stream
    part = records.part_of(parse_key(name))
    now = services.clock.wall()
    snapshots: tuple[Snapshot, ...] = ()
    if (version + 1) % SNAPSHOT_EVERY == 0:
        then = book.copy()
        then.take(event, now)
        body = msgspec.json.encode(then.consultations)
        snapshots = (
            Snapshot(
                stream=name, sequence=version + 1, schema=SCHEMA, part=part, body=body
            ),
        )
    journal = Append(
        stream=name,
        expected=version,
        part=part,
        events=(NewEvent(KIND, msgspec.json.encode(event)),),
    )
    return Commit(
        at=now,
        appends=(journal,),
        snapshots=snapshots,
        records=records.of_consultation(name, event, services.keep),
    )


LOG = EventLog("consultant")

MOST_KEPT = 8
"""Most consultations of two agents, for one person in one chat, that are kept open."""

KEPT_FOR = 86_400.0
"""Seconds after its last answer until a consultation is closed."""

MOST_OPEN = 32
"""Questions of one book that are answered at once; a turn asks far fewer."""

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


class AnswerStored(msgspec.Struct, frozen=True):
    """A note to itself: the outcome of a commit."""

    outcome: Committed | Exception


class TimeIsUp(msgspec.Struct, frozen=True):
    """A note to itself: nobody waits for this turn any longer."""

    turn_id: str


class PendingQuestion(msgspec.Struct):
    """One question that is being answered."""

    consult: Consult
    reply: Reply
    history: tuple[TranscriptLine, ...]
    began_at: float
    timer: Timer | None = None
    spent: tuple[Spent, ...] = ()


class PendingCommits(msgspec.Struct):
    """What is being committed, and who waits for it."""

    event: Consulted
    reply: Reply
    answer: ConsultationResult


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
        terms = ConsultationLimits(
            max_sessions=MOST_KEPT,
            max_exchanges=config.max_exchanges,
            max_age=KEPT_FOR,
        )
        self._book = ConsultationBook(terms)
        self._version = 0
        self._open: dict[str, PendingQuestion] = {}  # by turn
        self._unstored: list[PendingCommits] = []
        self._committer = Committer(services.store)

    async def on_start(self) -> None:
        """Rebuild the book; one that was killed could not end its turns."""
        self.tell(names.agent(self._agent), SessionStarted(self.actor_ref))
        store = self._services.store
        self._version = await read(store, self._key, self._book)

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
            case AnswerStored(outcome=outcome):
                self._stored(outcome)
            case _:
                return self._turn_wants(message)
        return None

    def _turn_wants(self, message: object) -> object:
        """Answer a turn as a session would that has no people."""
        match message:
            case TurnStreamed() | TurnProgressed() | TurnReported() | TurnPaused():
                return None
            case RequestApproval():
                return ApprovalResult("unasked", why=NOBODY_TO_ASK)
            case ResumeTurn():
                return True
            case ShortenPrompt(turn_id=turn_id):
                question = self._open.get(turn_id)
                lines = () if question is None else question.history
                return PromptShortened("kept", lines, 0, ())
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
            told = ConsultationResult(
                "ok", answered.said, answered.is_done, known_files
            )
            reply.offer(told)
        elif running is not None:
            running.reply = reply  # who asked first is gone
        elif known is None and not consult.is_new:
            reply.offer(ConsultationResult("unknown_session", UNKNOWN))
        elif known is not None and self._book.is_full(known):
            reply.offer(ConsultationResult("session_full", FULL))
        elif len(self._open) >= MOST_OPEN:
            reply.offer(ConsultationResult("busy", BUSY))
        else:
            lines = () if known is None else known.lines(self._agent)
            self._begin(consult, lines, reply)

    def _begin(
        self, consult: Consult, lines: tuple[TranscriptLine, ...], reply: Reply
    ) -> None:
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
            reply.offer(ConsultationResult("failed", GONE))
            return
        left = max(0.0, inbound.chain.deadline - services.clock.monotonic())
        self._open[turn_id] = PendingQuestion(
            consult,
            reply,
            lines,
            services.clock.monotonic(),
            self.after(left, TimeIsUp(turn_id)),
        )

    def _find(self, inbound_id: str) -> PendingQuestion | PendingCommits | None:
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

    def _close(self, turn_id: str) -> PendingQuestion:
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
        self._store(
            PendingCommits(event, question.reply, ConsultationResult(outcome, why))
        )

    # --- answers -------------------------------------------------------------------

    def _answered(self, question: PendingQuestion, finished: Finished) -> None:
        if finished.is_withheld:
            spent, rounds = finished.spent, finished.rounds
            held_back = Failed(HELD_BACK, "withheld", spent=spent, rounds=rounds)
            self._failed(question, held_back)
            return
        egress = self._persona().spoken_to().egress
        parsed = finished.parsed(egress)
        said = tool_results.bound(
            parsed.visible, self._services.collaboration.max_chars
        )
        is_done = any(markers.ends(word) for word in parsed.controls)
        event = self._event(question, said, finished.spent, finished.rounds)
        files = finished.carried.files
        event = msgspec.structs.replace(event, is_done=is_done, files=files)
        answer = ConsultationResult("ok", said, is_done, files)
        self._store(PendingCommits(event, question.reply, answer))

    def _failed(self, question: PendingQuestion, failed: Failed) -> None:
        event = self._event(question, "", failed.spent, failed.rounds)
        event = msgspec.structs.replace(event, state="dead", reason=failed.reason)
        is_late = failed.trouble == "timeout"
        answer = ConsultationResult("late" if is_late else "failed", failed.text)
        self._store(PendingCommits(event, question.reply, answer))

    def _event(
        self,
        question: PendingQuestion,
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

    def _store(self, unstored: PendingCommits) -> None:
        """Store what was said, after what was said before it."""
        self._unstored.append(unstored)
        if len(self._unstored) == 1:
            self._store_next()

    def _store_next(self) -> None:
        if not self._unstored:
            return
        event, note = self._unstored[0].event, self.note

        def make() -> Commit:
            place = (self._key, self._version)
            return as_commit(place, event, self._book, self._services)

        # Who asks waits no longer than its own time, whatever the disk does.
        self._committer.submit(
            self, make, lambda outcome: note(AnswerStored(outcome)), "consultation"
        )

    def _stored(self, outcome: Committed | Exception) -> None:
        """Answer the waiting agent as soon as the answer is durable."""
        if not self._unstored:
            return  # an earlier incarnation's
        if isinstance(outcome, SequenceConflictError):
            raise outcome
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
            question.reply.offer(ConsultationResult("failed", BROKE))
        for unstored in self._unstored:
            unstored.reply.offer(ConsultationResult("failed", BROKE))
        self._open.clear()
