"""Questions whom messages are for, that are under way: the router's own; no actor.

Bounded: of too many, further ones count as not answered at once. Each has a clock, so
that a chat never waits for one that got lost. A message that stands in line behind
another is asked about ahead of its turn, so that a burst takes no longer than one.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

import msgspec

from actors import names
from actors.checker import Check, Checked
from actors.commits import chat_stream
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

# Chosen: a burst of one person; more of one chat are asked about when these have come.
MOST_AHEAD = 8
"""Messages of one chat that are asked about while they stand in line."""

MOST_EARLY = 32
"""Checks of such messages, in all chats; never in the place of others."""

LOST_AFTER = 5.0
"""Seconds after its time at which a check is given up that nobody told of."""


class Open(msgspec.Struct):
    """A message of which somebody is asked."""

    unheard: Unheard
    waiting: dict[str, tuple[str, CheckKind]]
    """Agent and question, by the key of the check."""

    checked: dict[str, bool]
    """What came out so far, by agent."""

    ahead: dict[str, bool]
    """What came out while it stood in line, by the key of the check: when its turn
    comes, it may need another one, or none."""

    is_ahead: bool = False
    """Whether it stands in line still."""


class Checks:
    """The checks under way.

    Args:
        router: on whose behalf they are asked.
        services: counts, and who may use whom.
    """

    def __init__(self, router: Actor, services: Services) -> None:
        self._router = router
        self._services = services
        self._due = 0
        """How many checks are under way for messages whose turn it is."""

        self._early = 0
        """How many for messages that stand in line."""

        self._open: dict[str, Open] = {}
        """By the message's id."""

        self._ahead: Counter[str] = Counter()
        """How many of each chat are asked about ahead of their turn."""

    def is_open(self, inbound: Inbound) -> bool:
        """Whether it is a message's turn, and somebody is being asked of it."""
        found = self._open.get(inbound.id)
        return found is not None and not found.is_ahead

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
        found = self._take_ahead(unheard)
        room = MOST_CHECKS - self._due
        waiting: dict[str, tuple[str, CheckKind]] = {}
        for judged in heard.asking:
            check = self._check(unheard, judged, table)
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
        self._open[unheard.inbound.id] = Open(unheard, waiting, checked, {})
        return None

    def ask_ahead(self, unheard: Unheard, heard: Heard, table: RoutingTable) -> None:
        """Have models asked of a message that stands in line, if there is room."""
        inbound = unheard.inbound
        stream = chat_stream(inbound)
        if inbound.id in self._open or self._ahead[stream] >= MOST_AHEAD:
            return
        room = MOST_EARLY - self._early
        waiting: dict[str, tuple[str, CheckKind]] = {}
        for judged in heard.asking:
            check = self._check(unheard, judged, table)
            has_room = len(waiting) < room
            if check is not None and has_room and self._tell(check, table):
                waiting[check.key] = (check.agent, check.kind)
        if waiting:
            self._early += len(waiting)
            self._ahead[stream] += 1
            self._open[inbound.id] = Open(unheard, waiting, {}, {}, is_ahead=True)

    def forget(self, inbound: Inbound) -> None:
        """Let go of what was asked ahead: it turned out not to be needed."""
        found = self._open.get(inbound.id)
        if found is not None and found.is_ahead:
            self._take_ahead(found.unheard)

    def _take_ahead(self, unheard: Unheard) -> Open:
        """Give what was asked of a message while it stood in line; it is its turn."""
        inbound = unheard.inbound
        found = self._open.pop(inbound.id, None)
        if found is None:
            return Open(unheard, {}, {}, {})
        stream = chat_stream(inbound)
        self._ahead[stream] -= 1
        if not self._ahead[stream]:
            del self._ahead[stream]
        self._early -= len(found.waiting)
        return found

    def take(self, checked: Checked) -> tuple[Unheard, dict[str, bool]] | None:
        """Take in what came of one; give the message once all have come."""
        message_id = checked.key.rpartition("/")[0]
        found = self._open.get(message_id)
        asked = None if found is None else found.waiting.pop(checked.key, None)
        if found is None or asked is None:
            return None  # it was given up, or its clock rings late
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
        # Why two: standing in line, a message may turn from one into the other.
        end = "" if judged.check == "relevance" else f"+{judged.check}"
        return Check(
            key=f"{inbound.id}/{judged.agent}{end}",
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

    def _tell(self, check: Check, table: RoutingTable) -> bool:
        """Have a checker begin; give whether there was room for it."""
        if not self._router.tell(names.CHECKS, Keyed(check.key, check)):
            return False
        within = table.groups.get(check.agent, NO_GROUP).config.check_timeout
        self._router.after(within + LOST_AFTER, Checked(check.key, "lost"))
        return True

    def _outcome(self, kind: CheckKind, outcome: Outcome) -> bool:
        """Count what came of a check; say whether the words are meant."""
        self._services.metrics.check(kind, outcome)
        if outcome in {"yes", "no"}:
            return outcome == "yes"
        return FAILS[kind]
