"""The outbox of one session: stores its answers one after the other, then sends them.

An answer is stored together with what settles its message, and sent when that commit is
durable. Each commit names the number of the journal's last event, so the next one is
written only after the one before it is durable.
"""

from __future__ import annotations

from typing import assert_never

import msgspec

from actors import names
from actors.agents.messages import Hired
from actors.hooks.asker import tell_finished
from actors.journal import answers, commits
from actors.journal.history import Event, History
from actors.journal.notices import wake_notifiers
from actors.journal.parts import entries_of
from actors.memory.messages import tell_remembered
from actors.messages.inbound import Inbound
from actors.messages.state import outcome_of
from actors.messages.tracing import TracedStep
from actors.outbound import reactions
from actors.protocol import Deliver, DrainOutbox, Route, StopDelegated
from actors.rules.text.limits import NoticeLimiter
from actors.schedule.messages import AppointmentsStored
from actors.services import Services
from actors.session import initiative, reply_windows
from runtime.actor.actor import Actor
from runtime.actor.committer import Committer
from runtime.errors import DeliveryKnownError, DuplicateError, SequenceConflictError
from runtime.store.rows import Commit, Committed, Entry
from runtime.telemetry.logs import EventLog

LOG = EventLog("session")

LOST = "⚠️ I had an answer, but it could not be stored. Please ask again."


OutboxItem = answers.Answer | answers.Aside | answers.ChapterEntry


class CommitDecided(msgspec.Struct, frozen=True):
    """To the session itself: a commit is durable, or never will be."""

    answer: OutboxItem
    at: float
    """Unix seconds written with it."""

    outcome: Committed | Exception
    events: tuple[Event, ...] = ()
    """Its events for the journal."""


class StoreAgain(msgspec.Struct, frozen=True):
    """Timer of a session: store the contested answer again."""


class AnswerConcluded(msgspec.Struct, frozen=True):
    """An answer is stored, now or by somebody before, or it never can be stored."""

    answer: answers.Answer
    is_own: bool
    """Whether the session stored it just now, and sent it."""

    was_waited_for: bool
    """Whether this incarnation of the session put it into the outbox."""


class AnswerContested(msgspec.Struct, frozen=True):
    """An answer to several messages is not stored: one of them is settled already."""

    answer: answers.Answer


class EntryConcluded(msgspec.Struct, frozen=True):
    """A journal entry that answers nobody is durable, or never will be."""

    entry: answers.ChapterEntry
    event: Event | None
    """The event in the journal; None: it could not be stored."""


