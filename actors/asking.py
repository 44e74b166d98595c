"""One round of a turn: a model is asked, and others if that one cannot answer.

What is asked stands here; how an answer is got from whoever may be asked, in
`calling.py`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from actors import names, planning
from actors.calling import Calling, Whose
from actors.calls import Recalled
from actors.knowing import chosen_model
from actors.ledger import Spent, add_up, total
from actors.messages import Line, Usage
from actors.planning import first_choice
from actors.prompting import Prompting
from actors.protocol import TurnNoted, TurnSpent
from actors.room import Room
from actors.rules import classify
from actors.rules import turn as rules
from actors.rules.briefing import BY_ITSELF
from actors.rules.budget import Who
from actors.rules.hygiene import REFUSED
from actors.saying import joined, resumable
from runtime.logs import EventLog

if TYPE_CHECKING:
    from actors.calling import Fits
    from actors.messages import ModelRequest, ToolSpec
    from actors.persona import Persona
    from actors.protocol import StartTurn
    from actors.services import Services
    from actors.words import Words
    from runtime.actor import Actor

LOG = EventLog("turn")

Event = rules.ModelReplied | rules.ModelFailed


class Asking:
    """Asks the models of one turn.

    Args:
        turn: on whose behalf.
        start: what was asked, and the conversation before it.
        persona: whose model, and what it is told about itself.
        services: clock, counts, models.
        words: hears what the model says.
    """

    __slots__ = (
        "_before",
        "_calling",
        "_earlier",
        "_hears",
        "_is_planned",
        "_persona",
        "_services",
        "_spoken",
        "_start",
        "_turn",
        "model",
        "prompting",
        "resume",
        "words",
    )

    def __init__(
        self,
        turn: Actor,
        start: StartTurn,
        persona: Persona,
        services: Services,
        words: Words,
    ) -> None:
        self._turn = turn
        self._persona = persona
        self._services = services
        self._start = start
        self._is_planned = start.mode in BY_ITSELF  # its model is chosen
        self._earlier: tuple[Spent, ...] = ()  # what the rounds before took
        self._hears = True  # whether people hear what is said
        self._spoken: list[str] = []  # said in this round so far
        self._before = ""  # of these, the words of steps that are done
        self.words = words
        self.model = first_choice(persona, start)
        """Which of `[models.<name>]` is wanted."""

        self.resume = ""
        """By which the model that answered may go on later."""

        room = Room(turn, start, persona, services)
        self.prompting = Prompting(room, persona, services.clock.wall())
        """Writes the requests."""

        whose = Whose(self._run, self._who, persona.config.model)
        self._calling = Calling(turn, whose, services)

    @property
    def asked(self) -> str:
        """The provider's name of the model that was asked last."""
        return self._calling.asked

    @property
    def spent(self) -> tuple[Spent, ...]:
        """What the calls of this message took that no ledger row tells of."""
        return self._calling.spent

    def recall(self, reply: rules.ModelReplied) -> None:
        """Take up what a round took before the process ended."""
        spent = reply.spent
        if not spent and reply.usage != Usage():
            # Recorded by a release that did not write down who answered.
            was = self.model
            spent = (Spent(provider=was, model=was, account="", usage=reply.usage),)
        self._calling.spent = add_up(self.spent, spent)
        self._is_planned = True
        if spent:
            self.model = spent[-1].provider
            was_run = f"{self._start.inbound.id}#{reply.attempt}"
            recalled = Recalled(was_run, self._run, self._who, spent)
            self._turn.tell(names.MODELS, recalled)

    async def ask(self, lines: tuple[Line, ...], tools: tuple[ToolSpec, ...]) -> Event:
        """Ask until somebody answers, or nobody can.

        Args:
            lines: what the turn has added to the conversation so far.
            tools: what the model may call; empty: it must answer in words.
        """
        if self.prompting.is_refused:
            LOG.warning("words that try to change instructions", run=self._run)
            return rules.ModelFailed("untrusted", REFUSED)
        calling, before = self._calling, self.spent
        calling.spent, self._earlier = (), before
        try:
            event = await self._ask_in_steps(lines, tools)
        finally:
            own, calling.spent = calling.spent, add_up(before, calling.spent)
            self._earlier = ()
        if isinstance(event, rules.ModelReplied):
            usage = total(own)
            return msgspec.structs.replace(event, usage=usage, spent=own)
        return event

    async def _ask_in_steps(
        self, lines: tuple[Line, ...], tools: tuple[ToolSpec, ...]
    ) -> Event:
        """Ask once, or once for each step that the answer is to be written in."""
        steps = await self._plan() if not lines else ()
        self._spoken, self._before = [], ""
        for number, _ in enumerate(steps[:-1], 1):
            event = await self._ask_step(lines, (), steps, number)
            if isinstance(event, rules.ModelFailed):
                return event
            self._before = joined(self._before, event.text)
            self.words.speak(self._spoken, "\n\n")
            done = classify.progress(steps, number)
            note = TurnNoted(self._start.turn_id, f"step{number}", done, "step")
            self._turn.tell(self._start.session, note)
        if not steps:
            return await self._ask_whole(lines, tools)
        last = await self._ask_step(lines, tools, steps, len(steps))
        if isinstance(last, rules.ModelFailed):
            return last
        text = joined(self._before, last.text)
        return msgspec.structs.replace(last, text=text)

    async def _ask_step(
        self,
        lines: tuple[Line, ...],
        tools: tuple[ToolSpec, ...],
        steps: tuple[str, ...],
        number: int,
    ) -> Event:
        done = (Line("assistant", self._before),) if self._before else ()
        now = Line("user", classify.instruct(steps, number))
        return await self._ask_whole((*lines, *done, now), tools)

    async def _ask_whole(
        self, lines: tuple[Line, ...], tools: tuple[ToolSpec, ...]
    ) -> Event:
        """Ask with the conversation before it, shortened if that is too long."""
        room = self.prompting.room
        while True:
            request = self.prompting.request(lines, tools)
            event = await self._ask(request, self.model, room.fits)
            is_long = isinstance(event, rules.ModelFailed) and event.kind == "context"
            if not (is_long and await room.make(self.words)):
                return event

    async def _plan(self) -> tuple[str, ...]:
        """Choose the model before the first answer; give the steps to take."""
        if self._is_planned:
            return ()
        self._is_planned = True
        chosen = await chosen_model(self._turn, self._services, self._start.inbound)
        made = await planning.plan(self._persona, self._start, chosen, self._ask_aside)
        self.model = made.model
        return made.steps

    async def _ask_aside(self, request: ModelRequest, model: str) -> str | None:
        """Ask something that people do not hear."""
        self._hears = False
        try:
            event = await self._ask(request, model)
        finally:
            self._hears = True
        return event.text if isinstance(event, rules.ModelReplied) else None

    async def _ask(
        self, request: ModelRequest, model: str, fits: Fits | None = None
    ) -> Event:
        said = await self._calling.ask(request, model, self, fits)
        if isinstance(said, rules.ModelFailed):
            return said
        answer = said.answer
        if self._hears:
            self.resume = resumable(said.account, answer.resume)
        return rules.ModelReplied(
            answer.text, answer.tool_calls, answer.usage, self._start.attempt
        )

    def speak(self, text: str) -> None:
        """Pass on what the model says, if it is for people."""
        if self._hears:
            self.words.speak(self._spoken, text)

    def start_over(self) -> None:
        """Take back what was said of an answer that broke off."""
        if self._hears:
            self.words.start_over(self._spoken, self._before)

    def pay(self, spent: tuple[Spent, ...]) -> None:
        """Have the session know what is to be paid, should nobody tell it later."""
        start = self._start
        paid = TurnSpent(start.turn_id, add_up(self._earlier, spent))
        self._turn.tell(start.session, paid)

    @property
    def _run(self) -> str:
        """The ledger row of this turn, as `records.usage` names it."""
        return f"{self._start.inbound.id}#{self._start.attempt}"

    @property
    def _who(self) -> Who:
        inbound = self._start.inbound
        user = f"{inbound.address.connector}/{inbound.sender_id}"
        return Who(self._persona.name, user)
