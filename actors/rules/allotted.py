"""Who hears what, though the agents may change while messages are open; pure.

The router looks at open messages again and again, should their session have been lost.
A message that somebody has in hand must then go the same way as before: to an agent
that is leaving and finishes it, and not to a new one of the name it happened to hold.
So it must when the router itself was lost, for sessions do not die with it: what was
decided outlives it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from actors.rules.activation import NOTHING_KNOWN, Heard, Situation, judge, outcome_of
from actors.rules.routes import Outcome, Routed, is_for_activation, route

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

    from actors.messages import Inbound
    from actors.rules.routes import RoutingTable


class Allotted:
    """Routes by a table that may be replaced.

    Args:
        table: the first one.
    """

    def __init__(self, table: RoutingTable) -> None:
        self._table = table
        self._finishing: tuple[str, ...] = ()
        self._kept: dict[str, Routed] = {}

    @property
    def agents(self) -> tuple[str, ...]:
        """Names of all agents that may have something in hand."""
        return (*self._table.agents.values(), *self._finishing)

    @property
    def table(self) -> RoutingTable:
        """Give what is gone by now."""
        return self._table

    def knows(self, message_id: str) -> bool:
        """Whether it is kept in mind who hears a message."""
        return message_id in self._kept

    def route(
        self, inbound: Inbound, situation: Situation = NOTHING_KNOWN
    ) -> Outcome | Heard:
        """Decide who hears a message: as before, if it was decided before.

        Returns:
            `Heard` if a model is to be asked first; what it says goes into the
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
            # Looked at again, it could come out otherwise while somebody answers it.
            self._kept[inbound.id] = outcome
        return outcome

    def replace(
        self,
        table: RoutingTable,
        finishing: Collection[str],
        still_open: Iterable[Inbound],
    ) -> None:
        """Decide about new messages by another table.

        Args:
            table: the new one.
            finishing: agents that are not in it, and end what they have begun.
            still_open: all messages that are not settled.
        """
        there = {*table.agents.values(), *finishing}
        kept: dict[str, Routed] = {}
        for inbound in still_open:
            outcome = self.route(inbound)
            # Nobody has what nobody heard: it may be for somebody new.
            if isinstance(outcome, Routed) and there.issuperset(outcome.agents):
                kept[inbound.id] = outcome
        self._table, self._finishing, self._kept = table, tuple(finishing), kept

    def renewed(self, table: RoutingTable) -> Allotted:
        """Go on with a new router, by the table of now."""
        there = {*table.agents.values(), *self._finishing}
        self._table = table
        self._kept = {
            x: way for x, way in self._kept.items() if there.issuperset(way.agents)
        }
        return self

    def forget_all_but(self, still_open: Collection[str]) -> None:
        """Forget the ways of messages that are settled by now.

        Args:
            still_open: ids of those that are not.
        """
        self._kept = {x: way for x, way in self._kept.items() if x in still_open}