class SessionOutbox:
    """The answers of one session that are not stored yet, oldest first.

    Each method gets the session as an argument. An outbox that kept it would make a
    reference cycle of every session, which only the collector frees.

    Args:
        history: gets the stored events; knows the number of the last one.
    """

    __slots__ = (
        "_agent",
        "_history",
        "_services",
        "_sparing",
        "_stops",
        "_waiting",
    )

    def __init__(self, history: History, agent: str, services: Services) -> None:
        self._history = history
        self._agent = agent
        self._services = services
        self._sparing: NoticeLimiter | None = None  # most conversations refuse nothing
        # Why no deque: an empty one is 600 bytes, an empty list 56, and most
        # conversations store nothing.
        self._waiting: tuple[OutboxItem, ...] = ()
        self._stops: tuple[tuple[str, StopDelegated], ...] = ()

    def put(self, answer: OutboxItem, session: Actor) -> None:
        """Store and send an answer, a notice or an entry, after those before it.

        Args:
            answer: what to store and send; a notice that people are not to hear of is
                dropped.
        """
        if isinstance(answer, answers.Aside):
            if not initiative.is_shown(answer):
                return
            answer = answers.localised_aside(answer, self._services)
            said = answers.with_speaker(answer.delivery, self._agent)
            answer = msgspec.structs.replace(answer, delivery=said)
        elif isinstance(answer, answers.Answer):
            answer = initiative.for_people(answer, self._agent, self._services.ids)
            answer = answers.leaving_ids(answer, self._services.ids)
            if [each for each in answer.deliveries if not each.agent]:
                # They are the runtime's own words, not only the agent's.
                answer = answers.localised(answer, self._services)
                answer = answers.spoken_by(answer, self._agent)
        self._waiting = (*self._waiting, answer)
        if len(self._waiting) == 1:
            self.store_next(session)

    def put_sparingly(self, answer: answers.Answer, session: Actor) -> None:
        """Store that a message is dropped; tell its sender unless told lately."""
        inbound, services = answer.inbound, self._services
        account = services.accounts[inbound.address.connector]
        is_own = not (inbound.chain.agents or inbound.occasion)
        if self._sparing is None:
            self._sparing = NoticeLimiter(services.limits.told_again_after)
        now = services.clock.monotonic()
        if is_own and account.abilities.shows_asides:
            whose = (inbound.sender_id, *answer.settled)
            if not self._sparing.may_tell(whose, now):
                services.metrics.left_out.add(1, answer.settled[1])
                answer = answers.without_notice(answer)
        self.put(answer, session)

    def renew(self) -> None:
        """Go by the settings as they are now."""
        self._sparing = None

    def stop_after(self, inbound: Inbound, stop: StopDelegated) -> None:
        """Stop what an answer hands to other agents, as soon as it is handed on."""
        origin = inbound.correlation_id
        only = msgspec.structs.replace(stop, correlation_id=origin)
        self._stops = (*self._stops, (inbound.id, only))

    def store_next(self, session: Actor) -> None:
        """Store the oldest answer, if there is one."""
        if not self._waiting:
            return
        writing = Writing(self, self._waiting[0], session)
        committer = Committer(self._services.store)
        committer.submit(session, writing.make, writing.done, "answer")

    def send(self, item: OutboxItem, session: Actor, at: float) -> None:
        """Send an item that is stored, since `at` in Unix seconds."""
        if (trace := self._services.trace) is not None and isinstance(
            item, answers.Answer
        ):
            trace(self._step(item, max(0.0, self._services.clock.wall() - at)))
            for each in item.also:
                trace(settled_with(item, each.inbound))
        _send(item, session, self._agent)
        if self._stops:
            self._stop_handed(item, session)

    def _step(self, answer: answers.Answer, seconds: float) -> TracedStep:
        inbound = answer.inbound
        left = None
        if inbound.id == inbound.correlation_id and answer.put_off is None:
            left = parts_for(answer, inbound)
        return TracedStep(
            stage="commit",
            correlation_id=inbound.correlation_id,
            seconds=seconds,
            agent=self._agent,
            outcome=outcome_of(*answer.settled),
            parts_left=left,
        )

    def write(self, answer: OutboxItem) -> tuple[tuple[Event, ...], Commit]:
        """Make the events and the commit of an item, as of now."""
        history, services = self._history, self._services
        now = services.clock.wall()
        match answer:
            case answers.Aside():
                return (), commits.as_aside(answer, now)
            case answers.ChapterEntry():
                event = commits.as_chapter(answer, history)
                return (event,), commits.as_entry(answer, event, history, services)
            case answers.Answer():
                events = commits.as_events(answer)
                return events, commits.as_exchange(answer, history, services, events)
            case _:
                assert_never(answer)

    def take(
        self, stored: CommitDecided, session: Actor
    ) -> AnswerConcluded | AnswerContested | EntryConcluded | None:
        """Take the outcome of a commit.

        Returns:
            What follows from it; None: nothing, or an apology takes its place.

        Raises:
            SequenceConflictError: somebody else writes to this journal.
        """
        match stored.answer:
            case answers.Aside() as aside:
                self._told(aside, stored.outcome, session)
                return None
            case answers.ChapterEntry() as entry:
                return self._entered(entry, stored)
            case answers.Answer() as answer:
                return self._answered(answer, stored, session)
            case _:
                assert_never(stored.answer)

    def _answered(
        self, answer: answers.Answer, stored: CommitDecided, session: Actor
    ) -> AnswerConcluded | AnswerContested | None:
        outcome = stored.outcome
        if not (self._waiting and self._waiting[0] is answer):
            return self._stored_before(answer, stored)
        if isinstance(outcome, Committed):
            self._take_up(stored, outcome)
            self._waiting = self._waiting[1:]
            return AnswerConcluded(answer, is_own=True, was_waited_for=True)
        return self._refused(answer, outcome, session)

    def _refused(
        self, answer: answers.Answer, error: Exception, session: Actor
    ) -> AnswerConcluded | AnswerContested | None:
        """Go on after the store refused an answer."""
        if isinstance(error, SequenceConflictError):
            raise error
        if isinstance(error, DeliveryKnownError):
            self._store_apart(answer, error, session)
        elif isinstance(error, DuplicateError):
            if answer.also:
                return AnswerContested(answer)
            # An earlier incarnation, or an earlier process, stored this answer; what it
            # could not send is among the stored deliveries.
            return self.give_way(answer, session)
        elif self._is_given_up(answer, error, session):
            self._waiting = self._waiting[1:]
            return AnswerConcluded(answer, is_own=False, was_waited_for=True)
        return None

    def _store_apart(
        self, answer: answers.Answer, error: DeliveryKnownError, session: Actor
    ) -> None:
        """Store an answer under new ids: another delivery has its usual ones.

        Its message is not settled, so the answer was not stored before.
        """
        origin = answer.inbound.correlation_id
        LOG.fault("delivery id used twice", error, correlation_id=origin)
        ids = self._services.ids
        self._waiting = (answers.with_new_ids(answer, ids), *self._waiting[1:])
        self.store_next(session)

    def put_instead(self, answer: answers.Answer) -> None:
        """Put an answer in the place of the contested one."""
        self._waiting = (answer, *self._waiting[1:])

    def give_way(self, answer: answers.Answer, session: Actor) -> AnswerConcluded:
        """Drop an answer whose message, or whose first message, is settled already.

        A stop that came for it is meant for what the stored one has handed on.
        """
        self._stop_handed(answer, session)
        self._history.note_answered(answer.inbound.id)
        self._waiting = self._waiting[1:]
        return AnswerConcluded(answer, is_own=False, was_waited_for=True)

    def _told(
        self, aside: answers.Aside, outcome: Committed | Exception, session: Actor
    ) -> None:
        """Go on after a notice is stored, or refused."""
        if not (self._waiting and self._waiting[0] is aside):
            return  # an earlier incarnation's
        if isinstance(outcome, DuplicateError):
            # An earlier attempt stored it, and the connector sends it if nobody has; or
            # the message is settled, and there is no more to say.
            connector = aside.delivery.address.connector
            session.tell(names.connector(connector), DrainOutbox())
        elif isinstance(outcome, Exception):
            LOG.fault("notice lost", outcome, delivery=aside.delivery.id)
            self._services.metrics.deliveries.add(
                1, aside.delivery.address.connector, "lost"
            )
        self._waiting = self._waiting[1:]
        self.store_next(session)

    def _stored_before(
        self, answer: answers.Answer, stored: CommitDecided
    ) -> AnswerConcluded | None:
        """Take up what an earlier incarnation of the session stored.

        This incarnation may hold the same message. Then its own answer is refused as a
        duplicate later.
        """
        if isinstance(stored.outcome, Exception):
            return None
        self._take_up(stored, stored.outcome)
        return AnswerConcluded(answer, is_own=True, was_waited_for=False)

    def _is_given_up(
        self, answer: answers.Answer, error: Exception, session: Actor
    ) -> bool:
        """Put an apology in the place of an answer that can never be stored.

        Another turn would end the same way. If the apology cannot be stored either, the
        message stays unsettled until the next start.

        Returns:
            Whether the answer was that apology.
        """
        inbound = answer.inbound
        LOG.fault("answer not stored", error, correlation_id=inbound.correlation_id)
        if answer.settled[0] == "dead":
            return True
        lost = answers.apology(inbound, LOST, "not_stored", self._services.ids)
        self._waiting = (lost, *self._waiting[1:])
        self.store_next(session)
        return False

    def _stop_handed(self, answer: OutboxItem, session: Actor) -> None:
        """Stop what an answer handed on after its stop came too late."""
        if not isinstance(answer, answers.Answer) or answer.put_off is not None:
            return  # it hands nothing on
        for inbound_id, stop in self._stops:
            if inbound_id == answer.inbound.id:
                session.tell(names.ROUTER, stop)
        self._stops = tuple([x for x in self._stops if x[0] != answer.inbound.id])

    def _entered(
        self, entry: answers.ChapterEntry, stored: CommitDecided
    ) -> EntryConcluded | None:
        """Go on after a journal entry is stored, or refused."""
        outcome = stored.outcome
        is_waiting = bool(self._waiting) and self._waiting[0] is entry
        if isinstance(outcome, Committed):
            self._take_up(stored, outcome)
        elif not is_waiting:
            return None  # an earlier incarnation's
        elif isinstance(outcome, SequenceConflictError):
            raise outcome
        else:
            LOG.fault("entry not stored", outcome, entry=entry.chapter.id)
        if not is_waiting:
            return None
        self._waiting = self._waiting[1:]
        is_stored = isinstance(outcome, Committed)
        return EntryConcluded(entry, stored.events[0] if is_stored else None)

    def announce(self, concluded: AnswerConcluded, session: Actor) -> None:
        """Count an answer that is stored, and tell those who wait for it."""
        answer, services = concluded.answer, self._services
        connector = answer.inbound.address.connector
        if concluded.is_own and answer.put_off is None:
            for _ in range(1 + len(answer.also)):
                services.metrics.messages.add(1, connector, outcome_of(*answer.settled))
            now = services.clock.wall()
            replied = reply_windows.replied(answer, self._agent, now)
            if replied is not None:
                session.tell(names.ROUTER, replied)
            tell_finished(session, answer, self._agent, services)
        elif concluded.was_waited_for and not concluded.is_own:
            session.tell(names.connector(connector), DrainOutbox())

    def show_end(self, answer: answers.Answer, begun: int, session: Actor) -> None:
        """Show at each message of a turn, which was begun so often, how it ended."""
        agent, services = self._agent, self._services
        for each in (answer.inbound, *[x.inbound for x in answer.also]):
            if answer.settled == ("cancelled", "interrupted"):
                reactions.withdrawn(each, agent, session, services)
                continue
            own = msgspec.structs.replace(answer, inbound=each)
            reactions.concluded(own, begun, agent, session, services)

    def _take_up(self, stored: CommitDecided, committed: Committed) -> None:
        """Add the stored events to the history, unless they were read from the disk."""
        first = committed.sequences[-1] - len(stored.events) + 1
        for sequence, event in enumerate(stored.events, first):
            self._history.take(sequence, event, stored.at)


