"""The actor that chooses an account for each model call, within the budgets."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from typing import ClassVar

import msgspec
import trio

from actors import names
from actors.errors import ModelFault
from actors.models.budget import Amount, Budget, SoftLimitReached, Spender, refusal
from actors.models.catalogue import NO_PRICES, Catalogue
from actors.models.cool_downs import CoolDowns, commit_of
from actors.models.messages import (
    BudgetsLeft,
    CallEnded,
    CallLater,
    CancelReserve,
    ListedModel,
    ListModels,
    ModelList,
    OverBudget,
    OwnBudgets,
    ReadCalls,
    ReadCoolDowns,
    RefusedAccounts,
    ReplaceCatalogue,
    Reserve,
    Reserved,
    Ruling,
)
from actors.models.pool import NEVER, Backend, BackendQuery, NoBackend, Pool
from actors.models.spending import PaidCall, Spending
from actors.people.owners import TellOwners
from actors.ports import Model
from actors.rules.text.limits import RecentMap
from actors.services import Services
from runtime.actor.actor import Actor
from runtime.actor.committer import Committer
from runtime.actor.mailbox import MailboxConfig
from runtime.actor.messages import Terminated
from runtime.actor.ref import ActorRef
from runtime.errors import StoreError
from runtime.store.rows import Committed
from runtime.telemetry.logs import EventLog

LOG = EventLog("models")

# Chosen: seconds until the ledger is read again after the disk refused.
READ_AGAIN = 2.0

# Chosen: soft limits that are known to be told of; of more, the oldest are told again.
MOST_WARNED = 4096

# Chosen: seconds until a call is asked for again that would be over budget if all that
# is under way cost what it may; most calls are over by then.
HELD_WAIT = 2.0

SHUT_OUT = (
    "⚠️ The account `{account}` did not take its key when `{model}` was asked. Check the"
    " key in the settings. Until it works, other accounts and models are asked where"
    " there are any, and this one once in a while."
)
USED_UP = "account used up or unpaid: look at its plan, or add a fallback"
LET_IN = "✅ The account `{account}` takes its key again."

# Chosen: how often the cool-downs shown in the metrics are brought up to date, while
# there are any.
LOOK_EVERY = 10.0

# Chosen: nobody is told where to ask meanwhile; closing waits for no server.
CLOSE_WITHIN = 1.0


class Reservation(msgspec.Struct, frozen=True):
    """Tokens and dollars set aside for one call until it ends."""

    turn: ActorRef
    backend: Backend
    who: Spender
    estimate: Amount
    client: Model
    probed_at: float | None = None
    """As in `Pool.begin`: others wait for how it goes."""

    is_void: bool = False
    """Whether other settings hold now, for which it says nothing."""


class AccountsHandover(msgspec.Struct, frozen=True):
    """What a restarted actor takes over: catalogue, cool-downs, reservations."""

    catalogue: Catalogue
    leaving: tuple[Model, ...]
    pool: Pool
    cool_downs: CoolDowns
    held: dict[str, Reservation]
    unstored: dict[str, PaidCall]


class UpdateCoolDownMetrics(msgspec.Struct, frozen=True):
    """A note to itself: show in the metrics which backends still cool down."""


NOTHING_COOLS = (0, 0)
"""No backend cools down, and no account is out."""


class Accounts(Actor):
    """Chooses the account for each model call, or says why none may be made.

    Takes: `Reserve` (asked), `CancelReserve`, `CallEnded` from turns; `Terminated`
        about them; `ReplaceCatalogue` (asked) when settings have changed; `ReadCalls`,
        `ReadCoolDowns` when other nodes have news.
    Sends: `TellOwners` of a key that an account does not take; else only answers. It
        stores a row for each call; of several nodes, one for each cool-down.
    Keeps: the clients of all accounts, cool-downs, reservations, and what was spent,
        which it adds up from the rows of calls.
    Fails: never by these messages; rows that are not stored yet go to its next
        incarnation.
    Ends: with the system; closes the clients.
    """

    # Chosen: one message for each turn under way, and for each call that ended.
    mailbox: ClassVar[MailboxConfig] = MailboxConfig(capacity=100_000)

    def __init__(self, services: Services, catalogue: Catalogue) -> None:
        super().__init__()
        self._services = services
        self._catalogue = catalogue
        self._leaving: list[Model] = []
        """Clients of earlier settings, which calls under way still have."""

        self._pool = Pool(catalogue.offers, catalogue.preferences)
        self._cool_downs = CoolDowns(services.ids.new(), services.store)
        self._spending = Spending(services, catalogue, {})
        self._committer = Committer(services.store)
        self._held: dict[str, Reservation] = {}
        self._turns: dict[ActorRef, set[str]] = {}
        self._warned: RecentMap[str, None] = RecentMap(MOST_WARNED)
        self._shown_cool_downs: tuple[int, int] | None = None
        """How many backends cool down and accounts are out, as metrics show it."""

        self._is_to_look = False
        """Whether a `UpdateCoolDownMetrics` is on its way; none is while nothing
        cools."""

    def on_start(self) -> None:
        """Show that nothing cools down; the ledger is read for the first call."""
        self._show_cool_downs()
        if self._is_node:
            self.note(ReadCoolDowns())  # what others say counts from now on

    @property
    def _is_node(self) -> bool:
        """Whether other nodes ask the same accounts."""
        return self._services.duties.parts is not None

    def on_failure(self, *_: object, **__: object) -> None:
        """Hand on what does not stand in the ledger."""
        kept = AccountsHandover(
            self._catalogue,
            tuple(self._leaving),
            self._pool,
            self._cool_downs,
            self._held,
            self._spending.unstored,
        )
        self.requeue(kept)

    async def on_stop(self) -> None:
        """Close all clients: the turns have ended."""
        await close((*self._leaving, *self._catalogue.clients.values()))

    def on_receive(self, message: object) -> object:
        """Rule on a call, or learn how one ended."""
        match message:
            case Reserve():
                return self._reserve(message)
            case CallEnded():
                self._ended(message)
                return self._close_unused()
            case Terminated(ref=ref):
                return self._release_all(self._turns.pop(ref, set()))
            case CancelReserve(turn=turn):
                return self._release_all(self._turns.get(turn, set()))
            case _:
                return self._on_note(message)
        return None

    def _on_note(self, message: object) -> object:
        match message:
            case ListModels():
                offers = self._catalogue.offers.values()
                listed = (ListedModel(o.name, o.model, o.accounts) for o in offers)
                return ModelList(tuple(listed), tuple(sorted(self._pool.out)))
            case RefusedAccounts(if_all=if_all):
                out = self._pool.out
                is_asked = not if_all or out >= {*self._catalogue.clients}
                return tuple(sorted(out)) if is_asked else ()
            case BudgetsLeft() | OwnBudgets():
                return self._budgets(message)
            case ReadCalls() | ReadCoolDowns():
                return self._read_on(message)
            case ReplaceCatalogue():
                return self._replace(message)
            case AccountsHandover():
                self._take_over(message)
            case UpdateCoolDownMetrics():
                self._is_to_look = False
                self._show_cool_downs()
            case _:
                super().on_receive(message)
        return None

    async def _budgets(self, asked: BudgetsLeft | OwnBudgets) -> object:
        if not self._spending.is_ready:
            await self._spending.read()
        if not self._spending.is_ready:
            return ()
        if isinstance(asked, OwnBudgets):
            return self._spending.own(asked.user)
        return self._spending.left()

    # --- a call begins ---------------------------------------------------------------

    def _reserve(self, asked: Reserve) -> object:
        return self._rule(asked) if self._spending.is_ready else self._read(asked)

    async def _read(self, asked: Reserve) -> Ruling:
        await self._spending.read()
        return self._rule(asked) if self._spending.is_ready else CallLater(READ_AGAIN)

    def _rule(self, asked: Reserve) -> Ruling:
        if self._services.store.damaged:
            # Why here: a turn may have begun before the damage was found, and its
            # answer could not be stored.
            return CallLater(NEVER, why="the database is damaged: restore a copy")
        verdict = self._spending.verdict(asked.who)
        if verdict.stop is not None:
            return self._refuse(asked.who, verdict.stop, verdict.until)
        if verdict.is_held:
            self._services.metrics.budgets.add(1, "held")
            return CallLater(HELD_WAIT, is_held=True)
        if verdict.softened:
            self._warn(verdict.softened)
        return self._choose(asked, verdict.downgrade_to)

    def _refuse(self, who: Spender, budget: Budget, until: float) -> OverBudget:
        self._services.metrics.budgets.add(1, "stop")
        LOG.warning(
            "budget used up",
            scope=budget.scope,
            agent=who.agent,
            user=who.user,
        )
        return OverBudget(refusal(budget, until, self._catalogue.zone))

    def _warn(self, softened: tuple[SoftLimitReached, ...]) -> None:
        """Say once in each period that a soft limit is reached."""
        for each in softened:
            mark = f"{each.budget} {each.key} {each.period}"
            if mark not in self._warned:
                self._warned[mark] = None
                self._services.metrics.budgets.add(1, "soft")
                LOG.warning(
                    "soft budget reached", scope=each.budget.scope, who=each.key
                )

    def _choose(self, asked: Reserve, downgrade_to: str) -> Ruling:
        metrics = self._services.metrics
        now = self._services.clock.monotonic()
        offers = self._catalogue.offers
        model = asked.model if asked.model in offers else asked.otherwise
        if model not in offers:  # it was there when the turn began
            model = self._services.agent_models.get(asked.who.agent, model)
        if downgrade_to and downgrade_to != model:
            metrics.budgets.add(1, "downgrade")
            model = downgrade_to
        if model not in offers:
            return CallLater(NEVER)
        wanted = BackendQuery(
            model=model,
            needs_tools=asked.needs_tools,
            needs_images=asked.needs_images,
            tried=asked.tried,
        )
        chosen = self._pool.choose(wanted, now)
        if isinstance(chosen, NoBackend):
            metrics.fallbacks.add(1, wanted.model, "none")
            seconds = max(0.0, chosen.at - now)
            return CallLater(seconds, kind=chosen.kind, why=chosen.why)
        if chosen.model != wanted.model:
            metrics.fallbacks.add(1, wanted.model, chosen.model)
        estimate = asked.estimate
        tokens = estimate.input_tokens + estimate.output_tokens
        amount = Amount(self._catalogue.cost(chosen.model, estimate), tokens)
        probed_at = self._pool.begin(chosen, now)
        catalogue = self._catalogue
        client = catalogue.clients[chosen.account]
        call = self._services.ids.new()
        self._hold(
            call,
            Reservation(asked.turn, chosen, asked.who, amount, client, probed_at),
        )
        offer = catalogue.offers[chosen.model]
        prices = catalogue.prices.get(chosen.model, NO_PRICES)
        return Reserved(call, chosen, client, offer, prices)

    def _hold(self, call: str, held: Reservation) -> None:
        self._held[call] = held
        self._spending.budgets.hold(call, held.who, held.estimate)
        if held.turn not in self._turns:
            self._turns[held.turn] = set()
            self.watch(held.turn)
        self._turns[held.turn].add(call)

    def _release_all(self, calls: set[str]) -> object:
        for call in tuple(calls):
            self._release(call)
        return self._close_unused()

    def _release(self, call: str) -> None:
        """Give a reservation back; nothing happens the second time."""
        held = self._held.pop(call, None)
        if held is None:
            return
        self._spending.budgets.free(call)
        if not held.is_void:
            self._pool.end(held.backend, held.probed_at)
        calls = self._turns.get(held.turn)
        if calls is not None:
            calls.discard(call)
            if not calls:  # its end is no news any more
                del self._turns[held.turn]
                self.unwatch(held.turn)

    # --- a call ended ----------------------------------------------------------------

    def _ended(self, ended: CallEnded) -> None:
        held = self._held.get(ended.call)
        self._release(ended.call)
        backend, outcome = ended.backend, ended.outcome
        metrics = self._services.metrics
        metrics.account_calls.add(1, backend.account, backend.model, outcome)
        if ended.spent is not None:
            self._store(self._spending.enter(ended.call, ended.who, ended.spent))
            metrics.cost(backend.model, ended.spent.cost)
        is_void = held.is_void if held else not self._catalogue.has(backend)
        if is_void:
            LOG.info("call of earlier settings ended", outcome=outcome)
        elif outcome == "ok":
            if self._pool.succeeded(backend, self._services.clock.monotonic()):
                self._tell_owners(LET_IN.format(account=backend.account))
        elif outcome != "cancelled":
            self._failed(ended, outcome)
        if self._is_node and not is_void and outcome != "cancelled":
            self._tell_nodes(backend)
        if outcome != "ok" or self._shown_cool_downs != NOTHING_COOLS:
            self._show_cool_downs()

    def _store(self, paid: PaidCall) -> None:
        # The next incarnation takes over this very dict.
        unstored = self._spending.unstored

        def done(outcome: Committed | Exception) -> None:
            if isinstance(outcome, Exception):
                LOG.warning("what a call took is not in the ledger", why=str(outcome))
            else:
                unstored.pop(paid.id, None)

        self._committer.submit(self, paid.commit, done, "call")

    def _failed(self, ended: CallEnded, outcome: ModelFault) -> None:
        backend = ended.backend
        now = self._services.clock.monotonic()
        was_out = backend.account in self._pool.out
        self._pool.failed(backend, outcome, ended.retry_after, now, ended.why)
        if outcome != "auth":
            is_spent = outcome == "quota"  # mended by people alone, at the provider
            (LOG.warning if is_spent else LOG.info)(
                USED_UP if is_spent else "model call failed",
                account=backend.account,
                model=backend.model,
                outcome=outcome,
                free_in=round(max(0.0, self._pool.free_at(backend) - now), 1),
            )
        else:
            # An error the first time, since nobody but the operator can mend it.
            (LOG.info if was_out else LOG.error)(
                "account not let in: check its key",
                account=backend.account,
                model=backend.model,
                asked_again_in=round(self._pool.free_at(backend) - now, 1),
            )
            if not was_out:
                account, model = backend.account, backend.model
                self._tell_owners(SHUT_OUT.format(account=account, model=model))

    def _tell_owners(self, text: str) -> None:
        if self.find(names.OWNERS) is not None:
            self.tell(names.OWNERS, TellOwners(text))

    # --- other nodes -----------------------------------------------------------------

    def _tell_nodes(self, backend: Backend) -> None:
        """Tell the other nodes of cool-downs that a call has begun or ended."""
        clock = self._services.clock
        for whose in (backend, backend.account):
            circuit = self._pool.circuit_of(whose)
            told = self._cool_downs.changed(whose, circuit, clock.monotonic())
            if told is not None:
                commit = partial(commit_of, told, clock, clock.monotonic())
                self._committer.submit(self, commit, note_untold, "cool-down")

    async def _read_on(self, message: ReadCalls | ReadCoolDowns) -> None:
        """Go by what other nodes have spent, and were told by providers."""
        if isinstance(message, ReadCalls):
            return await self._spending.read_on()
        now = self._services.clock.monotonic()
        try:
            news = await self._cool_downs.read(now)
        except StoreError as error:
            LOG.warning("cool-downs of other nodes not read yet", why=str(error))
            return None
        for each in news:
            self._pool.learn(each.whose, each.failure, now)
        self._show_cool_downs()
        return None

    # --- the settings change ---------------------------------------------------------

    async def _replace(self, message: ReplaceCatalogue) -> None:
        """Go on with other models, accounts and budgets."""
        old, new = self._catalogue, message.catalogue
        self._catalogue = new
        self._leaving += old.clients.values()
        self._pool.reoffer(new.offers, new.preferences, message.renewed)
        for call, held in self._held.items():
            is_other = held.backend.account in message.renewed
            if is_other or not new.has(held.backend):
                self._held[call] = msgspec.structs.replace(held, is_void=True)
        if (old.budgets, old.zone) != (new.budgets, new.zone):
            self._spending = Spending(self._services, new, self._spending.unstored)
            for call, held in self._held.items():
                self._spending.budgets.hold(call, held.who, held.estimate)
        self._show_cool_downs()
        await close(self._unused())

    def _close_unused(self) -> object:
        return close(self._unused()) if self._leaving else None

    def _unused(self) -> list[Model]:
        """Take out the clients of earlier settings whose last call has ended."""
        used = {id(held.client) for held in self._held.values()}
        unused = [each for each in self._leaving if id(each) not in used]
        self._leaving = [each for each in self._leaving if id(each) in used]
        return unused

    # --- what outlives it ------------------------------------------------------------

    def _take_over(self, kept: AccountsHandover) -> None:
        """Go on where the last incarnation failed."""
        self._catalogue = kept.catalogue
        self._leaving = list(kept.leaving)
        self._pool, self._cool_downs = kept.pool, kept.cool_downs
        self._spending = Spending(self._services, kept.catalogue, kept.unstored)
        for paid in kept.unstored.values():
            self._store(paid)
        for call, held in kept.held.items():
            self._hold(call, held)
        self._show_cool_downs()

    def _show_cool_downs(self) -> None:
        now = self._services.clock.monotonic()
        cooling = len(self._pool.cooling(now))
        shown = cooling, len(self._pool.out)
        if shown != self._shown_cool_downs:
            self._services.metrics.cool_downs(*shown)
            self._shown_cool_downs = shown
        if cooling and not self._is_to_look:
            self._is_to_look = True
            self.after(LOOK_EVERY, UpdateCoolDownMetrics())


def note_untold(outcome: Committed | Exception) -> None:
    """Say in the log that other nodes were not told of a cool-down."""
    if isinstance(outcome, Exception):
        LOG.warning("other nodes not told of a cool-down", why=str(outcome))


async def close(clients: Iterable[Model]) -> None:
    """Close clients, all within a moment."""
    with trio.move_on_after(CLOSE_WITHIN) as scope:
        async with trio.open_nursery() as nursery:
            for client in clients:
                nursery.start_soon(client.aclose)
    if scope.cancelled_caught:
        LOG.warning("connections to a provider not closed in time", within=CLOSE_WITHIN)
