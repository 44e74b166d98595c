"""Answers for messages that no actor handled, so that nobody waits for nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

import msgspec

from actors import answers, commits, names, telling
from actors.letters import unwrapped
from actors.protocol import (
    Deliver,
    Delivered,
    DrainOutbox,
    Failed,
    Granted,
    Hear,
    Route,
    RunTurn,
    StartTurn,
    TurnEnded,
    Undelivered,
)
from actors.telling import wake_notifiers
from runtime.actor import Actor
from runtime.deadletters import DeadLetter
from runtime.errors import StoreUnavailableError
from runtime.logs import EventLog
from runtime.mailbox import MailboxConfig
from runtime.rows import (
    Commit,
    Receipt,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from actors.deliveries import Delivery
    from actors.messages import Inbound
    from actors.services import Services
    from runtime.rows import Committed

LOG = EventLog("bounce")

SORRY = "⚠️ I could not take this message. Please try again later."
BROKE = "⚠️ Something broke while I was answering."
UNSAID = "the transport broke each time it was to say this"

# Chosen: seconds until what found no room, or no disk, is tried again.
RETRY = 1.0


class Again(msgspec.Struct, frozen=True):
    """A note to itself: this letter could not be answered; perhaps now."""

    letter: DeadLetter


class Retry(msgspec.Struct, frozen=True):
    """A note to itself: set a timer for this letter."""

    letter: DeadLetter


class Bounce(Actor):
    """Takes dead letters and tells whoever waits for an answer.

    Takes: `DeadLetter`.
    Sends: `TurnEnded` to a session whose turn never ran; a notice to a chat whose
        message was given up, settled as dead in the same commit; `Delivered` and
        `Undelivered` about what a courier did not say; what found a full mailbox
        once more to the session it was for.
    Keeps: nothing but timers for what is tried again.
    Fails: never by a letter.
    Ends: with the system.
    """

    mailbox: ClassVar[MailboxConfig] = MailboxConfig(
        capacity=10_000, overflow="drop_oldest"
    )

    def __init__(self, services: Services) -> None:
        super().__init__()
        self._services = services

    def on_receive(self, message: object) -> None:
        """Answer for one letter."""
        match message:
            case DeadLetter():
                self._answer(message)
            case Again(letter=letter):
                self._answer(letter, is_due=True)
            case Retry(letter=letter):
                self.after(RETRY, Again(letter))
            case _:
                super().on_receive(message)

    def _answer(self, letter: DeadLetter, *, is_due: bool = False) -> None:
        match unwrapped(letter):
            case StartTurn() as start:
                self._broke(start, letter.reason)
            case RunTurn(start=start):
                self._broke(
                    start, "bug" if letter.reason == "failed" else letter.reason
                )
            case Hear(inbound=inbound) | Route(inbound=inbound):
                self._apologise(inbound, letter)
            case Deliver(delivery=delivery):
                self._unsaid(delivery, letter)
            case TurnEnded() | Granted() as message if is_due:
                self.tell(letter.recipient, message)
            case TurnEnded() | Granted():
                self.after(RETRY, Again(letter))
            case _:
                pass  # nobody waits for it; it is counted

    def _broke(self, start: StartTurn, reason: str) -> None:
        self.tell(
            start.session,
            TurnEnded(start.turn_id, Failed(BROKE, reason, may_retry=True)),
        )

    def _apologise(self, inbound: Inbound, letter: DeadLetter) -> None:
        reason = letter.reason
        LOG.error(
            "message given up", correlation_id=inbound.correlation_id, reason=reason
        )
        answer = answers.apology(inbound, SORRY, reason, self._services.ids)
        answer = answers.localised(answer, self._services)
        services = self._services
        told = telling.of_unheard(answer, services)
        commit = commits.as_unheard(answer, services.clock.wall(), services.keep, told)
        tell, metrics = self.tell, self._services.metrics
        connector = inbound.address.connector

        def stored() -> None:
            metrics.message(connector, "dead")
            wake_notifiers(self.find, commit.entries)
            for delivery in answer.deliveries:
                tell(names.connector(connector), Deliver(delivery))

        self._store(commit, letter, connector, stored)

    def _unsaid(self, delivery: Delivery, letter: DeadLetter) -> None:
        """See that a delivery no courier will say is said later, or is dead."""
        connector = delivery.address.connector
        if letter.reason != "poison":
            self.tell(names.connector(connector), Undelivered(delivery.id))
            return
        LOG.error(
            "delivery given up",
            correlation_id=delivery.correlation_id,
            connector=connector,
            delivery=delivery.id,
            why=UNSAID,
        )
        self._services.metrics.delivery(connector, "dead")
        receipt = Receipt(delivery.id, "dead", UNSAID)
        commit = Commit(at=self._services.clock.wall(), receipts=(receipt,))
        tell, delivered = self.tell, Delivered(delivery.id)
        self._store(
            commit,
            letter,
            connector,
            lambda: tell(names.connector(connector), delivered),
        )

    def _store(
        self,
        commit: Commit,
        letter: DeadLetter,
        connector: str,
        stored: Callable[[], object],
    ) -> None:
        note, tell = self.note, self.tell

        def done(outcome: Committed | Exception) -> None:
            if isinstance(outcome, StoreUnavailableError):
                note(Retry(letter))
            elif isinstance(outcome, Exception):
                # Somebody else was first: an answer, or an apology before this one.
                # Whoever stored it may not have lived to send it.
                LOG.warning("apology not stored", why=str(outcome))
                tell(names.connector(connector), DrainOutbox())
            else:
                stored()

        self._services.store.submit(commit, done)