class Writing(msgspec.Struct):
    """One item on its way to the store."""

    outbox: SessionOutbox
    item: OutboxItem
    session: Actor
    at: float = 0.0
    events: tuple[Event, ...] = ()
    entries: tuple[Entry, ...] = ()

    def make(self) -> Commit:
        """Make the commit, for the first time or again."""
        self.events, commit = self.outbox.write(self.item)
        self.at, self.entries = commit.at, commit.entries
        if commit.handovers:
            self.entries = entries_of(commit)
        return commit

    def done(self, outcome: Committed | Exception) -> None:
        """Send what is stored, and tell the session."""
        session = self.session
        # Why here: the session may be killed before it gets `CommitDecided`, and a
        # later answer must not go out before this one.
        if isinstance(outcome, Committed):
            self.outbox.send(self.item, session, self.at)
            if self.entries:
                wake_notifiers(session.find, self.entries)
        session.note(CommitDecided(self.item, self.at, outcome, self.events))


def settled_with(answer: answers.Answer, inbound: Inbound) -> TracedStep:
    """Give the step of a message that an answer to another one settles, too."""
    return TracedStep(
        stage="settle",
        correlation_id=inbound.correlation_id,
        seconds=0.0,
        outcome=outcome_of(*answer.settled),
        parts_left=parts_for(answer, inbound),
    )


def parts_for(answer: answers.Answer, inbound: Inbound) -> int:
    """Count what an answer sends to the author of a message."""
    cause = inbound.correlation_id
    return sum(x.is_root and x.correlation_id == cause for x in answer.deliveries)


def _send(answer: OutboxItem, session: Actor, agent: str) -> None:
    """Send what an item says and hands on; tell the actors that read its rows."""
    if isinstance(answer, answers.ChapterEntry):
        tell_remembered(session, agent, answer.remembered)
        return
    if isinstance(answer, answers.Aside):
        said = answer.delivery
        session.tell(names.connector(said.address.connector), Deliver(said))
        return
    connector = names.connector(answer.inbound.address.connector)
    for delivery in answer.deliveries:
        session.tell(connector, Deliver(delivery))
    routes = tuple(map(Route, answer.handed))
    tell_remembered(session, agent, (*answer.remembered, *answer.carried.facts))
    if answer.carried.appointments:
        session.tell(names.SCHEDULER, AppointmentsStored(answer.carried.appointments))
    if answer.carried.hires:
        # They may be for new agents: `staff` passes them on when those run.
        session.tell(names.STAFF, Hired(routes))
    else:
        for route in routes:
            session.tell(names.ROUTER, route)
