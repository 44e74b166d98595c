"""One round of a turn: a model is asked, and others if that one cannot answer.

The accounts' actor says for each call where it goes; `rules/tries.py` says how long
this goes on. Who was asked, and whose limit was reached, people are never told.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import msgspec
import trio

from actors import names, planning
from actors.calls import CallEnded, Later, OverBudget, Recalled, Reserve, Reserved
from actors.errors import ModelBusyError, ModelError
from actors.ledger import Spent, add_up, total
from actors.messages import Line, ModelRequest, Usage
from actors.planning import first_choice
from actors.protocol import TurnNoted
from actors.rules import classify, prompt, transcript
from actors.rules import turn as rules
from actors.rules.budget import Who
from actors.rules.fitting import estimate, fit
from actors.rules.tries import Tries
from runtime.errors import KernelError
from runtime.logs import EventLog
from runtime.ref import UNANSWERED

if TYPE_CHECKING:
    from actors.calls import Outcome, Ruling
    from actors.messages import ModelAnswer, ToolSpec
    from actors.persona import Persona
    from actors.protocol import StartTurn
    from actors.services import Services
    from actors.words import Words
    from runtime.actor import Actor

LOG = EventLog("turn")

# Chosen: the accounts answer within microseconds; only after their restart they read
# the ledger first.
RULED_WITHIN = 30.0

# Chosen: seconds until the accounts are asked again that did not answer.
UNRULED = 1.0

NOBODY = "whoever runs me has to look at it; what is wrong stands in the log"
"""What people are told when no account is let in any more."""

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
        "_hears",
        "_is_planned",
        "_persona",
        "_services",
        "_spoken",
        "_start",
        "_turn",
        "asked",
        "model",
        "notes",
        "resume",
        "spent",
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
        self._is_planned = False
        self._hears = True  # whether people hear what is said
        self._spoken: list[str] = []  # said in this round so far
        self._before = ""  # of these, the words of steps that are done
        self.words = words
        self.model = first_choice(persona, start)
        """Which of `[models.<name>]` is wanted."""

        self.asked = ""
        """The provider's name of the model that was asked last."""

        self.resume = ""
        """By which the model that answered may go on later."""

        self.notes: tuple[str, ...] = ()
        """What the model is told at the end of its prompt, beside its tools."""

        self.spent: tuple[Spent, ...] = ()
        """What the calls of this message took that no ledger row tells of."""

    def recall(self, reply: rules.ModelReplied) -> None:
        """Take up what a round took before the process ended."""
        spent = reply.spent
        if not spent and reply.usage != Usage():
            # Recorded by a release that did not write down who answered.
            was = self.model
            spent = (Spent(provider=was, model=was, account="", usage=reply.usage),)
        self.spent = add_up(self.spent, spent)
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
        before, self.spent = self.spent, ()
        try:
            event = await self._ask_in_steps(lines, tools)
        finally:
            own, self.spent = self.spent, add_up(before, self.spent)
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
            note = TurnNoted(
                self._start.turn_id, f"step{number}", classify.progress(steps, number)
            )
            self._turn.tell(self._start.session, note)
        if not steps:
            return await self._ask(self._request(lines, tools), self.model)
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
        request = self._request((*lines, *done, now), tools)
        return await self._ask(request, self.model)

    async def _plan(self) -> tuple[str, ...]:
        """Choose the model before the first answer; give the steps to take."""
        if self._is_planned:
            return ()
        self._is_planned = True
        inbound = self._start.inbound
        made = await planning.plan(
            self._persona, self._start, inbound.correlation_id, self._ask_aside
        )
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

    async def _ask(self, request: ModelRequest, model: str) -> Event:
        tries = Tries(model)
        while True:
            match await self._reserve(request, tries):
                case Reserved() as reserved:
                    ended = await self._call(request, reserved, tries)
                    if ended is not None:
                        return ended
                case Later(seconds=seconds, is_held=is_held):
                    wait = tries.wait_held(seconds) if is_held else tries.wait(seconds)
                    if wait is None:
                        return self._give_up(tries, seconds)
                    await trio.sleep(wait)
                case OverBudget(text=text):
                    return rules.ModelFailed("budget", text)

    def _give_up(self, tries: Tries, seconds: float) -> rules.ModelFailed:
        """Say that nobody can answer now; if ever, no sooner than after so long."""
        if math.isinf(seconds):
            return rules.ModelFailed("refused", NOBODY)
        due = self._services.clock.wall() + seconds
        return rules.ModelFailed("busy", tries.excuse, due)

    async def _reserve(self, request: ModelRequest, tries: Tries) -> Ruling:
        accounts = self._turn.find(names.MODELS)
        if tries.is_exhausted or accounts is None:
            return Later(UNRULED)
        wanted = Reserve(
            turn=self._turn.actor_ref,
            run=self._run,
            who=self._who,
            model=tries.model,
            otherwise=self._persona.config.model,
            needs_tools=bool(request.tools),
            needs_images=any(line.images for line in request.lines),
            estimate=estimate(request),
            tried=tries.tried,
        )
        try:
            ruling: Ruling = await accounts.ask(wanted, timeout=RULED_WITHIN)
        except (*UNANSWERED, KernelError) as error:
            LOG.warning("no account was named", why=str(error))
            return Later(UNRULED)
        return ruling

    async def _call(
        self, request: ModelRequest, reserved: Reserved, tries: Tries
    ) -> Event | None:
        """Make one call; None: somebody else is to be asked."""
        try:
            answer = await self._ask_once(request, reserved)
        except ModelError as error:
            larger = reserved.offer.larger
            step = tries.failed(reserved.backend, error.kind, larger)
            if step == "refuse":
                return rules.ModelFailed("refused", str(error))
            if self._hears:
                self.words.start_over(self._spoken, self._before)
            return None
        if self._hears:
            self.resume = resumable(reserved.backend.account, answer.resume)
        return rules.ModelReplied(
            answer.text, answer.tool_calls, answer.usage, self._start.attempt
        )

    def _speak(self, text: str) -> None:
        if self._hears:
            self.words.speak(self._spoken, text)

    async def _ask_once(self, request: ModelRequest, reserved: Reserved) -> ModelAnswer:
        clock, backend = self._services.clock, reserved.backend
        fitted = msgspec.structs.replace(
            fit(request, reserved.offer),
            resume=resume_of(backend.account, request.resume),
        )
        self.asked = fitted.model
        began = clock.monotonic()
        outcome: Outcome = "cancelled"
        usage, retry_after = Usage(), None
        try:
            answer = await reserved.client.answer(fitted, self._speak)
            outcome, usage = "ok", answer.usage
        except ModelError as error:
            outcome, usage = error.kind, Usage(*error.tokens)
            if isinstance(error, ModelBusyError):
                retry_after = error.retry_after
            LOG.info(
                "no answer from a model",
                correlation_id=request.correlation_id,
                account=backend.account,
                model=backend.model,
                kind=error.kind,
                why=str(error),
            )
            raise
        finally:
            self._services.metrics.model_call(
                backend.model, outcome, clock.monotonic() - began
            )
            self._end(reserved, outcome, usage, retry_after)
        return answer

    def _end(
        self,
        reserved: Reserved,
        outcome: Outcome,
        usage: Usage,
        retry_after: float | None,
    ) -> None:
        """Tell the accounts what came of a call, and note what it took."""
        backend = reserved.backend
        spent = None
        if usage != Usage() or outcome == "ok":
            spent = reserved.spent(usage)
            self.spent = add_up(self.spent, (spent,))
            self._services.metrics.tokens(backend.model, usage)
        ended = CallEnded(
            number=reserved.number,
            backend=backend,
            who=self._who,
            run=self._run,
            outcome=outcome,
            spent=spent,
            retry_after=retry_after,
        )
        self._turn.tell(names.MODELS, ended)

    @property
    def _run(self) -> str:
        """The ledger row of this turn, as `records.usage` names it."""
        return f"{self._start.inbound.id}#{self._start.attempt}"

    @property
    def _who(self) -> Who:
        inbound = self._start.inbound
        user = f"{inbound.address.connector}/{inbound.sender_id}"
        return Who(self._persona.name, user)

    def _request(
        self, lines: tuple[Line, ...], tools: tuple[ToolSpec, ...]
    ) -> ModelRequest:
        persona = self._persona
        start = self._start
        inbound = start.inbound
        asked = Line(
            "user", inbound.text, name=inbound.sender_name, images=start.images
        )
        history = transcript.prepare(
            (*start.history, asked), persona.config.max_history + 1
        )
        system = prompt.system_prompt(
            persona.name, persona.files, persona.config.prompt, persona.colleagues
        )
        return ModelRequest(
            model="",  # whoever is asked has its own name for it
            agent=persona.name,
            correlation_id=inbound.correlation_id,
            system="\n\n".join((system, *self.notes)),
            lines=(*history, *lines),
            tools=tools,
            temperature=persona.config.temperature,
            max_tokens=persona.config.max_tokens,
            conversation=start.conversation,
            resume="" if lines else start.resume,  # it knows nothing of these lines
            notes=self.notes,
        )


def resumable(account: str, resume: str) -> str:
    """Write down by which an account may go on with a conversation."""
    return f"{account} {resume}" if resume else ""


def resume_of(account: str, resumable: str) -> str:
    """Give what an account itself gave to go on by; empty if another one did."""
    whose, _, resume = resumable.partition(" ")
    return resume if whose == account else ""


def joined(before: str, text: str) -> str:
    """Put the words of one step after those of the steps before it."""
    return "\n\n".join(each for each in (before, text) if each)
