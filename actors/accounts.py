"""The accounts at providers: which one is asked next, and what may still be spent."""

from __future__ import annotations

from collections import OrderedDict
from typing import TYPE_CHECKING, ClassVar

import msgspec

from actors.calls import (
    CallEnded,
    Later,
    OverBudget,
    Recalled,
    Reserve,
    Reserved,
    Ruling,
)
from actors.purse import Purse, RunSpent, remember
from actors.rules.accounts import Backend, NothingLeft, Pool, Wanted
from actors.rules.budget import Amount, Budget, Softened, Who, refusal
from runtime.actor import Actor
from runtime.errors import StoreError
from runtime.logs import EventLog
from runtime.mailbox import MailboxConfig
from runtime.messages import Terminated
from runtime.ref import ActorRef

if TYPE_CHECKING:
    from actors.errors import ModelFault
    from actors.services import Services

LOG = EventLog("models")

# Chosen: seconds until the ledger is read again after the disk refused.
READ_AGAIN = 2.0

# Chosen: seconds until a call is asked for again that would be over budget if all that
# is under way cost what it may; most calls are over by then.
HELD_WAIT = 2.0

# Chosen: how often the cool-downs shown in the metrics are brought up to date.
LOOK_EVERY = 10.0


class Held(msgspec.Struct, frozen=True):
    """One reservation."""

    turn: ActorRef
    backend: Backend
    who: Who
    estimate: Amount


class Kept(msgspec.Struct, frozen=True):
    """A note to its next incarnation."""

    pool: Pool
    held: dict[int, Held]
    runs: OrderedDict[str, RunSpent]
    number: int


class ReadLedger(msgspec.Struct, frozen=True):
    """A note to itself: the disk may be well again."""


class LookAtCoolDowns(msgspec.Struct, frozen=True):
    """A note to itself: bring the metrics up to date."""


