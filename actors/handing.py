"""What one agent hands to others, as far as the loop guard lets it."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import msgspec

from actors.rules import loop_guard, priority

if TYPE_CHECKING:
    from actors.carried import Carried
    from actors.messages import Chain, Inbound
    from actors.persona import Persona
    from actors.rules.actions import Delegation
    from actors.services import Services


def hand_on_all(
    inbound: Inbound,
    wanted: tuple[Delegation, ...],
    persona: Persona,
    services: Services,
) -> tuple[list[Inbound], list[str]]:
    """Give the messages for other agents, and why some were not written."""
    is_own = not inbound.chain.agents
    left = services.limits.max_delegations if is_own else inbound.chain.left
    granted, each = loop_guard.share(left, len(wanted))
    handed: list[Inbound] = []
    refusals: list[str] = []
    for number, delegation in enumerate(wanted[:granted]):
        verdict = may_hand_on(inbound, delegation, persona, services)
        if isinstance(verdict, loop_guard.Refused):
            services.metrics.delegation(persona.name, verdict.reason)
            refusals.append(verdict.text)
        else:
            services.metrics.delegation(persona.name, "ok")
            chain = msgspec.structs.replace(verdict.chain, left=each)
            handed_on = _hand_on(inbound, delegation.task, chain, number, services)
            rank = priority.of_delegation(
                inbound.priority, is_by_conductor=persona.config.is_conductor
            )
            handed.append(msgspec.structs.replace(handed_on, priority=rank))
    if granted < len(wanted):
        services.metrics.delegation(persona.name, "max_delegations")
        most = services.limits.max_delegations
        refusals.append(
            f"Delegation stopped: one message may cause {most} delegations."
        )
    return handed, refusals


def may_hand_on(
    inbound: Inbound,
    delegation: Delegation,
    persona: Persona,
    services: Services,
) -> loop_guard.Allowed | loop_guard.Refused:
    """Ask the loop guard about one delegation of this agent."""
    limits = persona.delegation_limits(services.limits.max_hops)
    now = services.clock.wall()
    return loop_guard.may_delegate(
        inbound.chain, persona.name, delegation.agent, limits, now
    )


def _hand_on(
    inbound: Inbound,
    task: str,
    chain: Chain,
    number: int,
    services: Services,
) -> Inbound:
    """Make the message that the other agent hears; its reply address is the same."""
    source, target = chain.agents[-2:]
    return msgspec.structs.replace(
        inbound,
        id=services.ids.new(),
        # Why not the new id: handed on again after a crash, it is still the same.
        platform_id=f"{inbound.id}>{number}",
        sender_name=source,
        text=task,
        received_at=services.clock.wall(),
        agent=target,
        attachments=(),
        history=(),
        chain=chain,
        others=0,
        copy_of=0,
    )


def beside(persona: Persona, carried: Carried) -> Persona:
    """Let an agent hand work to those whom its very answer makes."""
    new = carried.made
    if not new:
        return persona
    return replace(
        persona,
        colleagues={**persona.colleagues, **new},
        everybody=tuple(dict.fromkeys((*persona.everybody, *new))),
    )
