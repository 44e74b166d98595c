"""The rounds of a turn: which model is called, with which request.

Before the first round a cheap model may choose the model and the steps of the answer.
`calling.py` makes the calls, with retries and other models.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec
import trio

from actors.memory.notebook import active_project
from actors.messages.inbound import ModelRequest, ToolSpec, TranscriptLine, Usage
from actors.messages.usage import Spent, add_up, total
from actors.models import classify
from actors.models.budget import Spender
from actors.people.lookup import chosen_model
from actors.protocol import StartTurn, TurnSpent
from actors.rules.prompt.brief import BY_ITSELF
from actors.rules.prompt.untrusted import REFUSED, clean
from actors.turn import machine as rules
from actors.turn.calling import AnswerListener, CallOwner, ModelCalls, NoListener
from actors.turn.request import ConversationWindow, PromptBuilder
from actors.turn.stream import AnswerStream, resume_token_of
from runtime.telemetry.logs import EventLog

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from actors.agents.persona import Persona
    from actors.config.routes import RoutingConfig
    from actors.services import Services
    from actors.turn.calling import Fits
    from runtime.actor.actor import Actor

    Ask = Callable[[ModelRequest, str], Awaitable[str | None]]

MOST_STEPS = 6
"""Steps of one answer; one that would need more is answered without."""

# Chosen: a classifier that is slower saves no time.
CLASSIFIED_WITHIN = 15.0
"""Seconds for the classification of a question."""

# Chosen: twenty steps of the usual length.
CLASSIFIED_TOKENS = 400
"""Most tokens of the classifier's answer."""


class AnswerPlan(msgspec.Struct, frozen=True):
    """How a turn gets its first answer."""

    model: str
    """Name of the model, from `[models.<name>]`."""

    steps: tuple[str, ...] = ()
    """The steps in which the question is answered; none: at once."""


def first_choice(persona: Persona, start: StartTurn, chosen: str = "") -> str:
    """Give the chosen model, else the model of a routing hint, else the agent's own.

    Args:
        chosen: the model that the person has chosen; empty: none.
    """
    if chosen:
        return chosen
    hints = persona.config.routing.hints
    if not hints:
        return persona.config.model
    found = [classify.ModelHint(each.words, each.model) for each in hints]
    return classify.by_hint(start.inbound.text, found) or persona.config.model


async def plan(
    persona: Persona, start: StartTurn, chosen_model: str, ask: Ask, project: str = ""
) -> AnswerPlan:
    """Ask a cheap model whether this needs several steps, if the settings want it.

    Args:
        chosen_model: the model that the person has chosen; empty: none.
        ask: sends a request to a model; gives its text, or None if there is none.
        project: name of the project that the person works on; empty: none.
    """
    routing, own = persona.config.routing, persona.config.model
    chosen = first_choice(persona, start, chosen_model)
    if chosen_model or chosen != own or not routing.classify:
        return AnswerPlan(chosen)
    injection = persona.config.context.injection
    texts = [line.text for line in start.history] + [start.inbound.text]
    said = [clean(text, injection).text for text in texts]
    words = classify.question(said, persona.abilities, MOST_STEPS, project)
    request = ModelRequest(
        model="",
        agent=persona.name,
        correlation_id=start.inbound.correlation_id,
        system="",
        lines=(TranscriptLine("user", words),),
        max_tokens=CLASSIFIED_TOKENS,
        conversation=f"{start.conversation}/plan",  # a program's folder of its own
    )
    answer: str | None = None
    with trio.move_on_after(CLASSIFIED_WITHIN):
        answer = await ask(request, routing.classifier or routing.cheap or own)
    return from_answer(answer or "", routing, own)


def from_answer(answer: str, routing: RoutingConfig, own: str) -> AnswerPlan:
    """Read the classifier's answer; if it is unclear, the answer has no steps."""
    steps = classify.read_plan(answer, MOST_STEPS)
    if steps:
        return AnswerPlan(routing.strong or own, steps)
    return AnswerPlan(routing.cheap or own)


LOG = EventLog("turn")

Event = rules.ModelReplied | rules.ModelFailed


class UnheardRound(NoListener):
    """Ignores the stream of a call beside the answer, but not its cost.

    Args:
        note: is told the cost so far.
    """

    def __init__(self, note: Callable[[tuple[Spent, ...]], None]) -> None:
        self._note = note

    def pay(self, spent: tuple[Spent, ...]) -> None:
        """Note the cost so far."""
        self._note(spent)


