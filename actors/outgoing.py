"""What a session has said and the store has not yet: one commit after the other.

Each commit expects the number of the journal's last event, so the next one can only
be written when the one before it is durable.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, assert_never

import msgspec

from actors import answers, commits, journal, names, wording
from actors.history import Event
from actors.protocol import Deliver, DrainOutbox, Route, StopCaused
from actors.remembering import tell_remembered
from actors.rules.keys import parse_key
from actors.scheduling import Scheduled
from actors.staffing import Hired
from actors.telling import wake_notifiers
from runtime.errors import (
    DeliveryKnownError,
    DuplicateError,
    SequenceConflictError,
    StoreUnavailableError,
)
from runtime.logs import EventLog
from runtime.rows import Committed

if TYPE_CHECKING:
    from actors.history import History
    from actors.hooking import HooksSaid
    from actors.messages import Inbound
    from actors.services import Services
    from runtime.actor import Actor
    from runtime.rows import Commit

LOG = EventLog("session")

# Chosen: seconds until a failed commit is tried again; the disk may be full for
# hours, and a try is cheap.
RETRY_COMMIT = 1.0

LOST = "⚠️ I had an answer, but it could not be stored. Please ask again."


Said = answers.Answer | answers.Aside | answers.Entry


class Stored(msgspec.Struct, frozen=True):
    """A session's note to itself: what became of a commit."""

    answer: Said
    at: float
    """Unix seconds written with it."""

    outcome: Committed | Exception
    events: tuple[Event, ...] = ()
    """What it told the journal."""


class RetryCommit(msgspec.Struct, frozen=True):
    """A note to itself: try a commit again that the disk refused."""


class Concluded(msgspec.Struct, frozen=True):
    """An answer is durable; go on."""

    answer: answers.Answer
    is_own: bool
    """Whether it was stored just now, and was sent. Else somebody stored one before,
    or it never can be stored."""

    was_waited_for: bool
    """Whether this incarnation put it in."""


class Contested(msgspec.Struct, frozen=True):
    """An answer to several messages is not stored: somebody has settled one of them."""

    answer: answers.Answer


class Entered(msgspec.Struct, frozen=True):
    """Something in the journal that answers nobody is durable, or never will be."""

    entry: answers.Entry
    event: Event | None
    """As the journal has it; None: it has not."""


