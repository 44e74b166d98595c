"""Finds out who somebody is, without waiting long for it."""

from __future__ import annotations

from fnmatch import fnmatchcase
from typing import TYPE_CHECKING

from actors import names
from actors.acquaintance import FindPerson, Met
from actors.messages import ALONE
from actors.rules.approvals import person as account_of
from actors.rules.identity import Person
from runtime.errors import KernelError
from runtime.logs import EventLog
from runtime.ref import UNANSWERED

if TYPE_CHECKING:
    from actors.messages import Inbound
    from actors.services import Services
    from runtime.actor import Actor

LOG = EventLog("people")

# Chosen: mostly it is known already, else the disk is read once. Nobody's answer is
# worth waiting longer for than this.
KNOWN_WITHIN = 1.0
"""Seconds until somebody is taken for a stranger."""


async def person_of(actor: Actor, services: Services, inbound: Inbound) -> Person:
    """Tell who wrote a message, or what it goes back to; a stranger if nobody says."""
    account = account_of(inbound)
    known = services.acquaintances.find(account)
    people = actor.find(names.PEOPLE)
    if known is not None or people is None:
        return known or Person(account)
    try:
        found = await people.ask(FindPerson(account), timeout=KNOWN_WITHIN)
    except (*UNANSWERED, KernelError) as error:
        LOG.warning("somebody taken for a stranger", account=account, why=str(error))
        return Person(account)
    return found if isinstance(found, Person) else Person(account)


async def chosen_model(actor: Actor, services: Services, inbound: Inbound) -> str:
    """Name the model that somebody wants for their own messages; empty: any (F096)."""
    if inbound.chain.agents or inbound.occasion in ALONE:
        return ""  # what an agent hands on, or looks after, is its own affair
    model = (await person_of(actor, services, inbound)).model
    return model if model and may_choose(model, services) else ""


def may_choose(model: str, services: Services) -> bool:
    """Whether people may choose this model, by the settings."""
    return any(fnmatchcase(model, each) for each in services.commands.models)


def introduce(actor: Actor, services: Services, inbound: Inbound) -> None:
    """Have `people` learn who wrote, if there is anything left to learn."""
    # Why not those without a name of their own: each has the message's id, and would
    # be somebody new each time.
    if inbound.chain.agents or inbound.sender_id in ("", inbound.id):
        return
    account = account_of(inbound)
    is_there = actor.find(names.PEOPLE) is not None
    if is_there and services.acquaintances.needs(account):
        actor.tell(names.PEOPLE, Met(account, inbound.sender_name, inbound.text))
