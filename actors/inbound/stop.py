"""Carries a `/stop` to the agents that work in a chat."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from actors import names
from actors.messages.inbound import Inbound
from actors.messages.keys import account_of, session_key
from actors.protocol import StopDelegated
from actors.rules.groups.assignments import StickyRoutes
from actors.schedule.occasions import LANES
from actors.services import Services
from actors.session.stop import stop_command, stop_for_room
from runtime.actor.actor import Actor
from runtime.actor.messages import Keyed


class Stops:
    """Tells conversations what a `/stop` ends; the router's own part."""

    def __init__(
        self, router: Actor, allotted: StickyRoutes, services: Services
    ) -> None:
        self._router = router
        self._allotted = allotted
        self._services = services

    def tell_awake(
        self, stop: StopDelegated, agents: Iterable[str] | None = None
    ) -> None:
        """Tell the conversations of a chat that are awake.

        One that sleeps works at nothing, and whatever waits elsewhere comes later.

        Args:
            stop: what is to end.
            agents: whose conversations; None: all agents'.
        """
        if agents is None:
            self._router.tell(names.STAFF, stop)  # it has tasks for new agents
        scope = self._services.sessions.session_scope
        for agent in self._allotted.agents if agents is None else agents:
            is_meant = stop.agent in {"", agent}
            has_lanes = is_meant and not stop.correlation_id
            for lane in ("", *LANES) if has_lanes else ("",):
                by = msgspec.structs.replace(stop.by, lane=lane)
                key = session_key(by, agent, scope).text
                keyed = Keyed(key, stop, may_wake=False)
                self._router.tell(names.sessions(agent), keyed)

    def in_room(self, inbound: Inbound) -> None:
        """Have a `/stop` that names nobody in a group end what its sender asked there.

        Whoever wants an end to it need not know which agent is at it. Nobody says that
        there was nothing to stop: it may have been meant for another program.
        """
        if stop_for_room(inbound, self._allotted.table.agents) is not None:
            self.at_once(inbound)

    def at_once(self, inbound: Inbound, agents: Iterable[str] | None = None) -> None:
        """Have a `/stop` end what its sender asked some agents, or all, before it."""
        command = stop_command(inbound)
        if command is None:
            return
        if command.is_all and account_of(inbound) not in self._services.approvers:
            return
        self.tell_awake(StopDelegated(inbound, "", is_all=command.is_all), agents)
