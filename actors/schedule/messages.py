"""Messages to the scheduler, and its answers.

A turn that ends asks `Arrange` for what its answer wants done later. The rows of
`Arranged` go into the one commit that carries the answer, so nothing is promised by a
turn that was stopped; after that commit `AppointmentsStored` tells the scheduler to
look at them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, cast, get_args

import msgspec

from actors import names
from actors.memory import scopes
from actors.rules.markers.outcomes import ActionOutcome
from actors.schedule.booking import RequestOrigin
from actors.schedule.requests import Wish
from runtime.actor.ref import UNANSWERED
from runtime.errors import KernelError
from runtime.store.rows import Entry
from runtime.telemetry.logs import EventLog

if TYPE_CHECKING:
    from collections.abc import Iterable

    from actors.agents.persona import Persona
    from actors.messages.inbound import Inbound
    from runtime.actor.actor import Actor


class Arrange(msgspec.Struct, frozen=True, kw_only=True):
    """Asked: what would these requests change? Answered by `Arranged`."""

    wishes: tuple[Wish, ...]
    origin: RequestOrigin


class Arranged(msgspec.Struct, frozen=True, kw_only=True):
    """The changes to commit, and the result of each request."""

    changes: tuple[Entry, ...] = ()
    results: tuple[ActionOutcome, ...] = ()
    """One for each wish, in order."""


class AppointmentsStored(msgspec.Struct, frozen=True):
    """Told: the rows with these ids, which `Arranged` gave, are durable."""

    ids: tuple[str, ...]


class AppointmentsChanged(msgspec.Struct, frozen=True):
    """Told by the store's keeper: another program changed appointments.

    Also by whoever takes settings over: they may want others kept.
    """


def all_refused(arrange: Arrange, why: str) -> Arranged:
    """Say that none of the wishes comes to anything."""
    refused = ActionOutcome(kind="refused", what="schedule", why=why)
    return Arranged(results=(refused,) * len(arrange.wishes))


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
