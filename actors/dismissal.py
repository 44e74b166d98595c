"""What becomes of a message that no agent answers."""

from __future__ import annotations

from typing import TYPE_CHECKING

from actors import answers, names
from actors.protocol import Deliver, Settled

if TYPE_CHECKING:
    from actors.answers import Answer
    from actors.messages import Inbound
    from actors.services import Services
    from runtime.actor import Actor
    from runtime.rows import SettledState


def dismissal(inbound: Inbound, reason: str, text: str, services: Services) -> Answer:
    """Settle what nobody hears; tell the sender where one waits.

    Args:
        inbound: the message.
        reason: one bounded word.
        text: for the sender, in the runtime's own words.
        services: in whose language.
    """
    settled: tuple[SettledState, str] = ("dropped", reason)
    # In a group most messages are for nobody here; but who was promised an answer, to a
    # delegation or a mention, is told.
    is_own = not inbound.chain.agents and inbound.id == inbound.correlation_id
    if is_own and not inbound.is_direct:
        return answers.Answer(inbound=inbound, settled=settled)
    return answers.localised(answers.notice(inbound, text, settled), services)


def tell_dismissed(actor: Actor, answer: Answer, services: Services) -> None:
    """Tell its connector that a message is settled, and what is said about it."""
    account = answer.inbound.address.connector
    connector = names.connector(account)
    services.metrics.message(account, answer.settled[0])
    for delivery in answer.deliveries:
        actor.tell(connector, Deliver(delivery))
    if not answer.deliveries:
        reason = ":".join(answer.settled)
        actor.tell(connector, Settled(answer.inbound, reason))
