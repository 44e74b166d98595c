"""Asks whether agents may speak to each other, before a model is asked."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from actors import names
from actors.delegation import loop_guard
from actors.delegation.messages import MayWork
from actors.delegation.pairs import PairExchange, PairRuling
from actors.rules.groups.addressing import heard_by, may_speak
from runtime.actor.ref import UNANSWERED
from runtime.errors import KernelError
from runtime.telemetry.logs import EventLog

if TYPE_CHECKING:
    from actors.agents.persona import Persona
    from actors.messages.inbound import Inbound
    from actors.protocol import Finished
    from actors.rules.markers.parser import ParsedAnswer
    from actors.services import Services
    from runtime.actor.actor import Actor

LOG = EventLog("turn")

# Chosen: it looks something up in memory.
RULED_WITHIN = 5.0
"""Seconds until nobody may, since nobody says so."""

UNRULED = PairRuling("unruled")


async def rule(
    turn: Actor, wanted: tuple[PairExchange, ...], inbound: Inbound
) -> tuple[PairRuling, ...]:
    """Ask about some exchanges; in doubt, none may be."""
    if not wanted:
        return ()
    found = turn.find(names.COLLABORATION)
    if found is not None:
        try:
            asked = found.ask(MayWork(wanted), timeout=RULED_WITHIN)
            return cast("tuple[PairRuling, ...]", await asked)
        except (*UNANSWERED, KernelError) as error:
            LOG.warning(
                "nobody ruled on agents' words",
                correlation_id=inbound.correlation_id,
                why=str(error),
            )
    return tuple(UNRULED for _ in wanted)


def exchange(inbound: Inbound, source: str, target: str, key: str) -> PairExchange:
    """Say that one agent is to speak to another because of a message.

    Args:
        key: what tells it from all others that come of the message.
    """
    is_persons = not (inbound.chain.agents or inbound.occasion or inbound.is_bot)
    address = inbound.address
    return PairExchange(
        chat=f"{address.connector}/{address.chat}",
        source=source,
        target=target,
        key=f"{inbound.id}?{key}",
        begun_by=inbound.id if is_persons else "",
    )


async def kept_apart(
    finished: Finished,
    parsed: ParsedAnswer,
    inbound: Inbound,
    persona: Persona,
    services: Services,
    turn: Actor,
) -> tuple[str, ...]:
    """Name the agents that an answer would reach, and that it may not reach now.

    Args:
        finished: the answer: whom it hands work to.
        parsed: the same taken apart: whose names it calls.
    """
    asked = [x.agent for x in (*finished.delegations, *parsed.delegations)]
    open_to = heard_by(
        parsed, inbound, persona, services.collaboration, services.agent_access
    )
    if not asked and not open_to:
        return ()  # as most often
    limits = persona.delegation_limits(services.limits.max_hops)
    now = services.clock.monotonic()
    verdicts = [
        loop_guard.may_delegate(inbound.chain, persona.name, each, limits, now)
        for each in dict.fromkeys(asked)
    ]
    left = loop_guard.visible_turns_left(
        inbound, services.collaboration.visible_max_turns
    )
    if may_speak(inbound.chain, now, has_turns=True) != "ok":
        left = 0
    open_to = open_to[:left]  # others would be counted, and not be heard
    reached = [
        x.target for x in verdicts if isinstance(x, loop_guard.DelegationAllowed)
    ]
    targets = tuple(dict.fromkeys((*reached, *open_to)))
    wanted = tuple([exchange(inbound, persona.name, x, x) for x in targets])
    rulings = await rule(turn, wanted, inbound)
    return tuple(
        [
            target
            for target, ruling in zip(targets, rulings, strict=True)
            if not ruling.is_allowed
        ]
    )
