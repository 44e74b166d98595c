"""Messages that no agent hears, or no actor handled: nobody waits for them in vain.

What no agent hears is settled as dropped by `UnroutedMessages`, and its sender told.
`is_owed_an_answer` says for which dead letters somebody waits; `Undeliverable` is the
actor that answers.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar

import msgspec

from actors import names
from actors.agents.agent import ASK_AGAIN, BROKE
from actors.journal import answers, commits, notices
from actors.journal.answers import Answer
from actors.journal.outbox import silent_result
from actors.messages.deliveries import Delivery
from actors.messages.inbound import Inbound
from actors.messages.state import outcome_of
from actors.messages.tracing import TracedStep
from actors.protocol import (
    Deliver,
    Delivered,
    DrainOutbox,
    Failed,
    Hear,
    MessageSettled,
    PermitGranted,
    Route,
    RunTurn,
    StartTurn,
    TurnEnded,
    Undelivered,
)
from actors.rules.text.limits import NoticeLimiter
from actors.services import Services
from runtime.actor.actor import Actor
from runtime.actor.committer import Committer
from runtime.actor.dead_letters import DeadLetter
from runtime.actor.mailbox import MailboxConfig
from runtime.actor.messages import Keyed
from runtime.store.rows import Commit, Committed, Entry, Receipt, SettledState
from runtime.telemetry.logs import EventLog

LOG = EventLog("bounce")
DROPPED = EventLog("router")


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
        told = notices.of_unanswered(answer, services)
        tell, metrics = self.tell, self._services.metrics
        connector = inbound.address.connector

        def stored() -> None:
            metrics.messages.add(1, connector, "dead")
            notices.wake_notifiers(self.find, told)
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


TOLD_ONCE = frozenset({"not_permitted", "no_default_agent"})
"""Reasons for dropping a message that hold for the sender's next ones, too."""


class DropStored(msgspec.Struct, frozen=True):
    """A note to the router: the outcome of the commit that dropped a message."""

    answer: Answer
    outcome: Committed | Exception
    notices: tuple[Entry, ...]
    """Rows that tell other programs of it."""


class UnroutedMessages:
    """Drops messages that no agent hears; the router's own part."""

    def __init__(self, router: Actor, services: Services) -> None:
        self._router = router
        self._services = services
        self._committer = Committer(services.store)
        self._sparing = NoticeLimiter(services.limits.told_again_after)

    def drop(self, inbound: Inbound, reason: str, text: str) -> None:
        """Settle a message as dropped; tell its sender if an answer is expected.

        Args:
            text: for the sender, in the runtime's own words.
        """
        name = inbound.correlation_id
        DROPPED.info("message dropped", correlation_id=name, reason=reason)
        answer = dismissal(inbound, reason, text, self._services)
        if reason in TOLD_ONCE and self._was_told(answer):
            self._services.metrics.left_out.add(1, reason)
            answer = answers.without_notice(answer)
        self._store(answer)

    def _was_told(self, answer: Answer) -> bool:
        """Whether its sender, a person, was told the same lately."""
        inbound, services = answer.inbound, self._services
        is_own = not (inbound.chain.agents or inbound.occasion)
        shows = services.accounts[inbound.address.connector].abilities.shows_asides
        if not (answer.deliveries and is_own and shows):
            return False
        whose = (commits.chat_stream(inbound), inbound.sender_id, answer.settled[1])
        self._sparing.every = services.limits.told_again_after
        return not self._sparing.may_tell(whose, services.clock.monotonic())

    def _store(self, answer: Answer) -> None:
        services, router = self._services, self._router
        told = notices.of_unanswered(answer, services)
        self._committer.submit(
            router,
            lambda: commits.as_unanswered(
                answer, services.clock.wall(), services.keep, told
            ),
            lambda outcome: router.note(DropStored(answer, outcome, told)),
        )

    def stored(self, stored: DropStored) -> None:
        """Tell the connector and other programs, after the commit."""
        answer, router = stored.answer, self._router
        if isinstance(stored.outcome, Exception):
            # Somebody has settled it; send what was stored then.
            connector = answer.inbound.address.connector
            router.tell(names.connector(connector), DrainOutbox())
        else:
            notices.wake_notifiers(router.find, stored.notices)
            tell_dismissed(router, answer, self._services)


def dismissal(inbound: Inbound, reason: str, text: str, services: Services) -> Answer:
    """Make the answer that settles a message as dropped.

    It tells the sender where one waits: in a direct chat, or for a delegation or a
    mention. In a group most messages are for no agent here: only a program that counts
    answers is told, by silence.

    Args:
        text: for the sender, in the runtime's own words.
    """
    settled: tuple[SettledState, str] = ("dropped", reason)
    is_own = not inbound.chain.agents and inbound.id == inbound.correlation_id
    if is_own and not inbound.is_direct:
        # Why stored: a client that waits for the end of each message must learn of it
        # also if this process ends before it is told.
        can = services.accounts[inbound.address.connector].abilities
        waits = (silent_result(inbound, ":".join(settled)),)
        told = waits if can.counts_answers else ()
        return Answer(inbound=inbound, settled=settled, deliveries=told)
    return answers.localised(answers.notice(inbound, text, settled), services)


def tell_dismissed(actor: Actor, answer: Answer, services: Services) -> None:
    """Tell the connector that a message is settled, and give it the notices."""
    account = answer.inbound.address.connector
    connector = names.connector(account)
    services.metrics.messages.add(1, account, outcome_of(*answer.settled))
    for delivery in answer.deliveries:
        actor.tell(connector, Deliver(delivery))
    if not answer.deliveries:
        reason = ":".join(answer.settled)
        actor.tell(connector, MessageSettled(answer.inbound, reason))
        if services.trace is not None:
            services.trace(
                TracedStep(
                    stage="settle",
                    correlation_id=answer.inbound.correlation_id,
                    seconds=0.0,
                    name=account,
                    outcome=outcome_of(*answer.settled),
                    parts_left=0,
                )
            )
