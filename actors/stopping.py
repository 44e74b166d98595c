"""Carries a `/stop` to the agents that work in a chat."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from actors import names
from actors.occasions import LANES
from actors.protocol import StopCaused
from actors.rules.approvals import person
from actors.rules.keys import session_key
from actors.rules.stopping import for_room, stop_of
from runtime.messages import Keyed

if TYPE_CHECKING:
    from collections.abc import Iterable

    from actors.messages import Inbound
    from actors.services import Services
    from runtime.actor import Actor


def stop_awake(
    actor: Actor, stop: StopCaused, agents: Iterable[str], services: Services
) -> None:
    """Tell the conversations of a chat that are awake.

    Who sleeps works at nothing, and whatever waits elsewhere comes later.
    """
    scope = services.sessions.session_scope
    for agent in agents:
        is_meant = stop.agent in {"", agent}
        has_lanes = is_meant and not (stop.is_scoped or stop.correlation_id)
        for lane in ("", *LANES) if has_lanes else ("",):
            by = msgspec.structs.replace(stop.by, lane=lane)
            key = session_key(by, agent, scope).text
            actor.tell(names.sessions(agent), Keyed(key, stop, may_wake=False))


def stop_in_room(
    actor: Actor, inbound: Inbound, agents: Iterable[str], services: Services
) -> None:
    """Have a `/stop` that names nobody in a group end what its sender asked there.

    Whoever wants an end to it need not know who is at it. Nobody says that there was
    nothing to stop: it may have been meant for another program.
    """
    if for_room(inbound) is not None:
        stop_at_once(actor, inbound, agents, services)


def stop_at_once(
    actor: Actor, inbound: Inbound, agents: Iterable[str], services: Services
) -> None:
    """Have a `/stop` end what its sender asked some agents before it."""
    command = stop_of(inbound)
    if command is None:
        return
    if command.is_all and person(inbound) not in services.approvers:
        return
    stop = StopCaused(inbound, "", is_all=command.is_all)
    stop_awake(actor, stop, agents, services)