class ModelRounds:
    """The model calls of one turn, round by round."""

    __slots__ = (
        "_calling",
        "_earlier",
        "_is_planned",
        "_persona",
        "_services",
        "_start",
        "_turn",
        "model",
        "prompting",
        "resume",
        "speak",
        "start_over",
        "words",
    )

    def __init__(
        self,
        turn: Actor,
        start: StartTurn,
        persona: Persona,
        services: Services,
        words: AnswerStream,
    ) -> None:
        self._turn = turn
        self._persona = persona
        self._services = services
        self._start = start
        self._is_planned = start.mode in BY_ITSELF  # its model is chosen already
        self._earlier: tuple[Spent, ...] = ()  # of the rounds before this one
        self.words = words
        self.speak, self.start_over = words.speak, words.start_over
        self.model = first_choice(persona, start)
        """Name of the wanted model, from `[models.<name>]`."""

        self.resume = ""
        """The token with which the model can resume the conversation later."""

        room = ConversationWindow(turn, start, persona, services)
        self.prompting = PromptBuilder(room, persona, services.clock.wall())
        """Writes the requests."""

        inbound = start.inbound
        user = f"{inbound.address.connector}/{inbound.sender_id}"
        who = Spender(persona.name, user)
        whose = CallOwner(who, persona.config.model, start.turn_id)
        self._calling = ModelCalls(turn, whose, services)

    @property
    def tokens(self) -> int:
        """Estimated tokens of the words of this round so far."""
        return self.words.tokens

    @property
    def asked(self) -> str:
        """The provider's name of the model that was called last."""
        return self._calling.asked

    @property
    def spent(self) -> tuple[Spent, ...]:
        """What the calls cost that no ledger row has yet."""
        return self._calling.spent

    def recall(self, reply: rules.ModelReplied) -> None:
        """Take up the cost of a round before the process ended."""
        spent = reply.spent
        if not spent and reply.usage != Usage():
            # An earlier release did not record which model answered.
            was = self.model
            spent = (Spent(provider=was, model=was, account="", usage=reply.usage),)
        self._calling.spent = add_up(self.spent, spent)
        self._is_planned = True
        if spent:
            self.model = spent[-1].provider

    async def ask(
        self, lines: tuple[TranscriptLine, ...], tools: tuple[ToolSpec, ...]
    ) -> Event:
        """Run one round; models and retries are tried until one answers.

        Before the first one a plan may be made, which the reply then has.

        Args:
            lines: the lines that the turn has added to the conversation so far.
            tools: the tools that the model may call; empty: it must answer in words.
        """
        if self.prompting.is_refused:
            LOG.warning("words that try to change instructions", run=self._run)
            return rules.ModelFailed("untrusted", REFUSED)
        calling, before = self._calling, self._calling.spent
        calling.spent, self._earlier = (), before
        try:
            steps = await self._plan() if not lines else ()
            if steps:
                lines = (TranscriptLine("user", classify.instruct(steps, 1)),)
            self.words.begin_round()
            event = await self._ask_whole(lines, tools)
        finally:
            own, self._earlier = calling.spent, ()
            if before:
                calling.spent = add_up(before, own)
        if isinstance(event, rules.ModelReplied):
            usage = total(own)
            return msgspec.structs.replace(event, usage=usage, spent=own, plan=steps)
        return event

    async def _ask_whole(
        self, lines: tuple[TranscriptLine, ...], tools: tuple[ToolSpec, ...]
    ) -> Event:
        """Call a model with the conversation, compacted if that is too long."""
        room = self.prompting.room
        while True:
            request = self.prompting.request(lines, tools)
            event = await self._ask(request, self.model, room.fits)
            is_long = isinstance(event, rules.ModelFailed) and event.kind == "context"
            if not (is_long and await room.make(self.words)):
                return event

    async def _plan(self) -> tuple[str, ...]:
        """Choose the model before the first answer; give the steps of the answer."""
        if self._is_planned:
            return ()
        self._is_planned = True
        chosen = await chosen_model(self._turn, self._services, self._start.inbound)
        project = active_project(self.prompting.memories.states)
        made = await plan(self._persona, self._start, chosen, self._ask_aside, project)
        self.model = made.model
        return made.steps

    async def _ask_aside(self, request: ModelRequest, model: str) -> str | None:
        """Call a model whose text people do not get."""
        event = await self._ask(request, model, hears=UnheardRound(self.pay))
        return event.text if isinstance(event, rules.ModelReplied) else None

    async def _ask(
        self,
        request: ModelRequest,
        model: str,
        fits: Fits | None = None,
        hears: AnswerListener | None = None,
    ) -> Event:
        said = await self._calling.ask(request, model, hears or self, fits)
        if isinstance(said, rules.ModelFailed):
            return said
        answer = said.answer
        if hears is None:
            self.resume = resume_token_of(said.account, answer.resume)
        return rules.ModelReplied(
            answer.text, answer.tool_calls, answer.usage, self._start.attempt
        )

    def pay(self, spent: tuple[Spent, ...]) -> None:
        """Tell the session the cost so far, in case the turn ends without a report."""
        start = self._start
        whole = add_up(self._earlier, spent) if self._earlier else spent
        self._turn.tell(start.session, TurnSpent(start.turn_id, whole))

    @property
    def _run(self) -> str:
        """The ledger row of this turn, as `records.usage` names it."""
        return f"{self._start.inbound.id}#{self._start.attempt}"
