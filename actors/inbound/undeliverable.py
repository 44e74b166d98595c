"""Answers for messages that no actor handled, so that nobody waits in vain.

`is_owed_an_answer` says for which dead letters somebody waits; `Undeliverable` is the
actor that answers.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar

import msgspec

from actors import names
from actors.agents.agent import ASK_AGAIN, BROKE
from actors.journal import answers, commits, notices as telling
from actors.journal.notices import wake_notifiers
from actors.messages.deliveries import Delivery
from actors.messages.inbound import Inbound
from actors.protocol import (
    Deliver,
    Delivered,
    DrainOutbox,
    Failed,
    Hear,
    PermitGranted,
    Route,
    RunTurn,
    StartTurn,
    TurnEnded,
    Undelivered,
)
from actors.services import Services
from runtime.actor.actor import Actor
from runtime.actor.committer import Committer
from runtime.actor.dead_letters import DeadLetter
from runtime.actor.mailbox import MailboxConfig
from runtime.actor.messages import Keyed
from runtime.store.rows import Commit, Committed, Receipt
from runtime.telemetry.logs import EventLog


def unwrapped(letter: DeadLetter) -> object:
    """Give the message of a dead letter, without the key it was sent to."""
    message = letter.message
    return message.message if isinstance(message, Keyed) else message


def is_owed_an_answer(letter: DeadLetter) -> bool:
    """Whether somebody waits for the effect of a dead letter.

    Nobody waits for letters at the end of the system: their messages stay unsettled in
    the store, and the next start routes them again. The same holds for messages to an
    actor that does not exist: they are routed again when it is back.
    """
    reason = letter.reason
    match unwrapped(letter):
        case StartTurn() | RunTurn():
            return reason != "stopped"
        case Hear() | Route():
            return reason not in {"stopped", "no_such_actor"}
        case Deliver():
            return reason in {"poison", "failed", "mailbox_full"}
        case TurnEnded() | PermitGranted():
            return reason == "mailbox_full"
        case _:
            return False


LOG = EventLog("bounce")

SORRY = "⚠️ I could not take this message. Please try again later."
UNSAID = "the transport broke each time it was to say this"

# Chosen.
RESEND_AFTER = 1.0
"""Seconds until a message that found a full mailbox is sent again."""


class Resend(msgspec.Struct, frozen=True):
    """A note to itself: send this letter's message again; there may be room now."""

    letter: DeadLetter


class Undeliverable(Actor):
    """Takes dead letters and answers the people who wait.

    Takes: `DeadLetter`.
    Sends: `TurnEnded` to a session whose turn never ran; a notice to a chat whose
        message was given up, settled as dead in the same commit; `Delivered` and
        `Undelivered` about deliveries that a courier did not send; once more what found
        a full mailbox.
    Keeps: nothing but timers of messages that are sent again.
    Fails: never by a letter.
    Ends: with the system.
    """

    mailbox: ClassVar[MailboxConfig] = MailboxConfig(
        capacity=10_000, overflow="drop_oldest"
    )

    def __init__(self, services: Services) -> None:
        super().__init__()
        self._services = services
        self._committer = Committer(services.store)

    def on_receive(self, message: object) -> None:
        """Answer for one letter."""
        match message:
            case DeadLetter():
                self._answer(message)
            case Resend(letter=letter):
                self.tell(letter.recipient, unwrapped(letter))
            case _:
                super().on_receive(message)

    def _answer(self, letter: DeadLetter) -> None:
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
            case TurnEnded() | PermitGranted():
                self.after(RESEND_AFTER, Resend(letter))
            case _:
                pass  # nobody waits for it; the dead letter is counted

    def _broke(self, start: StartTurn, reason: str) -> None:
        failed = Failed(BROKE, reason, advice=ASK_AGAIN, may_retry=True)
        self.tell(start.session, TurnEnded(start.turn_id, failed))

    def _apologise(self, inbound: Inbound, letter: DeadLetter) -> None:
        reason = letter.reason
        LOG.error(
            "message given up", correlation_id=inbound.correlation_id, reason=reason
        )
        answer = answers.apology(inbound, SORRY, reason, self._services.ids)
        answer = answers.localised(answer, self._services)
        services = self._services
        told = telling.of_unanswered(answer, services)
        tell, metrics = self.tell, self._services.metrics
        connector = inbound.address.connector

        def stored() -> None:
            metrics.messages.add(1, connector, "dead")
            wake_notifiers(self.find, told)
            for delivery in answer.deliveries:
                tell(names.connector(connector), Deliver(delivery))

        self._store(
            lambda: commits.as_unanswered(
                answer, services.clock.wall(), services.keep, told
            ),
            connector,
            stored,
        )

    def _unsaid(self, delivery: Delivery, letter: DeadLetter) -> None:
        """Have a delivery that no courier sent be sent later, or settled as dead."""
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
        self._services.metrics.deliveries.add(1, connector, "dead")
        receipt = Receipt(delivery.id, "dead", UNSAID)
        tell, delivered = self.tell, Delivered(delivery.id)
        wall = self._services.clock.wall
        self._store(
            lambda: Commit(at=wall(), receipts=(receipt,)),
            connector,
            lambda: tell(names.connector(connector), delivered),
        )

    def _store(
        self,
        make: Callable[[], Commit],
        connector: str,
        stored: Callable[[], object],
    ) -> None:
        tell = self.tell

        def done(outcome: Committed | Exception) -> None:
            if isinstance(outcome, Exception):
                # An answer or an earlier apology was stored first; the actor that
                # stored it may have ended before it could send it.
                LOG.warning("apology not stored", why=str(outcome))
                tell(names.connector(connector), DrainOutbox())
            else:
                stored()

        self._committer.submit(self, make, done)
