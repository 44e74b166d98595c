"""Puts the past of one conversation into other words: facts first, then a summary.

In an actor of its own, beside the turns: a model that is slow, or a call that hangs,
keeps nobody waiting but its own conversation, and that one only for so long.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

import trio

from actors import names, noting
from actors.calling import Answered, Calling, Whose
from actors.condensing import Condense, Condensed
from actors.errors import ChatError
from actors.forgetting import Said, lines_since, mark_of
from actors.ledger import Run, total
from actors.messages import Line, ModelRequest
from actors.ports import Noted
from actors.protocol import Acquire, Granted, Release
from actors.rules import compaction, priority
from actors.rules.budget import Who
from actors.rules.keys import parse_key
from actors.rules.secrets import redacted
from runtime.actor import Actor
from runtime.errors import KernelError
from runtime.logs import EventLog, Quoted
from runtime.ref import UNANSWERED

if TYPE_CHECKING:
    from actors.persona import Persona
    from actors.rules.turn import ModelFailed
    from actors.services import Services
    from runtime.fact_rows import FactChange

LOG = EventLog("condenser")

# Chosen: half of a transcript that is too long for the summariser is half as long;
# three times is enough for one that reads an eighth of what the cheap models read.
MOST_HALVES = 3


class Condenser(Actor):
    """Carries out one order, then ends.

    Takes: `Condense`, once; `Granted` before it begins, if no turn waits for it.
    Sends: `Condensed` to the session, and to its agent; `Acquire` and `Release` to the
        limiter.
    Keeps: nothing beyond the order.
    Fails: on a bug; the agent tells the session.
    Ends: with its result, when its time is over, or when it is interrupted.
    """

    deadline: ClassVar[float | None] = None  # the order says how long

    def __init__(self, persona: Persona, services: Services) -> None:
        super().__init__()
        self._persona = persona
        self._services = services
        self._order: Condense | None = None

    def on_receive(self, message: object) -> object:
        """Begin, as soon as there is room."""
        match message:
            case Condense():
                return self._take(message)
            case Granted():
                order = self._order
                return None if order is None else self._carry_out(order)
            case _:
                return super().on_receive(message)

    def on_stop(self) -> None:
        """Give back the permit."""
        if self._order is not None:
            self.tell(names.LIMITER, Release(self.actor_urn))

    def _take(self, order: Condense) -> object:
        if order.has_permit:
            return self._carry_out(order)
        self._order = order
        wanted = Acquire(self.actor_urn, order.id, self.actor_ref, priority.SCHEDULED)
        if self.tell(names.LIMITER, wanted):
            return None
        return self._carry_out(order)

    async def _carry_out(self, order: Condense) -> None:
        work = Condensation(self, order, self._persona, self._services)
        with trio.move_on_after(order.within) as scope:
            await work.run()
        if scope.cancelled_caught:
            work.failure = "timeout"
        done = work.result()
        self.tell(order.session, done)
        self.tell(names.agent(self._persona.name), done)
        self.stop()


class Condensation:
    """The calls of one order.

    Args:
        condenser: on whose behalf.
        order: what is wanted.
        persona: whose conversation it is.
        services: clock, settings, and who remembers.
    """

    def __init__(
        self, condenser: Actor, order: Condense, persona: Persona, services: Services
    ) -> None:
        self._condenser = condenser
        self._order = order
        self._persona = persona
        self._services = services
        key = parse_key(order.conversation)
        who = Who(persona.name, f"{key.connector}/{order.sender_id}")
        whose = Whose(f"{order.id}#1", who, persona.config.model)
        self._calling = Calling(condenser, whose, services)
        self._began_at = services.clock.monotonic()
        self._answers = 0
        self._summary = ""
        self._mark = ""
        """Of the last forgetting."""

        self._remembered: tuple[FactChange, ...] = ()
        self.failure = ""
        """Why something that is wanted is not there, in one bounded word."""

    async def run(self) -> None:
        """Find the facts, then sum up."""
        lines = self._order.lines
        fresh = await self._unforgotten()
        if self._order.wants_facts and fresh and self._services.remember is not None:
            tags = compaction.memory_tags(await self._ask(compaction.FACTS, fresh))
            await self._remember("facts", tags)
        if self._order.wants_summary:
            found = compaction.summary_of(await self._ask(compaction.SUMMARY, lines))
            self._summary = redacted(self._services.redact(found))
            if not self._summary:
                self.failure = self.failure or "empty"
            if len(fresh) == len(lines):  # else it tells of what is to stay forgotten
                await self._remember("summary", self._summary)

    def result(self) -> Condensed:
        """Say what came of it, and what it took."""
        return Condensed(
            id=self._order.id,
            summary=self._summary,
            remembered=self._remembered,
            run=self._run(),
            failure=self.failure,
        )

    async def _unforgotten(self) -> tuple[Line, ...]:
        """Give the lines that may be remembered; none, if nobody can say which."""
        order, services = self._order, self._services
        if services.remember is None:
            return order.lines
        said = Said(
            stream=order.conversation,
            version=order.version,
            lines=order.lines,
            newer=order.newer,
        )
        try:
            whose = await noting.scopes_of(
                self._condenser, order.conversation, is_group=order.is_group
            )
            self._mark = await mark_of(services.store, self._persona.name, whose)
            return await lines_since(services.store, said, self._mark)
        except (*UNANSWERED, KernelError, ChatError) as error:
            self.failure = "memory"
            LOG.warning(
                "nothing was remembered", agent=self._persona.name, why=str(error)
            )
            return ()

    async def _ask(self, instruction: str, lines: tuple[Line, ...]) -> str:
        """Have a transcript read; give the answer, empty if there is none."""
        for halves in range(MOST_HALVES):
            room = compaction.MOST_TRANSCRIPT_CHARS >> halves
            request = self._request(instruction, lines, room)
            said = await self._calling.ask(request, self._model)
            if isinstance(said, Answered):
                self._answers += 1
                self.failure = ""
                return said.answer.text
            self._failed(said)
            if said.kind != "context":
                break
        return ""

    def _failed(self, said: ModelFailed) -> None:
        self.failure = said.kind
        LOG.warning(
            "conversation not summed up",
            correlation_id=self._order.correlation_id,
            agent=self._persona.name,
            kind=said.kind,
            why=Quoted(said.text),
        )

    def _request(
        self, instruction: str, lines: tuple[Line, ...], room: int
    ) -> ModelRequest:
        order = self._order
        text = self._services.redact(compaction.script(lines, room))
        return ModelRequest(
            model="",  # whoever is asked has its own name for it
            agent=self._persona.name,
            correlation_id=order.correlation_id,
            system=instruction,
            lines=(Line("user", compaction.framed(text)),),
            max_tokens=self._services.compaction.max_tokens,
            # A program as a model gets a folder that is not the conversation's own.
            conversation=f"{order.conversation}/condense",
        )

    async def _remember(self, kind: str, text: str) -> None:
        remember, order = self._services.remember, self._order
        if remember is None or not text:
            return
        noted = Noted(
            kind=kind,
            agent=self._persona.name,
            conversation=order.conversation,
            sender_id=order.sender_id,
            text=text,
            is_group=order.is_group,
            since=self._mark,
        )
        try:
            self._remembered += await remember(self._services, self._condenser, noted)
        except (*UNANSWERED, KernelError, ChatError) as error:
            self.failure = "memory"
            LOG.warning("nothing was remembered", agent=noted.agent, why=str(error))

    @property
    def _model(self) -> str:
        config = self._persona.config
        wanted = self._services.compaction.model
        return wanted or config.routing.cheap or config.model

    def _run(self) -> Run | None:
        spent = self._calling.spent
        if not spent:
            return None
        now = self._services.clock.monotonic()
        return Run(
            provider=spent[-1].provider,
            model=spent[-1].model,
            attempt=1,
            seconds=round(now - self._began_at, 4),
            usage=total(spent),
            rounds=self._answers,
            cost=round(sum(each.cost for each in spent), 8),
            spent=spent,
        )
