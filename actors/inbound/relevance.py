"""Asks models whether a group message is meant for an agent.

The router's own part holds the open questions. Above a limit, further ones count as
overloaded. Each has a timer, so that no chat waits for an answer that got lost. A
message that waits behind another is asked about at once, so that a burst takes no
longer than one message.

One actor asks each question: a slow model holds up only that chat, and no longer than
the agent's settings allow. Nothing is stored; after a restart it is asked again.
"""

from __future__ import annotations

import math
from collections import Counter
from typing import TYPE_CHECKING, ClassVar, Literal

import msgspec
import trio

from actors import names
from actors.journal import records
from actors.messages.inbound import Inbound, ModelRequest, TranscriptLine
from actors.messages.keys import account_of, owner_of
from actors.messages.usage import Run, total
from actors.models.budget import Spender
from actors.rules.groups import relevance
from actors.rules.groups.access import may_use
from actors.rules.groups.activation import AgentVerdict, CheckKind, GroupVerdict
from actors.rules.groups.overheard import (
    OverheardMessage,
    OverhearingAgent,
    overheard,
)
from actors.rules.groups.relevance import FAILS
from actors.rules.groups.routes import NO_GROUP, RoutingTable
from actors.rules.prompt.untrusted import of_person, with_quote
from actors.turn.request import recent
from actors.turn.round import CallOwner, ModelAnswered, ModelCalls
from runtime.actor.actor import Actor
from runtime.actor.messages import Keyed
from runtime.errors import StoreError
from runtime.store.rows import Commit
from runtime.telemetry.logs import EventLog

if TYPE_CHECKING:
    from collections.abc import Callable

    from actors.agents.persona import Persona
    from actors.inbound.chat_lines import ChatLines, Place
    from actors.journal.unsettled import UnroutedMessage
    from actors.services import Services

    Find = Callable[[str], Persona]
    """Gives an agent by its name, as it is now."""


LOG = EventLog("router")


CheckOutcome = Literal["yes", "no", "unclear", "failed", "timeout", "overload", "lost"]
"""The outcome of a check; all but the first two count as no answer."""

ANSWERS: dict[bool | None, CheckOutcome] = {True: "yes", False: "no", None: "unclear"}

NEVER = 2**62
"""Above the number of any message."""


class CheckRelevance(msgspec.Struct, frozen=True, kw_only=True):
    """To a new checker: is this message meant for the agent?"""

    key: str
    inbound: Inbound
    number: int
    """Number in the inbox; 0 if it is not known."""

    agent: str
    kind: CheckKind
    others: dict[str, str] = {}
    """What the other agents there are for, by name."""


class RelevanceChecked(msgspec.Struct, frozen=True):
    """To the router: the outcome of a check."""

    key: str
    outcome: CheckOutcome


class RelevanceChecker(Actor):
    """Asks once, then ends.

    Takes: `CheckRelevance`, once. Sends: `RelevanceChecked` to the router. Keeps:
    nothing. Fails: on a bug; the router has a timer of its own. Ends: with its answer,
    or when its time is over.
    """

    deadline: ClassVar[float | None] = None  # the agent's settings say how long

    def __init__(self, find: Find, services: Services) -> None:
        super().__init__()
        self._find = find
        self._services = services

    async def on_receive(self, message: object) -> None:
        """Ask."""
        if not isinstance(message, CheckRelevance):
            super().on_receive(message)
            return
        asking = RelevanceQuestion(
            self, message, self._find(message.agent), self._services
        )
        with trio.move_on_after(asking.within) as scope:
            await asking.run()
        if scope.cancelled_caught:
            asking.outcome = "timeout"
        asking.enter()
        self.tell(names.ROUTER, RelevanceChecked(message.key, asking.outcome))
        self.stop()


class RelevanceQuestion:
    """One question to a model, and what it cost."""

    def __init__(
        self,
        checker: Actor,
        check: CheckRelevance,
        persona: Persona,
        services: Services,
    ) -> None:
        self._check = check
        self._persona = persona
        self._services = services
        self._began_at = services.clock.monotonic()
        self._run = f"{records.CHECK}{check.key}#1"
        who = Spender(persona.name, account_of(check.inbound))
        whose = CallOwner(who, persona.config.model)
        self._calling = ModelCalls(checker, whose, services)
        self.within = persona.config.groups.check_timeout
        """Most seconds it may take."""

        self.outcome: CheckOutcome = "failed"
        """The outcome so far."""

    async def run(self) -> None:
        """Ask."""
        config = self._persona.config
        wanted = config.groups.check_model or config.routing.cheap or config.model
        said = await self._calling.ask(await self._request(), wanted)
        if isinstance(said, ModelAnswered):
            meant = relevance.read(said.answer.text)
            self.outcome = ANSWERS[meant]
        else:
            LOG.warning(
                "nobody could say whom a message is for",
                correlation_id=self._check.inbound.correlation_id,
                agent=self._persona.name,
                why=said.text,
            )

    async def _request(self) -> ModelRequest:
        check = self._check
        inbound = check.inbound
        said = [(word.name, word.text) for word in await self._said_before()]
        asked = relevance.CheckedAgent(
            self._persona.name, self._persona.config.description, check.others
        )
        agents = self._agents
        name = of_person(inbound.sender_name, agents)
        said.append((name, with_quote(inbound.text, inbound, agents)))
        words = relevance.question(check.kind, asked, said)
        return ModelRequest(
            model="",  # filled in by the backend
            agent=self._persona.name,
            correlation_id=inbound.correlation_id,
            system=relevance.SYSTEM,
            lines=(TranscriptLine("user", words),),
            temperature=relevance.TEMPERATURE,
            max_tokens=relevance.MOST_TOKENS,
            conversation=f"check/{self._persona.name}",  # the folder of a CLI model
            owner=owner_of(inbound),
        )

    @property
    def _agents(self) -> tuple[str, ...]:
        """Name the agents there."""
        return (self._persona.name, *self._check.others)

    async def _said_before(self) -> tuple[OverheardMessage, ...]:
        """Give the last messages in the chat; none if the disk fails."""
        address = self._check.inbound.address
        stream = f"{address.connector}/{address.chat}"
        place = self._check.number
        ear = OverhearingAgent(
            agent="",  # the agent's own messages, too
            thread=address.thread,
            answered=frozenset(),
            place=place or NEVER,
            at=math.inf,
            agents=self._agents,
        )
        most = relevance.MESSAGES
        try:
            exchanges = await recent(self._services.store, stream, place, ear, most)
        except StoreError as error:
            LOG.warning("asked without what was said before", why=str(error))
            return ()
        return overheard(exchanges, ear, most)

    def enter(self) -> None:
        """Add the cost to the ledger."""
        spent = self._calling.spent
        if not spent:
            return
        services, inbound = self._services, self._check.inbound
        run = Run(
            provider=spent[-1].provider,
            model=spent[-1].model,
            attempt=1,
            seconds=round(services.clock.monotonic() - self._began_at, 4),
            usage=total(spent),
            rounds=1,
            cost=round(sum(each.cost for each in spent), 8),
            spent=spent,
        )
        row = records.usage_of_check(self._run, inbound, self._persona.name, run)
        commit = Commit(at=services.clock.wall(), records=(row,), may_wait=True)
        services.store.submit(commit, _note_failure)


def _note_failure(outcome: object) -> None:
    if isinstance(outcome, Exception):
        LOG.warning("what a check took is not in the ledger", why=str(outcome))


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
