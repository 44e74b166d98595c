"""The rounds of a turn: which model is called, with which request.

Before the first round a cheap model may choose the model and the steps of the answer.
`ModelCalls` makes the calls, with retries and other models. The accounts actor chooses
the backend of each; `TriedBackends` in `actors/models/pool.py` says how long this goes
on. People are never told which accounts were called or which limit was reached.
"""

from __future__ import annotations

import math
from collections.abc import Awaitable, Callable
from typing import Protocol, cast

import msgspec
import trio

from actors import names
from actors.agents.persona import Persona
from actors.config.routes import RoutingConfig
from actors.errors import ModelBusyError, ModelError, ModelFault
from actors.memory.notebook import active_project
from actors.messages.inbound import (
    ModelAnswer,
    ModelRequest,
    ToolSpec,
    TranscriptLine,
    Usage,
)
from actors.messages.tracing import TracedStep
from actors.messages.usage import Spent, add_up, total
from actors.models import classify
from actors.models.budget import Spender
from actors.models.messages import (
    CallEnded,
    CallLater,
    CancelReserve,
    Outcome,
    OverBudget,
    Reserve,
    Reserved,
    Ruling,
)
from actors.models.pool import ModelOffer, TriedBackends
from actors.people.lookup import chosen_model
from actors.protocol import StartTurn, TurnSpent
from actors.rules.prompt.brief import BY_ITSELF
from actors.rules.prompt.estimate import estimate, fit, tokens_of
from actors.rules.prompt.untrusted import REFUSED, clean
from actors.services import Services
from actors.turn import machine as rules
from actors.turn.machine import FailureKind, ModelFailed
from actors.turn.request import ConversationWindow, PromptBuilder
from actors.turn.stream import AnswerStream, resume_of, resume_token_of
from runtime.actor.actor import Actor
from runtime.actor.ref import UNANSWERED
from runtime.errors import KernelError
from runtime.telemetry.logs import EventLog, Quoted

LOG = EventLog("turn")

Fits = Callable[[int, ModelOffer], bool]
"""Whether a request may go to a model."""

# Chosen: the accounts answer within microseconds, but read the ledger after a restart.
RULED_WITHIN = 30.0
"""Seconds within which the accounts must choose a backend."""

UNRULED = 1.0
"""Seconds until accounts that did not answer are asked again."""

NOBODY = "please tell whoever runs me; the log says what is wrong"
"""The text for people when every account is refused."""

FAILURES: dict[ModelFault, FailureKind] = {"context": "context", "vision": "vision"}
"""Faults that the turn can do something about; any other is `refused`."""

TOO_LONG = (
    "the conversation is too long for the model, so it was not asked; /new begins"
    " another one"
)

REASONS: dict[ModelFault, str] = {
    "context": "the conversation is too long for the model; /new begins another one",
    "vision": "send words, or ask whoever runs me for a model that sees",
    "content": (
        "its provider allows no answer to this; say it in other words, or begin another"
        " conversation with /new"
    ),
}
"""The texts for people when a model refuses; for any other fault it is `NOBODY`.

What the provider says stands in the log: it names hosts, models and accounts, and is in
the words of a stranger.
"""


class AnswerListener(Protocol):
    """Gets the text of an answer while it is streamed."""

    @property
    def tokens(self) -> int:
        """Estimated tokens of the words since the call began."""
        ...

    def speak(self, text: str) -> None:
        """Take the next words."""
        ...

    def start_over(self) -> None:
        """Take back the words of an answer that broke off; another answer follows."""
        ...

    def pay(self, spent: tuple[Spent, ...]) -> None:
        """Note the cost so far, in case the turn ends without a report."""
        ...


class NoListener:
    """Only counts the stream, for callers that use the whole answer."""

    tokens = 0
    """Estimated tokens of the words since the call began."""

    def speak(self, text: str) -> None:
        """Count the next words."""
        self.tokens += tokens_of(text)

    def start_over(self) -> None:
        """Begin to count anew."""
        self.tokens = 0

    def pay(self, spent: tuple[Spent, ...]) -> None:
        """Ignore it: the caller reads the sum at the end."""