class Outgoing:
    """The answers of one session that are not stored yet, oldest first.

    The session comes with every call: kept here, each of the very many sessions would
    be circular, and stay in memory until the collector finds it.

    Args:
        history: takes up what is stored; knows the number of the last event.
        services: where to store.
    """

    __slots__ = ("_asked", "_history", "_services", "_stops", "_waiting")

    def __init__(self, history: History, services: Services) -> None:
        self._history = history
        self._services = services
        self._asked = ""  # the key of what hooks are asked about the oldest of these
        # Why no deque: an empty one is 600 bytes, an empty list 56, and most
        # conversations store nothing.
        self._waiting: tuple[Said, ...] = ()
        self._stops: tuple[tuple[str, StopCaused], ...] = ()

    def put(self, answer: Said, session: Actor) -> None:
        """Store an answer, or what is said beside one, after those before it.

        Args:
            answer: what is stored, and then sent.
            session: on whose behalf things are told and timed.
        """
        if isinstance(answer, answers.Aside):
            answer = answers.localised_aside(answer, self._services)
        elif isinstance(answer, answers.Answer):
            answer = answers.leaving_ids(answer, self._services.ids)
            answer = answers.localised(answer, self._services)
        self._waiting = (*self._waiting, answer)
        if len(self._waiting) == 1:
            self.store_next(session)

    def stop_after(self, inbound: Inbound, stop: StopCaused) -> None:
        """Have what an answer hands on stopped as soon as it is handed on.

        Args:
            inbound: what the answer is to; it is on its way to the disk.
            stop: why.
        """
        origin = inbound.correlation_id
        only = msgspec.structs.replace(stop, correlation_id=origin)
        self._stops = (*self._stops, (inbound.id, only))

    def store_next(self, session: Actor) -> None:
        """Store the oldest answer, if there is one."""
        if self._asked or not self._waiting:
            return
        answer = self._waiting[0]
        if isinstance(answer, answers.Answer) and answer.words:
            agent = parse_key(self._history.stream).agent
            self._asked = wording.ask(answer, agent, session, self._services)
            if self._asked:
                return
        events, commit = self._written(answer)

        def done(outcome: Committed | Exception) -> None:
            # Why here: the session may be killed before it is told, and what is
            # stored later must not go out before this.
            if isinstance(outcome, Committed):
                _send(answer, session, parse_key(self._history.stream).agent)
                self._stop_handed(answer, session)
                wake_notifiers(session.find, commit.entries)
            session.note(Stored(answer, commit.at, outcome, events))

        self._services.store.submit(commit, done)

    def worded(self, said: HooksSaid, session: Actor) -> None:
        """Go on with the oldest answer as hooks leave it."""
        answer = self._waiting[0] if self._waiting else None
        if said.key == self._asked and isinstance(answer, answers.Answer):
            self._asked = ""
            answer = wording.worded(answer, said.passed, self._services)
            self._waiting = (answer, *self._waiting[1:])
            self.store_next(session)

    def _written(self, answer: Said) -> tuple[tuple[Event, ...], Commit]:
        """Write down what comes next; give what it tells the journal, too."""
        history, services = self._history, self._services
        now = services.clock.wall()
        match answer:
            case answers.Aside():
                return (), commits.as_told(answer, now)
            case answers.Entry():
                event = journal.as_chapter(answer, history)
                return (event,), journal.as_entry(answer, event, history, services)
            case answers.Answer():
                commit = commits.as_exchange(answer, history, services)
                return commits.as_events(answer), commit
            case _:
                assert_never(answer)

    def take(
        self, stored: Stored, session: Actor
    ) -> Concluded | Contested | Entered | None:
        """Learn what became of a commit.

        Returns:
            None: not yet: the disk refused it, and it is tried again after a while; or
            an apology takes its place.

        Raises:
            SequenceConflictError: somebody else writes to this journal.
        """
        match stored.answer:
            case answers.Aside() as aside:
                self._told(aside, stored.outcome, session)
                return None
            case answers.Entry() as entry:
                return self._entered(entry, stored, session)
            case answers.Answer() as answer:
                return self._answered(answer, stored, session)
            case _:
                assert_never(stored.answer)

    def _answered(
        self, answer: answers.Answer, stored: Stored, session: Actor
    ) -> Concluded | Contested | None:
        outcome = stored.outcome
        if not (self._waiting and self._waiting[0] is answer):
            return self._stored_before(answer, stored)
        if isinstance(outcome, Committed):
            self._take_up(stored, outcome)
            self._waiting = self._waiting[1:]
            return Concluded(answer, is_own=True, was_waited_for=True)
        return self._refused(answer, outcome, session)

    def _refused(
        self, answer: answers.Answer, error: Exception, session: Actor
    ) -> Concluded | Contested | None:
        """Go on with an answer that was not stored just now."""
        if isinstance(error, SequenceConflictError):
            raise error
        if isinstance(error, StoreUnavailableError):
            LOG.warning("answer waits for the disk", error_text=str(error))
            session.after(RETRY_COMMIT, RetryCommit())
        elif isinstance(error, DeliveryKnownError):
            self._store_apart(answer, error, session)
        elif isinstance(error, DuplicateError):
            if answer.also:
                return Contested(answer)
            # An earlier incarnation, or an earlier process, stored this answer; what
            # it could not send stands in the outbox.
            self._stop_handed(answer, session)
            return self.give_way(answer)
        elif self._is_given_up(answer, error, session):
            self._waiting = self._waiting[1:]
            return Concluded(answer, is_own=False, was_waited_for=True)
        return None

    def _store_apart(
        self, answer: answers.Answer, error: DeliveryKnownError, session: Actor
    ) -> None:
        """Store an answer under ids of its own: something else goes by its usual ones.

        Nobody has settled its message, so it was not stored before.
        """
        origin = answer.inbound.correlation_id
        LOG.fault("delivery id used twice", error, correlation_id=origin)
        ids = self._services.ids
        self._waiting = (answers.with_new_ids(answer, ids), *self._waiting[1:])
        self.store_next(session)

    def put_instead(self, answer: answers.Answer) -> None:
        """Let an answer take the place of the one that was contested."""
        self._waiting = (answer, *self._waiting[1:])

    def give_way(self, answer: answers.Answer) -> Concluded:
        """Let an answer go whose message, or whose first, somebody has settled."""
        self._history.note_answered(answer.inbound.id)
        self._waiting = self._waiting[1:]
        return Concluded(answer, is_own=False, was_waited_for=True)

    def _told(
        self, aside: answers.Aside, outcome: Committed | Exception, session: Actor
    ) -> None:
        """Go on after what was said beside an answer, stored or not."""
        if not (self._waiting and self._waiting[0] is aside):
            return  # an earlier incarnation's
        if isinstance(outcome, StoreUnavailableError):
            LOG.warning("notice waits for the disk", error_text=str(outcome))
            session.after(RETRY_COMMIT, RetryCommit())
            return
        if isinstance(outcome, DuplicateError):
            # Said by an earlier attempt; should nobody have sent it, it is now.
            connector = aside.delivery.address.connector
            session.tell(names.connector(connector), DrainOutbox())
        elif isinstance(outcome, Exception):
            LOG.fault("notice lost", outcome, delivery=aside.delivery.id)
            self._services.metrics.delivery(aside.delivery.address.connector, "lost")
        self._waiting = self._waiting[1:]
        self.store_next(session)

    def _stored_before(
        self, answer: answers.Answer, stored: Stored
    ) -> Concluded | None:
        """Take up what an earlier incarnation stored.

        The same message may be held by this one, too; then its answer turns out to be
        stored when it is stored again.
        """
        if isinstance(stored.outcome, Exception):
            return None
        self._take_up(stored, stored.outcome)
        return Concluded(answer, is_own=True, was_waited_for=False)

    def _is_given_up(
        self, answer: answers.Answer, error: Exception, session: Actor
    ) -> bool:
        """Say that an answer is lost which can never be stored.

        Asking the model again would end the same way. If not even that can be said,
        the message stays unsettled for the next start.
        """
        inbound = answer.inbound
        LOG.fault("answer not stored", error, correlation_id=inbound.correlation_id)
        if answer.settled[0] == "dead":
            return True
        lost = answers.apology(inbound, LOST, "not_stored", self._services.ids)
        self._waiting = (lost, *self._waiting[1:])
        self.store_next(session)
        return False

    def _stop_handed(self, answer: Said, session: Actor) -> None:
        """Stop what an answer handed on when it was too late to keep it back."""
        if not isinstance(answer, answers.Answer) or answer.put_off is not None:
            return  # something else about the same message
        for inbound_id, stop in self._stops:
            if inbound_id == answer.inbound.id:
                session.tell(names.ROUTER, stop)
        self._stops = tuple(x for x in self._stops if x[0] != answer.inbound.id)

    def _entered(
        self, entry: answers.Entry, stored: Stored, session: Actor
    ) -> Entered | None:
        """Go on after what answers nobody, stored or not."""
        outcome = stored.outcome
        is_waiting = bool(self._waiting) and self._waiting[0] is entry
        if isinstance(outcome, Committed):
            self._take_up(stored, outcome)
        elif not is_waiting:
            return None  # an earlier incarnation's
        elif isinstance(outcome, SequenceConflictError):
            raise outcome
        elif isinstance(outcome, StoreUnavailableError):
            LOG.warning("entry waits for the disk", error_text=str(outcome))
            session.after(RETRY_COMMIT, RetryCommit())
            return None
        else:
            LOG.fault("entry not stored", outcome, entry=entry.chapter.id)
        if not is_waiting:
            return None
        self._waiting = self._waiting[1:]
        is_stored = isinstance(outcome, Committed)
        return Entered(entry, stored.events[0] if is_stored else None)

    def _take_up(self, stored: Stored, committed: Committed) -> None:
        """Add to the history what was stored, unless it was read from the journal."""
        first = committed.sequences[-1] - len(stored.events) + 1
        for sequence, event in enumerate(stored.events, first):
            self._history.take(sequence, event, stored.at)


def _send(answer: Said, session: Actor, agent: str) -> None:
    """Hand out what an answer says, and hands on; tell who waits for its rows."""
    if isinstance(answer, answers.Entry):
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
        session.tell(names.SCHEDULER, Scheduled(answer.carried.appointments))
    if answer.carried.hires:
        # They may be for agents that are new: `staff` sends them on once it is so.
        session.tell(names.STAFF, Hired(routes))
    else:
        for route in routes:
            session.tell(names.ROUTER, route)
