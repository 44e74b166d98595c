"""Puts one request to the models: one is asked, and others if that one cannot answer.

The accounts' actor says for each call where it goes; `rules/tries.py` says how long
this goes on. Who was asked, and whose limit was reached, people are never told.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Protocol, cast

import msgspec
import trio

from actors import names
from actors.calls import (
    CallEnded,
    Later,
    OverBudget,
    Reserve,
    Reserved,
    Unreserve,
)
from actors.errors import ModelBusyError, ModelError, ModelFault
from actors.ledger import Spent, add_up
from actors.messages import ModelAnswer, Usage
from actors.rules.budget import Who
from actors.rules.fitting import estimate, fit
from actors.rules.tries import Tries
from actors.rules.turn import FailureKind, ModelFailed
from actors.saying import Said, resume_of
from runtime.errors import KernelError
from runtime.logs import EventLog, Quoted
from runtime.ref import UNANSWERED

if TYPE_CHECKING:
    from collections.abc import Callable

    from actors.calls import Outcome, Ruling
    from actors.messages import ModelRequest
    from actors.rules.accounts import Offer
    from actors.services import Services
    from runtime.actor import Actor

    Fits = Callable[[ModelRequest, Offer], bool]
    """Whether a request may go to a model."""

LOG = EventLog("turn")

# Chosen: the accounts answer within microseconds; only after their restart they read
# the ledger first.
RULED_WITHIN = 30.0

# Chosen: seconds until the accounts are asked again that did not answer.
UNRULED = 1.0

NOBODY = "whoever runs me has to look at it; what is wrong stands in the log"
"""What people are told when no account is let in any more."""

FAILURES: dict[ModelFault, FailureKind] = {"context": "context", "vision": "vision"}
"""What a refusal is to the turn; any other is one that nothing can be done about."""

TOO_LONG = "the conversation is too long for the model, so it was not asked"


class Hears(Protocol):
    """Who hears what is said while it is being said."""

    def speak(self, text: str) -> None:
        """Take the next words."""
        ...

    def start_over(self) -> None:
        """Take back the words of an answer that broke off; another one follows."""
        ...

    def pay(self, spent: tuple[Spent, ...]) -> None:
        """Learn what is to be paid by now, should nobody tell it later."""
        ...


class Nobody:
    """Hears nothing: only the whole answer counts."""

    def speak(self, text: str) -> None:
        """Pass over it."""

    def start_over(self) -> None:
        """Pass over it."""

    def pay(self, spent: tuple[Spent, ...]) -> None:
        """Pass over it: the sum is asked for at the end."""


NOBODY_HEARS = Nobody()


class Whose(msgspec.Struct, frozen=True):
    """On whose account calls stand."""

    run: str
    """The ledger row that will tell of them, as `records.usage` names it."""

    who: Who
    model: str
    """The agent's own model, should the wanted one be gone from the settings."""


class Answered(msgspec.Struct, frozen=True):
    """A model answered."""

    answer: ModelAnswer
    account: str
    """Where it was asked."""


