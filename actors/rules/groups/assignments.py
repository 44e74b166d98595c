"""Routing that stays stable for open messages while agents change. Pure.

The router looks at open messages repeatedly, in case their session was lost. Such a
message must go to the same agent as before: an agent that was removed finishes its
messages, and a new agent of the same name does not get them. Sessions survive a crash
of the router, so these decisions must survive it as well.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable

from actors.messages.inbound import Inbound
from actors.rules.groups.activation import (
    NOTHING_KNOWN,
    GroupVerdict,
    Situation,
    judge,
    outcome_of,
)
from actors.rules.groups.routes import (
    Outcome,
    Routed,
    RoutingTable,
    is_for_activation,
    route,
)


class StickyRoutes:
    """Routing by a replaceable table; keeps the decisions about open messages."""

    def __init__(self, table: RoutingTable) -> None:
        self._table = table
        self._finishing: tuple[str, ...] = ()
        self._kept: dict[str, Routed] = {}

    @property
    def agents(self) -> tuple[str, ...]:
        """Names of all agents that may have open messages."""
        return (*self._table.agents.values(), *self._finishing)

    @property
    def table(self) -> RoutingTable:
        """Give what is gone by now."""
        return self._table

    def knows(self, message_id: str) -> bool:
        """Return whether the decision about a message is remembered."""
        return message_id in self._kept

    def route(
        self, inbound: Inbound, situation: Situation = NOTHING_KNOWN
    ) -> Outcome | GroupVerdict:
        """Decide who hears a message; a remembered decision is repeated.

        Returns:
            `GroupVerdict` if a model is to be asked first; what it says goes into the
            situation.
        """
        kept = self._kept.get(inbound.id)
        if kept is not None:
            return kept
        if not is_for_activation(inbound):
            return route(inbound, self._table)
        heard = judge(inbound, self._table, situation)
        if heard.asking:
            return heard
        outcome = outcome_of(heard)
        if isinstance(outcome, Routed):
            # A second decision could differ while an agent already answers.
            self._kept[inbound.id] = outcome
        return outcome

    def replace(
        self,
        table: RoutingTable,
        finishing: Collection[str],
        still_open: Iterable[Inbound],
    ) -> None:
        """Use another table for new messages.

        Args:
            finishing: removed agents that finish their open messages.
            still_open: all messages that are not settled.
        """
        there = {*table.agents.values(), *finishing}
        kept: dict[str, Routed] = {}
        for inbound in still_open:
            outcome = self.route(inbound)
            # A message that no agent heard may be for a new agent.
            if isinstance(outcome, Routed) and there.issuperset(outcome.agents):
                kept[inbound.id] = outcome
        self._table, self._finishing, self._kept = table, tuple(finishing), kept

    def renewed(self, table: RoutingTable) -> StickyRoutes:
        """Continue in a new router with the present table."""
        there = {*table.agents.values(), *self._finishing}
        self._table = table
        self._kept = {
            x: way for x, way in self._kept.items() if there.issuperset(way.agents)
        }
        return self

    def forget_all_but(self, still_open: Collection[str]) -> None:
        """Forget the decisions about settled messages.

        Args:
            still_open: ids of the messages that are still open.
        """
        self._kept = {x: way for x, way in self._kept.items() if x in still_open}
