"""Questions whom messages are for, that are under way: the router's own; no actor.

Bounded: of too many, further ones count as not answered at once. Each has a clock, so
that a chat never waits for one that got lost.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from actors import names
from actors.checker import Check, Checked
from actors.rules.activation import CheckKind
from actors.rules.agent_access import may_use
from actors.rules.relevance import FAILS
from actors.rules.routes import NO_GROUP
from actors.unheard import Unheard
from runtime.messages import Keyed

if TYPE_CHECKING:
    from actors.checker import Outcome
    from actors.messages import Inbound
    from actors.rules.activation import Heard, Judged
    from actors.rules.routes import RoutingTable
    from actors.services import Services
    from runtime.actor import Actor

# Chosen: as many as turns that run at once by default; each is one call to a model.
MOST_CHECKS = 64

LOST_AFTER = 5.0
"""Seconds after its time at which a check is given up that nobody told of."""


class Open(msgspec.Struct):
    """A message of which somebody is asked."""

    unheard: Unheard
    waiting: dict[str, tuple[str, CheckKind]]
    """Agent and question, by the key of the check."""

    checked: dict[str, bool]
    """What came out so far, by agent."""


class Checks:
    """The checks under way.

    Args:
        router: on whose behalf they are asked.
        services: counts, and who may use whom.
    """

    def __init__(self, router: Actor, services: Services) -> None:
        self._router = router
        self._services = services
        self._open: dict[str, Open] = {}
        """By the message's id."""

    def is_open(self, inbound: Inbound) -> bool:
        """Whether somebody is being asked of a message."""
        return inbound.id in self._open

    @property
    def count(self) -> int:
        """How many checks are under way."""
        return sum(len(each.waiting) for each in self._open.values())

    def ask(
        self,
        unheard: Unheard,
        heard: Heard,
        table: RoutingTable,
        known: dict[str, bool],
    ) -> dict[str, bool] | None:
        """Have models asked.

        Args:
            unheard: of which message.
            heard: for which agents.
            table: who there is.
            known: what came out before, by agent; nobody is asked about those again,
                though more agents have a reason by now.

        Returns:
            What came out, with what is known, if nobody need be waited for.
        """
        checked = dict(known)
        waiting: dict[str, tuple[str, CheckKind]] = {}
        for judged in heard.asking:
            check = self._check(unheard, judged, table)
            if check is None:
                checked[judged.agent] = False
            elif self.count + len(waiting) >= MOST_CHECKS or not self._tell(check):
                checked[judged.agent] = self._count(check.kind, "overload")
            else:
                waiting[check.key] = (check.agent, check.kind)
                within = table.groups.get(check.agent, NO_GROUP).config.check_timeout
                self._router.after(within + LOST_AFTER, Checked(check.key, "lost"))
        if not waiting:
            return checked
        self._open[unheard.inbound.id] = Open(unheard, waiting, checked)
        return None

    def take(self, checked: Checked) -> tuple[Unheard, dict[str, bool]] | None:
        """Take in what came of one; give the message once all have come."""
        message_id = checked.key.rpartition("/")[0]
        found = self._open.get(message_id)
        asked = None if found is None else found.waiting.pop(checked.key, None)
        if found is None or asked is None:
            return None  # it was given up, or its clock rings late
        agent, kind = asked
        found.checked[agent] = self._count(kind, checked.outcome)
        if found.waiting:
            return None
        del self._open[message_id]
        return found.unheard, found.checked

    def _check(
        self, unheard: Unheard, judged: Judged, table: RoutingTable
    ) -> Check | None:
        """Write a check; None: whoever wrote it may not use the agent."""
        inbound = unheard.inbound
        access = self._services.agent_access
        if judged.check is None or not may_use(judged.agent, inbound, access).may:
            return None
        there = inbound.present or table.agents.values()
        return Check(
            key=f"{inbound.id}/{judged.agent}",
            inbound=inbound,
            number=unheard.number,
            agent=judged.agent,
            kind=judged.check,
            others={
                name: table.groups.get(name, NO_GROUP).about
                for name in there
                if name != judged.agent and name in table.agents.values()
            },
        )

    def _tell(self, check: Check) -> bool:
        return self._router.tell(names.CHECKS, Keyed(check.key, check))

    def _count(self, kind: CheckKind, outcome: Outcome) -> bool:
        """Count what came of a check; say whether the words are meant."""
        self._services.metrics.check(kind, outcome)
        if outcome in {"yes", "no"}:
            return outcome == "yes"
        return FAILS[kind]