class Calling:
    """Makes the calls to models of one run.

    Args:
        caller: the actor on whose behalf.
        whose: on whose account they stand.
        services: clock and counts.
    """

    __slots__ = ("_caller", "_services", "_whose", "asked", "spent")

    def __init__(self, caller: Actor, whose: Whose, services: Services) -> None:
        self._caller = caller
        self._whose = whose
        self._services = services
        self.asked = ""
        """The provider's name of the model that was asked last."""

        self.spent: tuple[Spent, ...] = ()
        """What the calls took so far."""

    async def ask(
        self,
        request: ModelRequest,
        model: str,
        hears: Hears = NOBODY_HEARS,
        fits: Fits | None = None,
    ) -> Answered | ModelFailed:
        """Ask until somebody answers, or nobody can.

        Args:
            request: what is asked.
            model: which of `[models.<name>]` is wanted.
            hears: told the words as they come.
            fits: whether a request may go to a model; if not, that is the answer.
        """
        tries = Tries(model)
        while True:
            match await self._reserve(request, tries):
                case Reserved() as reserved:
                    if fits is not None and not fits(request, reserved.offer):
                        nothing = reserved.spent(Usage())
                        self._end(reserved, "cancelled", nothing, None)
                        return ModelFailed("context", TOO_LONG)
                    ended = await self._call(request, reserved, tries, hears)
                    if ended is not None:
                        return ended
                case Later(seconds=seconds, is_held=is_held):
                    wait = tries.wait_held(seconds) if is_held else tries.wait(seconds)
                    if wait is None:
                        return self._give_up(tries, seconds)
                    await trio.sleep(wait)
                case OverBudget(text=text):
                    return ModelFailed("budget", text)

    def _give_up(self, tries: Tries, seconds: float) -> ModelFailed:
        """Say that nobody can answer now; if ever, no sooner than after so long."""
        if math.isinf(seconds):
            return ModelFailed("refused", NOBODY)
        due = self._services.clock.wall() + seconds
        return ModelFailed("busy", tries.excuse, due)

    async def _reserve(self, request: ModelRequest, tries: Tries) -> Ruling:
        accounts = self._caller.find(names.MODELS)
        if tries.is_exhausted or accounts is None:
            return Later(UNRULED)
        wanted = Reserve(
            turn=self._caller.actor_ref,
            run=self._whose.run,
            who=self._whose.who,
            model=tries.model,
            otherwise=self._whose.model,
            needs_tools=bool(request.tools),
            needs_images=any(line.images for line in request.lines),
            estimate=estimate(request),
            tried=tries.tried,
        )
        ruling: Ruling | None = None
        try:
            ruling = cast("Ruling", await accounts.ask(wanted, timeout=RULED_WITHIN))
        except (*UNANSWERED, KernelError) as error:
            LOG.warning("no account was named", why=str(error))
        finally:
            if ruling is None:  # else it would be held until the caller's end
                self._caller.tell(names.MODELS, Unreserve(self._caller.actor_ref))
        return ruling or Later(UNRULED)

    async def _call(
        self, request: ModelRequest, reserved: Reserved, tries: Tries, hears: Hears
    ) -> Answered | ModelFailed | None:
        """Make one call; None: somebody else is to be asked."""
        try:
            answer = await self._ask_once(request, reserved, hears)
        except ModelError as error:
            larger = reserved.offer.larger
            step = tries.failed(reserved.backend, error.kind, larger)
            if step == "refuse":
                return ModelFailed(FAILURES.get(error.kind, "refused"), str(error))
            hears.start_over()
            return None
        return Answered(answer, reserved.backend.account)

    async def _ask_once(
        self, request: ModelRequest, reserved: Reserved, hears: Hears
    ) -> ModelAnswer:
        clock, backend = self._services.clock, reserved.backend
        fitted = msgspec.structs.replace(
            fit(request, reserved.offer),
            resume=resume_of(backend.account, request.resume),
        )
        self.asked = fitted.model
        began = clock.monotonic()
        outcome: Outcome = "cancelled"
        usage, retry_after = Usage(), None
        said = Said(hears.speak)
        read = Usage(estimate(fitted).input_tokens)
        hears.pay(add_up(self.spent, (reserved.spent(read, is_reckoned=True),)))
        try:
            answer = await reserved.client.answer(fitted, said.speak)
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
                why=Quoted(error),
            )
            raise
        finally:
            self._services.metrics.model_call(
                backend.model, outcome, clock.monotonic() - began
            )
            is_untold = outcome in {"ok", "cancelled"} and usage == Usage()
            if is_untold:
                usage = read + Usage(0, said.tokens)
            spent = reserved.spent(usage, is_reckoned=is_untold)
            self._end(reserved, outcome, spent, retry_after)
            hears.pay(self.spent)
        return answer

    def _end(
        self,
        reserved: Reserved,
        outcome: Outcome,
        took: Spent,
        retry_after: float | None,
    ) -> None:
        """Tell the accounts what came of a call, and note what it took."""
        backend = reserved.backend
        spent = None
        if took.usage != Usage() or outcome == "ok":
            spent = took
            self.spent = add_up(self.spent, (spent,))
            self._services.metrics.tokens(backend.model, took.usage)
        ended = CallEnded(
            number=reserved.number,
            backend=backend,
            who=self._whose.who,
            run=self._whose.run,
            outcome=outcome,
            spent=spent,
            retry_after=retry_after,
        )
        self._caller.tell(names.MODELS, ended)
