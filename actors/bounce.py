"""Answers for messages that no actor handled, so that nobody waits for nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from actors import answers, names
from actors.protocol import (
    Deliver,
    Failed,
    Hear,
    Route,
    RunTurn,
    StartTurn,
    TurnEnded,
)
from runtime.actor import Actor
from runtime.deadletters import DeadLetter
from runtime.logs import EventLog
from runtime.mailbox import MailboxConfig
from runtime.messages import Keyed

if TYPE_CHECKING:
    from actors.messages import Inbound
    from actors.services import Services
    from runtime.store import Committed

LOG = EventLog("bounce")

SORRY = "⚠️ I could not take this message. Please try again later."
BROKE = "⚠️ Something broke while I was answering."


class Bounce(Actor):
    """Takes dead letters and tells whoever waits for an answer.

    Takes: `DeadLetter`.
    Sends: `TurnEnded` to a session whose turn never ran; a notice to a chat whose
        message was given up, settled as dead in the same commit.
    Keeps: nothing.
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
        if not isinstance(message, DeadLetter):
            super().on_receive(message)
            return
        letter = message.message
        if isinstance(letter, Keyed):
            letter = letter.message
        match letter:
            case StartTurn() | RunTurn():
                start = letter.start if isinstance(letter, RunTurn) else letter
                failed = Failed(BROKE, message.reason)
                self.tell(start.session, TurnEnded(start.turn_id, failed))
            case Hear(inbound=inbound) | Route(inbound=inbound):
                self._apologise(inbound, message.reason)
            case _:
                pass  # nobody waits for it; it is counted

    def _apologise(self, inbound: Inbound, reason: str) -> None:
        LOG.error(
            "message given up", correlation_id=inbound.correlation_id, reason=reason
        )
        answer = answers.notice(inbound, SORRY, ("dead", reason))
        commit = answers.as_commit(answer, "", 0, self._services.clock.wall())
        tell, metrics = self.tell, self._services.metrics

        def stored(outcome: Committed | Exception) -> None:
            if isinstance(outcome, Exception):
                # Its row stays unsettled: the next start takes it up again.
                LOG.warning("apology not stored", why=str(outcome))
                return
            connector = inbound.address.connector
            metrics.message(connector, "dead")
            for delivery in answer.deliveries:
                tell(names.connector(connector), Deliver(delivery))

        self._services.store.submit(commit, stored)


def is_owed_an_answer(letter: DeadLetter) -> bool:
    """Whether somebody waits for what a dead letter would have brought.

    Letters at the end of the system are not: their messages stay unsettled in the
    store, and the next start takes them up again.
    """
    message = letter.message
    if isinstance(message, Keyed):
        message = message.message
    is_of_the_way = isinstance(message, StartTurn | RunTurn | Hear | Route)
    return is_of_the_way and letter.reason not in {"stopped", "interrupted"}