class Accounts(Actor):
    """Says for each call which account it goes to, or why it may not be made.

    Takes: `Reserve` (asked), `CallEnded`, `Recalled` from turns; `Terminated` about
        them.
    Sends: nothing but answers.
    Keeps: cool-downs, reservations, and what was spent, which it adds up from the
        ledger when it starts.
    Fails: never by these messages; what does not stand in the ledger goes to its next
        incarnation.
    Ends: with the system.
    """

    # Chosen: one message for each turn under way, and for each call that ended.
    mailbox: ClassVar[MailboxConfig] = MailboxConfig(capacity=100_000)

    def __init__(self, services: Services) -> None:
        super().__init__()
        self._services = services
        self._catalogue = catalogue = services.catalogue
        self._pool = Pool(catalogue.offers, catalogue.preferences)
        self._purse = Purse(services)
        self._held: dict[int, Held] = {}
        self._turns: dict[ActorRef, set[int]] = {}
        self._number = 0
        self._warned: OrderedDict[str, None] = OrderedDict()

    def on_start(self) -> object:
        """Add up what was spent in the present day and month."""
        self.every(LOOK_EVERY, LookAtCoolDowns())
        return None if self._purse.is_ready else self._read_ledger()

    def on_failure(self, *_: object, **__: object) -> None:
        """Hand on what does not stand in the ledger."""
        kept = Kept(self._pool, self._held, self._purse.runs, self._number)
        self.requeue(kept)

    def on_receive(self, message: object) -> object:
        """Rule on a call, or learn how one ended."""
        match message:
            case Reserve():
                return self._reserve(message)
            case CallEnded():
                self._ended(message)
            case Recalled(was_run=was_run, run=run, who=who, spent=spent):
                self._purse.recall(was_run, run, who, spent)
            case Terminated(ref=ref):
                for number in self._turns.pop(ref, ()):
                    self._release(number)
            case _:
                return self._on_note(message)
        return None

    def _on_note(self, message: object) -> object:
        match message:
            case Kept():
                return self._take_over(message)
            case ReadLedger():
                return self._read_ledger()
            case LookAtCoolDowns():
                self._show_cool_downs()
            case _:
                super().on_receive(message)
        return None

    # --- a call begins ---------------------------------------------------------------

    def _reserve(self, asked: Reserve) -> Ruling:
        if not self._purse.is_ready:
            return Later(READ_AGAIN)
        verdict = self._purse.verdict(asked.who)
        if verdict.stop is not None:
            return self._refuse(asked.who, verdict.stop, verdict.until)
        if verdict.is_held:
            self._services.metrics.budget("held")
            return Later(HELD_WAIT, is_held=True)
        self._warn(verdict.softened)
        return self._choose(asked, verdict.downgrade_to)

    def _refuse(self, who: Who, budget: Budget, until: float) -> OverBudget:
        self._services.metrics.budget("stop")
        LOG.warning(
            "budget used up",
            scope=budget.scope,
            agent=who.agent,
            user=who.user,
        )
        return OverBudget(refusal(budget, until, self._catalogue.zone))

    def _warn(self, softened: tuple[Softened, ...]) -> None:
        """Say once in each period that a soft limit is reached."""
        for each in softened:
            mark = f"{each.budget} {each.key} {each.period}"
            if mark not in self._warned:
                remember(self._warned, mark, None)
                self._services.metrics.budget("soft")
                LOG.warning(
                    "soft budget reached", scope=each.budget.scope, who=each.key
                )

    def _choose(self, asked: Reserve, downgrade_to: str) -> Ruling:
        metrics = self._services.metrics
        now = self._services.clock.monotonic()
        if downgrade_to and downgrade_to != asked.model:
            metrics.budget("downgrade")
        wanted = Wanted(
            model=downgrade_to or asked.model,
            needs_tools=asked.needs_tools,
            needs_images=asked.needs_images,
            tried=asked.tried,
        )
        chosen = self._pool.choose(wanted, now)
        if isinstance(chosen, NothingLeft):
            metrics.fallback(wanted.model, "none")
            return Later(max(0.0, chosen.at - now))
        if chosen.model != wanted.model:
            metrics.fallback(wanted.model, chosen.model)
        self._number += 1
        estimate = asked.estimate
        tokens = estimate.input_tokens + estimate.output_tokens
        amount = Amount(self._catalogue.cost(chosen.model, estimate), tokens)
        self._pool.begin(chosen, now)
        self._hold(self._number, Held(asked.turn, chosen, asked.who, amount))
        return Reserved(self._number, chosen)

    def _hold(self, number: int, held: Held) -> None:
        self._held[number] = held
        self._purse.hold(number, held.who, held.estimate)
        if held.turn not in self._turns:
            self._turns[held.turn] = set()
            self.watch(held.turn)
        self._turns[held.turn].add(number)

    def _release(self, number: int) -> None:
        """Give a reservation back; nothing happens the second time."""
        held = self._held.pop(number, None)
        if held is None:
            return
        self._purse.free(number)
        self._pool.end(held.backend)
        if held.turn in self._turns:
            self._turns[held.turn].discard(number)

    # --- a call ended ----------------------------------------------------------------

    def _ended(self, ended: CallEnded) -> None:
        self._release(ended.number)
        backend, outcome = ended.backend, ended.outcome
        metrics = self._services.metrics
        metrics.account_call(backend.account, backend.model, outcome)
        if ended.spent is not None:
            self._purse.enter(ended.run, ended.who, (ended.spent,))
            metrics.cost(backend.model, ended.spent.cost)
        if outcome == "ok":
            self._pool.succeeded(backend)
        elif outcome != "cancelled":
            self._failed(ended, outcome)
        self._show_cool_downs()

    def _failed(self, ended: CallEnded, outcome: ModelFault) -> None:
        backend = ended.backend
        now = self._services.clock.monotonic()
        was_out = backend.account in self._pool.out
        self._pool.failed(backend, outcome, ended.retry_after, now)
        if outcome != "auth":
            LOG.info(
                "model call failed",
                account=backend.account,
                model=backend.model,
                outcome=outcome,
                free_in=round(max(0.0, self._pool.free_at(backend) - now), 1),
            )
        elif not was_out:
            # An error, since nobody but whoever runs this can mend it.
            LOG.error(
                "account not let in; left out until the next start: check its key",
                account=backend.account,
                model=backend.model,
            )

    # --- what outlives it ------------------------------------------------------------

    async def _read_ledger(self) -> None:
        try:
            await self._purse.read()
        except (StoreError, msgspec.DecodeError) as error:
            LOG.warning("ledger not read; no model is asked", why=str(error))
            self._purse = Purse(self._services, self._purse.runs)
            self.after(READ_AGAIN, ReadLedger())
        for number, held in self._held.items():
            self._purse.free(number)
            self._purse.hold(number, held.who, held.estimate)

    def _take_over(self, kept: Kept) -> object:
        """Go on where the last incarnation failed."""
        self._pool = kept.pool
        self._number = max(self._number, kept.number)
        self._purse = Purse(self._services, kept.runs)
        for number, held in kept.held.items():
            self._hold(number, held)
        return None if self._purse.is_ready else self._read_ledger()

    def _show_cool_downs(self) -> None:
        now = self._services.clock.monotonic()
        metrics = self._services.metrics
        metrics.cool_downs(len(self._pool.cooling(now)), len(self._pool.out))
