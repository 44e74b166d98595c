"""Asks a model whom a message in a group is meant for, beside everything else.

In an actor of its own: a model that is slow keeps only that one chat waiting, and that
one only for as long as the agent's settings say. What comes of it is kept nowhere:
after a restart it is asked again.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, ClassVar, Literal

import msgspec
import trio

from actors import names, records
from actors.calling import Answered, Calling, Whose
from actors.ledger import Run, total
from actors.messages import Inbound, Line, ModelRequest
from actors.overhearing import recent
from actors.rules import relevance
from actors.rules.activation import CheckKind
from actors.rules.approvals import person
from actors.rules.budget import Who
from actors.rules.hygiene import of_person
from actors.rules.overheard import Ear, overheard
from actors.rules.quoting import with_quote
from runtime.actor import Actor
from runtime.errors import StoreError
from runtime.logs import EventLog
from runtime.rows import Commit

if TYPE_CHECKING:
    from collections.abc import Callable

    from actors.persona import Persona
    from actors.rules.overheard import Word
    from actors.services import Services

    Find = Callable[[str], Persona]
    """Gives an agent by its name, as it is now."""

LOG = EventLog("router")


Outcome = Literal["yes", "no", "unclear", "failed", "timeout", "overload", "lost"]
"""What came of a check; all but the first two count as none."""

ANSWERS: dict[bool | None, Outcome] = {True: "yes", False: "no", None: "unclear"}

NEVER = 2**62
"""A number that no message has."""


class Check(msgspec.Struct, frozen=True, kw_only=True):
    """To a new checker: is this meant for the agent?"""

    key: str
    inbound: Inbound
    number: int
    """In the inbox; 0 if it is not known."""

    agent: str
    kind: CheckKind
    others: dict[str, str] = {}
    """What to come to the other agents there for, by name."""


class Checked(msgspec.Struct, frozen=True):
    """To the router: what came of a check."""

    key: str
    outcome: Outcome


class Checker(Actor):
    """Asks once, then ends.

    Takes: `Check`, once.
    Sends: `Checked` to the router.
    Keeps: nothing.
    Fails: on a bug; the router has a clock of its own.
    Ends: with its answer, or when its time is over.
    """

    deadline: ClassVar[float | None] = None  # the agent's settings say how long

    def __init__(self, find: Find, services: Services) -> None:
        super().__init__()
        self._find = find
        self._services = services

    async def on_receive(self, message: object) -> None:
        """Ask."""
        if not isinstance(message, Check):
            super().on_receive(message)
            return
        asking = Asking(self, message, self._find(message.agent), self._services)
        with trio.move_on_after(asking.within) as scope:
            await asking.run()
        if scope.cancelled_caught:
            asking.outcome = "timeout"
        asking.enter()
        self.tell(names.ROUTER, Checked(message.key, asking.outcome))
        self.stop()


class Asking:
    """One question, and what it took.

    Args:
        checker: on whose behalf.
        check: what is asked.
        persona: the agent it is about.
        services: store, clock, counts.
    """

    def __init__(
        self, checker: Actor, check: Check, persona: Persona, services: Services
    ) -> None:
        self._check = check
        self._persona = persona
        self._services = services
        self._began_at = services.clock.monotonic()
        self._run = f"{records.CHECK}{check.key}#1"
        who = Who(persona.name, person(check.inbound))
        whose = Whose(self._run, who, persona.config.model)
        self._calling = Calling(checker, whose, services)
        self.within = persona.config.groups.check_timeout
        """Seconds it may take."""

        self.outcome: Outcome = "failed"
        """What came of it until now."""

    async def run(self) -> None:
        """Ask."""
        config = self._persona.config
        wanted = config.groups.check_model or config.routing.cheap or config.model
        said = await self._calling.ask(await self._request(), wanted)
        if isinstance(said, Answered):
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
        asked = relevance.Asked(
            self._persona.name, self._persona.config.description, check.others
        )
        agents = self._agents
        name = of_person(inbound.sender_name, agents)
        said.append((name, with_quote(inbound.text, inbound, agents)))
        words = relevance.question(check.kind, asked, said)
        return ModelRequest(
            model="",  # whoever is asked has its own name for it
            agent=self._persona.name,
            correlation_id=inbound.correlation_id,
            system=relevance.SYSTEM,
            lines=(Line("user", words),),
            temperature=relevance.TEMPERATURE,
            max_tokens=relevance.MOST_TOKENS,
            conversation=f"check/{self._persona.name}",  # a program's folder of its own
        )

    @property
    def _agents(self) -> tuple[str, ...]:
        """Name the agents there."""
        return (self._persona.name, *self._check.others)

    async def _said_before(self) -> tuple[Word, ...]:
        """Give the last words in the chat; none if the disk fails."""
        address = self._check.inbound.address
        stream = f"{address.connector}/{address.chat}"
        place = self._check.number
        ear = Ear(
            agent="",  # its own words, too
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
        """Put into the ledger what it took."""
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