class CallOwner(msgspec.Struct, frozen=True):
    """Who pays for calls."""

    who: Spender
    model: str
    """The agent's own model, used if the wanted one is no longer in the settings."""

    turn: str = ""
    """Id of the turn that makes them; empty: none does."""


class ModelAnswered(msgspec.Struct, frozen=True):
    """A model answered."""

    answer: ModelAnswer
    account: str
    """Name of the account that was called."""


class ModelCalls(msgspec.Struct, eq=False):
    """Makes the model calls of one run.

    Args:
        caller: the actor that makes them.
    """

    _caller: Actor
    _whose: CallOwner
    _services: Services
    asked: str = ""
    """The provider's name of the model that was called last."""

    spent: tuple[Spent, ...] = ()
    """The cost of the calls so far."""

    async def ask(
        self,
        request: ModelRequest,
        model: str,
        hears: AnswerListener | None = None,
        fits: Fits | None = None,
    ) -> ModelAnswered | ModelFailed:
        """Call models until one answers, or none can.

        Args:
            model: name of the wanted model, from `[models.<name>]`.
            hears: gets the streamed text; None: nobody does.
            fits: whether a request of so many tokens fits a model; if not, the call
                fails with `context`.
        """
        tries, size = TriedBackends(model), estimate(request)
        hears = hears or NoListener()
        while True:
            match await self._reserve(request, size, tries):
                case Reserved() as reserved:
                    if fits is not None and not fits(size.input_tokens, reserved.offer):
                        nothing = reserved.spent(Usage())
                        self._end(reserved, "cancelled", nothing, None)
                        return ModelFailed("context", TOO_LONG)
                    ended = await self._call(request, reserved, tries, hears)
                    if ended is not None:
                        return ended
                case CallLater(seconds=seconds, is_held=is_held) as later:
                    tries.learn(later.kind, later.why)
                    wait = tries.wait_held(seconds) if is_held else tries.wait(seconds)
                    if wait is None:
                        return self._give_up(tries, seconds)
                    await trio.sleep(wait)
                case OverBudget(text=text):
                    return ModelFailed("budget", text)

    def _give_up(self, tries: TriedBackends, seconds: float) -> ModelFailed:
        """Fail because no model can answer now, at the earliest in `seconds`."""
        if math.isinf(seconds):
            return ModelFailed("refused", self._told(NOBODY, tries.why))
        due = self._services.clock.wall() + seconds
        return ModelFailed("busy", self._told(tries.excuse, tries.why), due)

    def _told(self, text: str, why: str) -> str:
        """Give the text for people; at the operators' own terminal, what was said.

        Args:
            why: names host, model and where the key is from; may be empty.
        """
        connector = self._whose.who.user.partition("/")[0]
        is_operators = self._services.accounts[connector].abilities.is_operators
        return why if why and is_operators else text

    async def _reserve(
        self, request: ModelRequest, size: Usage, tries: TriedBackends
    ) -> Ruling:
        accounts = self._caller.find(names.MODELS)
        if tries.is_exhausted or accounts is None:
            return CallLater(UNRULED)
        wanted = Reserve(
            turn=self._caller.actor_ref,
            who=self._whose.who,
            model=tries.model,
            otherwise=self._whose.model,
            needs_tools=bool(request.tools),
            needs_images=bool([x for x in request.lines if x.images]),
            estimate=size,
            tried=tries.tried,
        )
        ruling: Ruling | None = None
        try:
            ruling = cast("Ruling", await accounts.ask(wanted, timeout=RULED_WITHIN))
        except (*UNANSWERED, KernelError) as error:
            LOG.warning("no account was named", why=str(error))
        finally:
            if ruling is None:  # else it would be held until the caller's end
                self._caller.tell(names.MODELS, CancelReserve(self._caller.actor_ref))
        return ruling or CallLater(UNRULED)

    async def _call(
        self,
        request: ModelRequest,
        reserved: Reserved,
        tries: TriedBackends,
        hears: AnswerListener,
    ) -> ModelAnswered | ModelFailed | None:
        """Make one call; None: another backend is to be called."""
        try:
            answer = await self._ask_once(request, reserved, hears)
        except ModelError as error:
            larger = reserved.offer.larger
            step = tries.failed(reserved.backend, error.kind, larger, error.plain)
            if step == "refuse":
                kind = FAILURES.get(error.kind, "refused")
                text = REASONS.get(error.kind) or self._told(NOBODY, error.plain)
                return ModelFailed(kind, text)
            hears.start_over()
            return None
        return ModelAnswered(answer, reserved.backend.account)

    async def _ask_once(
        self, request: ModelRequest, reserved: Reserved, hears: AnswerListener
    ) -> ModelAnswer:
        clock, backend = self._services.clock, reserved.backend
        fitted = msgspec.structs.replace(
            fit(request, reserved.offer),
            resume=resume_of(backend.account, request.resume),
        )
        if (name := self._services.traceparent) is not None:
            parent = name(request.correlation_id, self._whose.turn)
            fitted = msgspec.structs.replace(fitted, traceparent=parent)
        self.asked = fitted.model
        began = clock.monotonic()
        outcome: Outcome = "cancelled"
        usage, retry_after, why = Usage(), None, ""
        read = Usage(estimate(fitted).input_tokens)
        hears.pay(add_up(self.spent, (reserved.spent(read, is_reckoned=True),)))
        try:
            answer = await reserved.client.answer(fitted, hears.speak)
            outcome, usage = "ok", answer.usage
        except ModelError as error:
            outcome, usage, why = error.kind, Usage(*error.tokens), error.plain
            if isinstance(error, ModelBusyError):
                retry_after = error.retry_after
            # Why: people are told to report it (`NOBODY`), so it is to be found.
            write = LOG.warning if error.kind == "bad_request" else LOG.info
            write(
                "no answer from a model",
                correlation_id=request.correlation_id,
                account=backend.account,
                model=backend.model,
                kind=error.kind,
                why=error.plain or "see it with log.texts = true",
                said=Quoted(error),
            )
            raise
        finally:
            self._services.metrics.model_calls.observe(
                clock.monotonic() - began, backend.model, outcome
            )
            is_untold = outcome in {"ok", "cancelled"} and usage == Usage()
            if is_untold:
                usage = read + Usage(0, hears.tokens)
            spent = reserved.spent(usage, is_reckoned=is_untold)
            if (trace := self._services.trace) is not None:
                seconds = clock.monotonic() - began
                trace(self._step(request, spent, seconds, outcome))
            self._end(reserved, outcome, spent, retry_after, why)
            hears.pay(self.spent)
        return answer

    def _step(
        self, request: ModelRequest, spent: Spent, seconds: float, outcome: Outcome
    ) -> TracedStep:
        return TracedStep(
            stage="model",
            correlation_id=request.correlation_id,
            seconds=seconds,
            name=spent.model,
            agent=request.agent,
            turn=self._whose.turn,
            outcome=outcome,
            model=spent.provider,
            usage=spent.usage,
        )

    def _end(
        self,
        reserved: Reserved,
        outcome: Outcome,
        took: Spent,
        retry_after: float | None,
        why: str = "",
    ) -> None:
        """Tell the accounts the outcome of a call, and add its cost."""
        backend = reserved.backend
        spent = None
        if took.usage != Usage() or outcome == "ok":
            spent = took
            self.spent = add_up(self.spent, (spent,))
            self._services.metrics.tokens(backend.model, took.usage)
        ended = CallEnded(
            call=reserved.call,
            backend=backend,
            who=self._whose.who,
            outcome=outcome,
            spent=spent,
            retry_after=retry_after,
            why=why,
        )
        self._caller.tell(names.MODELS, ended)


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
