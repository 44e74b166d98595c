"""Asks a model for the facts and for a summary of one conversation.

An actor of its own does it, beside the turns. A slow model or a call that hangs delays
only its own conversation, and that one for a bounded time.
"""

from __future__ import annotations

from typing import ClassVar

import trio

from actors import names
from actors.agents.persona import Persona
from actors.errors import ChatError
from actors.memory import notes as noting
from actors.memory.forgetting import SpokenLines, lines_since, mark_of
from actors.messages import priority
from actors.messages.inbound import ModelRequest, TranscriptLine
from actors.messages.keys import parse_key
from actors.messages.usage import Run, total
from actors.models.budget import Spender
from actors.ports import Noted
from actors.protocol import (
    AcquirePermit,
    Condense,
    Condensed,
    PermitGranted,
    ReleasePermit,
)
from actors.rules.prompt import compaction
from actors.rules.text.secrets import redacted
from actors.services import Services
from actors.turn.machine import ModelFailed
from actors.turn.round import CallOwner, ModelAnswered, ModelCalls
from runtime.actor.actor import Actor
from runtime.actor.ref import UNANSWERED
from runtime.errors import KernelError
from runtime.store.facts import FactChange
from runtime.telemetry.logs import EventLog, Quoted

LOG = EventLog("condenser")

# Chosen: three halvings are enough for a model that reads an eighth of what the usual
# cheap models read.
MOST_HALVES = 3
"""How often a transcript that is too long for the model is sent at half its length."""


class Condenser(Actor):
    """Carries out one `Condense` order, then ends.

    Takes: `Condense`, once; `PermitGranted` before it begins, if no turn waits for it.
    Sends: `Condensed` to the session and to its agent; `AcquirePermit` and
        `ReleasePermit` to the limiter.
    Keeps: the order.
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
        """Begin, as soon as there is a permit."""
        match message:
            case Condense():
                return self._take(message)
            case PermitGranted():
                order = self._order
                return None if order is None else self._carry_out(order)
            case _:
                return super().on_receive(message)

    def on_stop(self) -> None:
        """Give back the permit."""
        if self._order is not None:
            self.tell(names.LIMITER, ReleasePermit(self.actor_urn))

    def _take(self, order: Condense) -> object:
        if order.has_permit:
            return self._carry_out(order)
        self._order = order
        wanted = AcquirePermit(
            self.actor_urn,
            order.id,
            self.actor_ref,
            priority.SCHEDULED,
            model=model_of(self._persona, self._services),
        )
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
    """The model calls of one order."""

    def __init__(
        self, condenser: Actor, order: Condense, persona: Persona, services: Services
    ) -> None:
        self._condenser = condenser
        self._order = order
        self._persona = persona
        self._services = services
        key = parse_key(order.conversation)
        self._payer = f"{key.connector}/{order.sender_id}"
        whose = CallOwner(Spender(persona.name, self._payer), persona.config.model)
        self._calling = ModelCalls(condenser, whose, services)
        self._began_at = services.clock.monotonic()
        self._answers = 0
        self._summary = ""
        self._mark = ""
        """Mark of the last `/forget`."""

        self._remembered: tuple[FactChange, ...] = ()
        self.failure = ""
        """Why part of the result is missing, in one bounded word; empty: nothing is."""

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
            if len(fresh) == len(lines):  # else the summary has what was forgotten
                await self._remember("summary", self._summary)

    def result(self) -> Condensed:
        """Give the result, and what the calls cost."""
        return Condensed(
            id=self._order.id,
            summary=self._summary,
            remembered=self._remembered,
            run=self._run(),
            failure=self.failure,
        )

    async def _unforgotten(self) -> tuple[TranscriptLine, ...]:
        """Give the lines that may be remembered; none if the store does not say."""
        order, services = self._order, self._services
        if services.remember is None:
            return order.lines
        said = SpokenLines(
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

    async def _ask(self, instruction: str, lines: tuple[TranscriptLine, ...]) -> str:
        """Ask a model about a transcript; give its answer, empty if there is none."""
        for halves in range(MOST_HALVES):
            room = compaction.MOST_TRANSCRIPT_CHARS >> halves
            request = self._request(instruction, lines, room)
            said = await self._calling.ask(
                request, model_of(self._persona, self._services)
            )
            if isinstance(said, ModelAnswered):
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
        self, instruction: str, lines: tuple[TranscriptLine, ...], room: int
    ) -> ModelRequest:
        order = self._order
        text = self._services.redact(compaction.script(lines, room))
        return ModelRequest(
            model="",  # filled in by the provider that is asked
            agent=self._persona.name,
            correlation_id=order.correlation_id,
            system=instruction,
            lines=(
                TranscriptLine(
                    "user", compaction.framed(self._services.frame_key, text)
                ),
            ),
            max_tokens=self._services.compaction.max_tokens,
            # A model that is a program gets a folder other than the conversation's.
            conversation=f"{order.conversation}/condense",
            owner=self._payer,
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


def model_of(persona: Persona, services: Services) -> str:
    """Name the model that summarises the conversations of an agent."""
    config = persona.config
    return services.compaction.model or config.routing.cheap or config.model
