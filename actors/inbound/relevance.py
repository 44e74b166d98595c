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
from actors.inbound.relevance_checker import CheckRelevance, RelevanceChecked
from actors.journal.commits import chat_stream
from actors.journal.unsettled import UnroutedMessage
from actors.rules.groups.access import may_use
from actors.rules.groups.activation import CheckKind
from actors.rules.groups.relevance import FAILS
from actors.rules.groups.routes import NO_GROUP
from runtime.actor.messages import Keyed

if TYPE_CHECKING:
    from actors.inbound.relevance_checker import CheckOutcome
    from actors.messages.inbound import Inbound
    from actors.rules.groups.activation import AgentVerdict, GroupVerdict
    from actors.rules.groups.routes import RoutingTable
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
    """A message about which models are asked."""

    message: UnroutedMessage
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
    """The checks under way.

    Args:
        router: starts checkers and is told their outcomes.
        services: counts, and who may use which agent.
    """

    def __init__(self, router: Actor, services: Services) -> None:
        self._router = router
        self._services = services
        self._due = 0
        """Checks under way for messages whose turn it is."""

        self._early = 0
        """Checks under way for messages that wait."""

        self._open: dict[str, OpenCheck] = {}
        """By message id."""

        self._ahead: Counter[str] = Counter()
        """Waiting messages that are checked, by chat."""

    def is_open(self, inbound: Inbound) -> bool:
        """Whether it is a message's turn and a model is asked about it."""
        found = self._open.get(inbound.id)
        return found is not None and not found.is_ahead

    def ask(
        self,
        message: UnroutedMessage,
        heard: GroupVerdict,
        table: RoutingTable,
        known: dict[str, bool],
    ) -> dict[str, bool] | None:
        """Have models asked about a message whose turn it is.

        Args:
            message: the message.
            heard: which agents have to be checked.
            table: all agents.
            known: earlier outcomes by agent; these are not asked about again, though
                more agents have a reason by now.

        Returns:
            All outcomes, if no check has to be waited for; else None.
        """
        checked = dict(known)
        found = self._take_ahead(message)
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
        self._open[message.inbound.id] = OpenCheck(message, waiting, checked, {})
        return None

    def ask_ahead(
        self, message: UnroutedMessage, heard: GroupVerdict, table: RoutingTable
    ) -> None:
        """Have models asked about a message that waits, if there is room."""
        inbound = message.inbound
        stream = chat_stream(inbound)
        if inbound.id in self._open or self._ahead[stream] >= MOST_AHEAD:
            return
        room = MOST_EARLY - self._early
        waiting: dict[str, tuple[str, CheckKind]] = {}
        for judged in heard.asking:
            check = self._check(message, judged, table)
            has_room = len(waiting) < room
            if check is not None and has_room and self._tell(check, table):
                waiting[check.key] = (check.agent, check.kind)
        if waiting:
            self._early += len(waiting)
            self._ahead[stream] += 1
            self._open[inbound.id] = OpenCheck(message, waiting, {}, {}, is_ahead=True)

    def forget(self, inbound: Inbound) -> None:
        """Drop the checks made ahead for a message that needs none."""
        found = self._open.get(inbound.id)
        if found is not None and found.is_ahead:
            self._take_ahead(found.message)

    def _take_ahead(self, message: UnroutedMessage) -> OpenCheck:
        """Give the checks that were made while a message waited; now it is its turn."""
        inbound = message.inbound
        found = self._open.pop(inbound.id, None)
        if found is None:
            return OpenCheck(message, {}, {}, {})
        stream = chat_stream(inbound)
        self._ahead[stream] -= 1
        if not self._ahead[stream]:
            del self._ahead[stream]
        self._early -= len(found.waiting)
        return found

    def take(
        self, checked: RelevanceChecked
    ) -> tuple[UnroutedMessage, dict[str, bool]] | None:
        """Take one outcome; give the message once all outcomes have come."""
        message_id = checked.key.rpartition("/")[0]
        found = self._open.get(message_id)
        asked = None if found is None else found.waiting.pop(checked.key, None)
        if found is None or asked is None:
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
        del self._open[message_id]
        return found.message, found.checked

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
