"""How turns and sessions ask the scheduler to add or change appointments.

What it gets back goes into the commit of its answer; after that the scheduler is told
that it is durable (`actors/session/outbox.py`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, cast, get_args

from actors import names
from actors.memory import scopes
from actors.schedule.booking import RequestOrigin
from actors.schedule.messages import Arrange, Arranged, all_refused
from actors.schedule.requests import Wish
from runtime.actor.ref import UNANSWERED
from runtime.errors import KernelError
from runtime.telemetry.logs import EventLog

if TYPE_CHECKING:
    from collections.abc import Iterable

    from actors.agents.persona import Persona
    from actors.messages.inbound import Inbound
    from runtime.actor.actor import Actor

LOG = EventLog("schedule")

# Chosen: it reads one person's rows; a disk that takes longer is ill.
WITHIN = 10.0
"""Seconds that an answer waits for the scheduler."""

NOBODY = "nobody keeps appointments right now; try again later"


def wishes_of(actions: Iterable[object]) -> tuple[Wish, ...]:
    """Give those of a model's actions that the scheduler carries out, in order."""
    found = [each for each in actions if isinstance(each, get_args(Wish))]
    return tuple(cast("list[Wish]", found))


def origin_of(inbound: Inbound, persona: Persona, person: str = "") -> RequestOrigin:
    """Say where the wishes of an answer come from.

    Args:
        inbound: what is answered.
        persona: who answers.
        person: who asked, over all accounts; empty: the sender's own account.
    """
    who = person or f"{inbound.address.connector}/{inbound.sender_id}"
    return RequestOrigin(
        scope=scopes.writing(inbound.address, who, is_direct=inbound.is_direct),
        person=who,
        agent=persona.name,
        address=inbound.address,
        is_direct=inbound.is_direct,
        platform=inbound.platform,
        sender_id=inbound.sender_id,
        sender_name=inbound.sender_name,
        zone=persona.config.context.time_zone,
        agents=persona.everybody,
    )


async def arrange(
    actor: Actor, wishes: tuple[Wish, ...], origin: RequestOrigin
) -> Arranged:
    """Ask what wishes come to; without an answer in time, to nothing.

    Args:
        actor: who asks.
        wishes: in the order of the text.
        origin: as `origin_of` gives it.
    """
    if not wishes:
        return Arranged()
    scheduler = actor.find(names.SCHEDULER)
    request = Arrange(wishes=wishes, origin=origin)
    if scheduler is None:
        return all_refused(request, NOBODY)
    try:
        return cast("Arranged", await scheduler.ask(request, timeout=WITHIN))
    except (*UNANSWERED, KernelError) as error:
        LOG.warning("the scheduler gave no answer", why=str(error))
        return all_refused(request, NOBODY)
