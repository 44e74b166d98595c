"""Sets the reaction at a person's message: seen, answered or failed.

Best effort, by one actor for each message: no answer waits for a reaction, and a failed
one is not sent again later.
"""

from __future__ import annotations

from typing import ClassVar

import msgspec
import trio

from actors import names
from actors.errors import DeliveryBusyError, DeliveryError, DeliveryUnknownError
from actors.journal.answers import Answer
from actors.messages.deliveries import Reaction
from actors.messages.inbound import Inbound
from actors.protocol import ShowReaction, Stage
from actors.services import Services
from actors.transport import Transport
from runtime.actor.actor import Actor
from runtime.actor.mailbox import MailboxConfig
from runtime.actor.messages import Keyed

# Chosen: nobody looks at a reaction that comes later.
ASKED_WITHIN = 10.0
"""Seconds that the platform may take for a reaction."""

# Chosen: a second passes most rate limits, if the platform gives no time.
AGAIN_AFTER = 1.0
MOST_WAIT = 60.0
"""Longest wait in seconds, asked for by a busy platform, before the retry."""


class ReactAgain(msgspec.Struct, frozen=True):
    """A note to itself: retry the last reaction once."""

    wanted: ShowReaction


class ReactionSender(Actor):
    """Sets the reaction at one message.

    Takes: `ShowReaction`. Sends: nothing; calls the platform. Keeps: which reaction is
    shown, as long as it is awake. Fails: when a transport breaks; the reaction stays as
    it is. Ends: a moment after its last message.
    """

    mailbox: ClassVar[MailboxConfig] = MailboxConfig(capacity=16)

    def __init__(
        self, connector: str, transport: Transport, services: Services
    ) -> None:
        super().__init__()
        self._connector = connector
        self._transport = transport
        self._services = services
        self._shown: str | None = None  # unknown

    def on_receive(self, message: object) -> object:
        """Set the reaction, in place of the one before."""
        match message:
            case ShowReaction():
                return self._show(message, is_again=False)
            case ReactAgain(wanted=wanted):
                return self._show(wanted, is_again=True)
            case _:
                return super().on_receive(message)

    async def _show(self, wanted: ShowReaction, *, is_again: bool) -> None:
        settings, presence = self._services.presence, self._transport.presence
        signs = {
            "received": settings.received_sign,
            "answered": settings.answered_sign,
            "failed": settings.failed_sign,
            "silent": "",
        }
        sign, is_first = signs[wanted.stage], wanted.stage == "received"
        before = self._shown
        if before is None:
            before = "" if is_first else settings.received_sign
        if presence is None or sign == before:
            return
        reaction = Reaction(
            correlation_id=wanted.correlation_id,
            address=wanted.address,
            agent=wanted.agent,
            message=wanted.message,
            sign=sign,
            instead_of=before,
        )
        outcome, is_doubtful = "slow", True
        try:
            with trio.move_on_after(ASKED_WITHIN):
                await presence.react(reaction)
                outcome, self._shown = "shown", sign
        except DeliveryBusyError as error:
            outcome, is_doubtful = "busy", False
            self._try_again(wanted, error.retry_after, is_again=is_again)
        except DeliveryUnknownError:
            outcome = "unknown"
        except DeliveryError:
            outcome, is_doubtful = "refused", False
        # A reaction that may be shown is removed in the end as if it were.
        if is_first and self._shown is None and not is_doubtful:
            self._shown = ""
        self._services.metrics.presence.add(1, self._connector, "reaction", outcome)

    def _try_again(
        self, wanted: ShowReaction, retry_after: float | None, *, is_again: bool
    ) -> None:
        """Retry the last reaction once; else the first one would stay for ever."""
        wait = AGAIN_AFTER if retry_after is None else retry_after
        if wanted.stage == "received" or is_again or wait > MOST_WAIT:
            return
        self.after(wait, ReactAgain(wanted))


def concluded(
    answer: Answer, attempts: int, agent: str, session: Actor, services: Services
) -> None:
    """Show how a message ended, if an agent was to answer it.

    Args:
        attempts: how many turns were begun for it.
    """
    state, _ = answer.settled
    # A message without a turn was a command or was refused, or it waited for its turn
    # until it was stopped or displaced.
    waited = state == "cancelled" or answer.settled == ("dropped", "overflow")
    if answer.put_off is not None or not (attempts or waited):
        return
    troubles = [each.trouble for each in answer.deliveries if each.trouble]
    is_silent = {each.kind for each in answer.deliveries} <= {"silence"}
    ended: Stage = "silent" if is_silent else "answered"
    stage: Stage = "failed" if state != "replied" or troubles else ended
    acknowledge(answer.inbound, agent, stage, session, services)


def withdrawn(inbound: Inbound, agent: str, session: Actor, services: Services) -> None:
    """Remove the reaction: somebody else has settled the message."""
    acknowledge(inbound, agent, "silent", session, services)


def acknowledge(
    inbound: Inbound, agent: str, stage: Stage, session: Actor, services: Services
) -> None:
    """Show at a message of people which stage its answer has reached."""
    connector = inbound.address.connector
    # One of the agents that hear it has the message itself, the others have copies.
    is_from_people = not (inbound.chain.agents or inbound.occasion or inbound.copy_of)
    may_react = services.accounts[connector].has_presence
    if not (is_from_people and may_react):
        return
    if not services.shows_reactions(connector):
        return
    wanted = ShowReaction(
        correlation_id=inbound.correlation_id,
        address=inbound.address,
        message=inbound.source_id,
        agent=agent,
        stage=stage,
    )
    key = f"{inbound.address.chat}/{inbound.platform_id}"
    session.tell(names.acknowledgements(connector), Keyed(key, wanted))
