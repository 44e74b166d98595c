"""The small sign at somebody's message: seen, answered, failed (F229).

Best effort. Each message has an actor of its own, beside the couriers: no answer waits
for a sign, and none is said again should one fail.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

import msgspec
import trio

from actors import names
from actors.deliveries import Reaction
from actors.errors import DeliveryBusyError, DeliveryError, DeliveryUnknownError
from actors.protocol import Acknowledge
from runtime.actor import Actor
from runtime.mailbox import MailboxConfig
from runtime.messages import Keyed

if TYPE_CHECKING:
    from actors.answers import Answer
    from actors.messages import Inbound
    from actors.protocol import Stage
    from actors.services import Services
    from actors.transport import Transport

# Chosen: longer, and nobody looks at it any more.
ASKED_WITHIN = 10.0
"""Seconds that the platform may take for a sign."""

# Chosen: a second, which clears most limits, if the platform does not say.
AGAIN_AFTER = 1.0
MOST_WAIT = 60.0
"""Seconds that a busy platform may ask for before the last sign is tried once more."""


class AcknowledgeAgain(msgspec.Struct, frozen=True):
    """A note to itself: try the last sign once more."""

    wanted: Acknowledge


class Acknowledgement(Actor):
    """The sign at one message.

    Takes: `Acknowledge`.
    Sends: nothing; asks the platform.
    Keeps: which sign stands there, as long as it is awake.
    Fails: when a transport breaks; the sign stays as it is.
    Ends: a moment after it was told of last.
    """

    mailbox: ClassVar[MailboxConfig] = MailboxConfig(capacity=16)

    def __init__(
        self, connector: str, transport: Transport, services: Services
    ) -> None:
        super().__init__()
        self._connector = connector
        self._transport = transport
        self._services = services
        self._shown: str | None = None  # not known
        self._is_waiting = False

    def may_passivate(self) -> bool:
        """Whether nothing is to be tried again."""
        return not self._is_waiting

    def on_receive(self, message: object) -> object:
        """Put the sign there, or another one in its place."""
        match message:
            case Acknowledge():
                return self._show(message, is_again=False)
            case AcknowledgeAgain(wanted=wanted):
                self._is_waiting = False
                return self._show(wanted, is_again=True)
            case _:
                return super().on_receive(message)

    async def _show(self, wanted: Acknowledge, *, is_again: bool) -> None:
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
        # What may stand there is taken away in the end as if it did.
        if is_first and self._shown is None and not is_doubtful:
            self._shown = ""
        self._services.metrics.presence(self._connector, "reaction", outcome)

    def _try_again(
        self, wanted: Acknowledge, retry_after: float | None, *, is_again: bool
    ) -> None:
        """Try the last sign once more: the first would stand there for ever."""
        wait = AGAIN_AFTER if retry_after is None else retry_after
        if wanted.stage == "received" or is_again or wait > MOST_WAIT:
            return
        self._is_waiting = True
        self.after(wait, AcknowledgeAgain(wanted))


def received(inbound: Inbound, agent: str, session: Actor, services: Services) -> None:
    """Have people see that an agent will answer what they wrote."""
    _acknowledge(inbound, agent, "received", session, services)


def concluded(
    answer: Answer, attempts: int, agent: str, session: Actor, services: Services
) -> None:
    """Have people see how it ended, if an agent was to answer.

    Args:
        answer: what is stored.
        attempts: how many turns were begun for it.
        agent: whose session it is.
        session: on whose behalf it is told.
        services: settings.
    """
    state, _ = answer.settled
    # What never had a turn was a command, or was not even taken in; or it waited for
    # one until it was stopped, or had to make room.
    waited = state == "cancelled" or answer.settled == ("dropped", "overflow")
    if answer.put_off is not None or not (attempts or waited):
        return
    is_failed = state != "replied" or any(each.trouble for each in answer.deliveries)
    is_silent = all(each.kind == "silence" for each in answer.deliveries)
    ended: Stage = "silent" if is_silent else "answered"
    stage: Stage = "failed" if is_failed else ended
    _acknowledge(answer.inbound, agent, stage, session, services)


def withdrawn(inbound: Inbound, agent: str, session: Actor, services: Services) -> None:
    """Take the sign away: somebody else has settled the message."""
    _acknowledge(inbound, agent, "silent", session, services)


def _acknowledge(
    inbound: Inbound, agent: str, stage: Stage, session: Actor, services: Services
) -> None:
    connector = inbound.address.connector
    # However many agents hear it, one has the message itself, the others copies of it.
    is_from_people = not (inbound.chain.agents or inbound.occasion or inbound.copy_of)
    may_react = services.account(connector).has_presence
    if not (is_from_people and may_react):
        return
    if not services.presence.shows_reactions(connector):
        return
    wanted = Acknowledge(
        correlation_id=inbound.correlation_id,
        address=inbound.address,
        message=inbound.platform_id,
        agent=agent,
        stage=stage,
    )
    key = f"{inbound.address.chat}/{inbound.platform_id}"
    session.tell(names.acknowledgements(connector), Keyed(key, wanted))
