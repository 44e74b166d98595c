"""Asks who may write, for connectors, and who may use an agent, after routing.

The rules are in `access.py` and `actors/rules/groups/access.py`. Messages of refused
senders are never stored, logged or passed on.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from actors import names
from actors.errors import SenderRefusedError, UnconfirmedError
from actors.messages.keys import account_of
from actors.people.access import Admit, Decision, OfferPairing, RefuseSender, admit
from actors.people.guests import StrangerWrote
from actors.rules.groups import access as agent_access
from actors.rules.groups.mentions import hailed, mentioned
from actors.rules.groups.routes import Outcome, Routed, Unrouted
from actors.rules.text.similarity import fold
from actors.transport import RefusedAttempt

if TYPE_CHECKING:
    from actors.messages.inbound import Inbound
    from actors.services import Services
    from runtime.actor.actor import Actor

PAIRING = "pairing"
"""The reason on record where a stranger may ask to be let in."""

NOT_LET_IN = "you may not write here; ask whoever runs this to let you in"


def decide(inbound: Inbound, services: Services) -> Decision:
    """Decide whether a message is taken in.

    Raises:
        UnconfirmedError: whom owners have let in is not known yet; try again.
    """
    account = services.accounts[inbound.address.connector]
    if account.policy is None:
        return admit(inbound, None)
    decision = admit(
        inbound,
        account.policy,
        is_paired=account_of(inbound) in services.guests,
        waits=account.abilities.counts_answers,
    )
    if not (isinstance(decision, Admit) or services.guests.is_read):
        raise UnconfirmedError("this is starting; try again in a moment")
    return decision


def is_admitted(inbound: Inbound, services: Services) -> bool:
    """Tell whether a message would be taken in; raises as `decide`."""
    return isinstance(decide(inbound, services), Admit)


def turn_away(
    actor: Actor,
    inbound: Inbound,
    decision: RefuseSender | OfferPairing,
    services: Services,
) -> RefusedAttempt:
    """Give what is put on record of who is not let in.

    A stranger who may be told something is handed on without their words.
    """
    stranger = _stranger(inbound, decision, services)
    if stranger is not None:
        actor.tell(names.PAIRING, stranger)
    reason = PAIRING if isinstance(decision, OfferPairing) else decision.reason
    return RefusedAttempt(reason, inbound.sender_id, inbound.address.chat)


def _stranger(
    inbound: Inbound, decision: Decision, services: Services
) -> StrangerWrote | None:
    """Give what `pairing` is told of a refused sender; None: they are told nothing."""
    offers = isinstance(decision, OfferPairing)
    if not offers and not (isinstance(decision, RefuseSender) and decision.may_hint):
        return None
    speaker = _called(inbound, services)
    if not (inbound.is_direct or speaker):
        return None
    return StrangerWrote(
        account=account_of(inbound),
        name=inbound.sender_name,
        address=inbound.address,
        answer="code"
        if offers
        else "direct_hint"
        if inbound.is_direct
        else "group_hint",
        speaker=speaker,
        reply_to="" if inbound.is_direct else inbound.source_id,
        language=next(filter(services.voices.has, services.languages(inbound)), ""),
    )


def _called(inbound: Inbound, services: Services) -> str:
    """Give the agent that a message calls or replies to; empty: none."""
    groups = services.agent_groups
    agents = {fold(each.shown): name for name, each in groups.items() if each.shown}
    agents |= {name.casefold(): name for name in services.agent_models}
    quoted = inbound.quoted.agent if inbound.quoted is not None else ""
    by_platform = (agents.get(name.casefold(), "") for name in inbound.mentions)
    called = (inbound.agent, quoted, *by_platform, *mentioned(inbound.text, agents))
    text = fold(inbound.text)
    own = {name: agent for agent, each in groups.items() for name in each.own_names}
    by_name = [own[name] for name in sorted(hailed(text, own), key=text.find)]
    return next((each for each in (*called, *by_name) if each), "")


def refuse_aloud(decision: Decision) -> None:
    """Tell who waits for an answer that they are not let in.

    Raises:
        SenderRefusedError: they wait.
    """
    if not isinstance(decision, Admit | OfferPairing) and decision.is_told:
        raise SenderRefusedError(NOT_LET_IN)


def permitted(outcome: Outcome, inbound: Inbound, services: Services) -> Outcome:
    """Remove the agents that the sender of a message may not use."""
    left = agent_access.permitted(outcome, inbound, services.agent_access)
    if isinstance(left, Unrouted) and isinstance(outcome, Routed):
        services.metrics.refusals.add(1, inbound.address.connector, left.reason)
    return left
