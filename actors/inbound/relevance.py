"""The open questions to models whether a group message is meant for an agent.

The router's own part. Above a limit, further questions count as overloaded. Each has a
timer, so that no chat waits for an answer that got lost. A message that waits behind
another is asked about at once, so that a burst takes no longer than one message.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

import msgspec

from actors import names
from actors.inbound.relevance_checker import (
    CheckOutcome,
    CheckRelevance,
    RelevanceChecked,
)
from actors.rules.groups.access import may_use
from actors.rules.groups.activation import AgentVerdict, CheckKind, GroupVerdict
from actors.rules.groups.relevance import FAILS
from actors.rules.groups.routes import NO_GROUP, RoutingTable
from runtime.actor.messages import Keyed

if TYPE_CHECKING:
    from actors.inbound.chat_lines import ChatLines, Place
    from actors.journal.unsettled import UnroutedMessage
    from actors.services import Services
    from runtime.actor.actor import Actor

# Chosen: as many as turns that run at once by default; each is one call to a model.
MOST_CHECKS = 64

# Chosen: a burst of one person; further messages are checked after these.
MOST_AHEAD = 8
"""Most messages of one chat that are checked while they wait."""

MOST_EARLY = 32
"""Most checks of waiting messages, in all chats; they never displace others."""

LOST_AFTER = 5.0
"""Seconds after its timeout at which a check without an outcome is given up."""


class OpenCheck(msgspec.Struct):
    """What models are asked about one message."""

    waiting: dict[str, tuple[str, CheckKind]]
    """Agent and question, by the key of the check."""

    checked: dict[str, bool]
    """Outcomes so far, by agent."""

    ahead: dict[str, bool]
    """Outcomes while the message waited, by the key of the check: when its turn comes,
    it may need another check, or none."""

    is_ahead: bool = False
    """Whether the message still waits behind others."""


class RelevanceChecks:
    """The checks under way; each stands in the place of its message.

    Args:
        router: starts checkers and is told their outcomes.
        lines: whose messages are checked.
        services: counts, and who may use which agent.
    """

    def __init__(self, router: Actor, lines: ChatLines, services: Services) -> None:
        self._router = router
        self._lines = lines
        self._services = services
        self._due = 0
        """Checks under way for messages whose turn it is."""

        self._early = 0
        """Checks under way for messages that wait."""

        self._ahead: Counter[str] = Counter()
        """Waiting messages that are checked, by chat."""

    def ask(
        self,
        head: Place,
        message: UnroutedMessage,
        heard: GroupVerdict,
        table: RoutingTable,
        known: dict[str, bool],
    ) -> dict[str, bool] | None:
        """Have models asked about the head of a line.

        Args:
            head: its place.
            message: the message.
            heard: which agents have to be checked.
            table: all agents.
            known: earlier outcomes by agent; these are not asked about again, though
                more agents have a reason by now.

        Returns:
            All outcomes, if no check has to be waited for; else None.
        """
        checked = dict(known)
        found = self._take_ahead(head)
        room = MOST_CHECKS - self._due
        waiting: dict[str, tuple[str, CheckKind]] = {}
        for judged in heard.asking:
            check = self._check(message, judged, table)
            if check is None:
                checked[judged.agent] = False
            elif check.key in found.ahead:
                checked[judged.agent] = found.ahead[check.key]
            elif check.key in found.waiting:
                waiting[check.key] = found.waiting.pop(check.key)
            elif len(waiting) < room and self._tell(check, table):
                waiting[check.key] = (check.agent, check.kind)
            else:
                checked[judged.agent] = self._outcome(check.kind, "overload")
        if not waiting:
            return checked
        self._due += len(waiting)
        head.check = OpenCheck(waiting, checked, {})
        self._lines.wait(head, "models")
        return None

    def may_ask_ahead(self, place: Place) -> bool:
        """Whether there is room for checks of a message that waits."""
        has_room = self._early < MOST_EARLY and self._ahead[place.chat] < MOST_AHEAD
        return place.check is None and has_room

    def ask_ahead(
        self,
        place: Place,
        message: UnroutedMessage,
        heard: GroupVerdict,
        table: RoutingTable,
    ) -> None:
        """Have models asked about a message that waits, as far as there is room."""
        room = MOST_EARLY - self._early
        waiting: dict[str, tuple[str, CheckKind]] = {}
        for judged in heard.asking:
            check = self._check(message, judged, table)
            has_room = len(waiting) < room
            if check is not None and has_room and self._tell(check, table):
                waiting[check.key] = (check.agent, check.kind)
        if waiting:
            self._early += len(waiting)
            self._ahead[place.chat] += 1
            place.check = OpenCheck(waiting, {}, {}, is_ahead=True)

    def forget(self, place: Place) -> None:
        """Drop the checks made ahead for a message that needs none."""
        self._take_ahead(place)

    def _take_ahead(self, place: Place) -> OpenCheck:
        """Give the checks that were made while a message waited; now it is its turn."""
        found, place.check = place.check, None
        if found is None or not found.is_ahead:
            return OpenCheck({}, {}, {})
        self._ahead[place.chat] -= 1
        if not self._ahead[place.chat]:
            del self._ahead[place.chat]
        self._early -= len(found.waiting)
        return found

    def take(self, checked: RelevanceChecked) -> tuple[Place, dict[str, bool]] | None:
        """Take one outcome; give the head and all outcomes once these have come."""
        place = self._lines.checked(checked.key.rpartition("/")[0])
        found = None if place is None else place.check
        asked = None if found is None else found.waiting.pop(checked.key, None)
        if place is None or found is None or asked is None:
            return None  # it was given up before
        agent, kind = asked
        meant = self._outcome(kind, checked.outcome)
        if found.is_ahead:
            self._early -= 1
            found.ahead[checked.key] = meant
            return None
        self._due -= 1
        found.checked[agent] = meant
        if found.waiting:
            return None
        place.check = None
        return place, found.checked

    def _check(
        self, message: UnroutedMessage, judged: AgentVerdict, table: RoutingTable
    ) -> CheckRelevance | None:
        """Make a check; None: the sender may not use the agent."""
        inbound = message.inbound
        access = self._services.agent_access
        if judged.check is None or not may_use(judged.agent, inbound, access).may:
            return None
        there = inbound.present or table.agents.values()
        # Why two keys: while it waits, a message may need the other kind of check.
        end = "" if judged.check == "relevance" else f"+{judged.check}"
        return CheckRelevance(
            key=f"{inbound.id}/{judged.agent}{end}",
            inbound=inbound,
            number=message.number,
            agent=judged.agent,
            kind=judged.check,
            others={
                name: table.groups.get(name, NO_GROUP).about
                for name in there
                if name != judged.agent and name in table.agents.values()
            },
        )

    def _tell(self, check: CheckRelevance, table: RoutingTable) -> bool:
        """Start a checker; False: there is no room for it."""
        if not self._router.tell(names.CHECKS, Keyed(check.key, check)):
            return False
        within = table.groups.get(check.agent, NO_GROUP).config.check_timeout
        self._router.after(within + LOST_AFTER, RelevanceChecked(check.key, "lost"))
        return True

    def _outcome(self, kind: CheckKind, outcome: CheckOutcome) -> bool:
        """Count an outcome; say whether the message counts as relevant."""
        self._services.metrics.checks.add(1, kind, outcome)
        if outcome in {"yes", "no"}:
            return outcome == "yes"
        return FAILS[kind]
