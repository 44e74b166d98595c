"""Asks a model whether a group message is meant for an agent.

One actor for each question: a slow model holds up only that chat, and no longer than
the agent's settings allow. Nothing is stored; after a restart it is asked again.
"""

from __future__ import annotations

import math
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
from actors.rules.groups.activation import CheckKind
from actors.rules.groups.overheard import OverhearingAgent, overheard
from actors.rules.prompt.untrusted import of_person, with_quote
from actors.turn.calling import CallOwner, ModelAnswered, ModelCalls
from actors.turn.context import recent
from runtime.actor.actor import Actor
from runtime.errors import StoreError
from runtime.store.rows import Commit
from runtime.telemetry.logs import EventLog

if TYPE_CHECKING:
    from collections.abc import Callable

    from actors.agents.persona import Persona
    from actors.rules.groups.overheard import OverheardMessage
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
