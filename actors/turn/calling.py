"""Sends one request to a model, and to others if that one cannot answer.

The accounts actor chooses the backend of each call; `TriedBackends` in `models/pool.py`
says how long this goes on. People are never told which accounts were called or which
limit was reached.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Protocol, cast

import msgspec
import trio

from actors import names
from actors.errors import ModelBusyError, ModelError, ModelFault
from actors.messages.inbound import ModelAnswer, ModelRequest, Usage
from actors.messages.tracing import TracedStep
from actors.messages.usage import Spent, add_up
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
from actors.rules.prompt.estimate import estimate, fit, tokens_of
from actors.services import Services
from actors.turn.machine import FailureKind, ModelFailed
from actors.turn.stream import resume_of
from runtime.actor.actor import Actor
from runtime.actor.ref import UNANSWERED
from runtime.errors import KernelError
from runtime.telemetry.logs import EventLog, Quoted

if TYPE_CHECKING:
    from collections.abc import Callable

    Fits = Callable[[int, ModelOffer], bool]
    """Whether a request may go to a model."""

LOG = EventLog("turn")

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
            if self._services.trace is not None:
                seconds = clock.monotonic() - began
                self._trace(request, spent, seconds, outcome)
            self._end(reserved, outcome, spent, retry_after, why)
            hears.pay(self.spent)
        return answer

    def _trace(
        self, request: ModelRequest, spent: Spent, seconds: float, outcome: Outcome
    ) -> None:
        """Report a call to tracing."""
        trace = self._services.trace
        if trace is not None:
            trace(
                TracedStep(
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
