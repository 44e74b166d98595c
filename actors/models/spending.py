"""The sums of all budgets, read from the ledger and kept up to date.

Each run's calls are counted when they end, its ledger row is written moments later.
So whoever adds up the ledger anew must know which runs it tells of already.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import TYPE_CHECKING, TypeVar

import msgspec

from actors.journal.records import USAGE, UsageRecord
from actors.models.budget import Amount, BudgetCheck, Budgets, Spender

if TYPE_CHECKING:
    from actors.messages.usage import Spent
    from actors.models.catalogue import Catalogue
    from actors.services import Services

T = TypeVar("T")

PAGE = 1000

# Chosen: runs whose calls are remembered, to tell which of them the ledger does not
# know yet. A run is in the ledger moments after its end.
REMEMBERED = 4096


class RunSpent(msgspec.Struct, frozen=True):
    """What one run has spent so far."""

    who: Spender
    amount: Amount
    at: float
    """When it was last told of, in Unix seconds: perhaps in an earlier period."""


class Spending:
    """The sums of all budgets.

    Args:
        services: the store, the clock.
        catalogue: has the settings' budgets.
        runs: what an earlier incarnation was told of; may be in the ledger, or not.
    """

    def __init__(
        self,
        services: Services,
        catalogue: Catalogue,
        runs: OrderedDict[str, RunSpent] | None = None,
    ) -> None:
        self._services = services
        self._budgets = Budgets(catalogue.budgets, catalogue.zone)
        self._in_ledger: OrderedDict[str, None] = OrderedDict()
        self.runs: OrderedDict[str, RunSpent] = OrderedDict() if runs is None else runs
        self.is_ready = not catalogue.budgets
        """Whether the ledger was added up."""

    async def read(self) -> None:
        """Add up the ledger, then what it does not know yet.

        Raises:
            runtime.errors.StoreError: it cannot be read now.
            msgspec.DecodeError: a row of it cannot be read.
        """
        store = self._services.store
        now = self._services.clock.wall()
        after: tuple[float, int] = (self._budgets.since(now), 0)
        while not self.is_ready:
            rows = await store.records_since(USAGE, *after, PAGE)
            for row in rows:
                body = msgspec.json.decode(row.body, type=UsageRecord)
                self._budgets.enter(who_of(body), amount_of(body), row.at)
                remember(self._in_ledger, row.id, None)
                after = (row.at, row.number)
            self.is_ready = len(rows) < PAGE
        for name, run in self.runs.items():
            if name not in self._in_ledger:
                self._budgets.enter(run.who, run.amount, run.at)

    def verdict(self, who: Spender) -> BudgetCheck:
        """Say whether a call may begin."""
        return self._budgets.verdict(who, self._services.clock.wall())

    def hold(self, number: int, who: Spender, amount: Amount) -> None:
        """Hold back what a call may cost."""
        self._budgets.hold(number, who, amount)

    def free(self, number: int) -> None:
        """Hold nothing back any more for a call."""
        self._budgets.free(number)

    def enter(self, run: str, who: Spender, spent: tuple[Spent, ...]) -> None:
        """Count what a run has spent; one that the ledger tells of is counted."""
        if run in self._in_ledger:
            return
        amount = Amount()
        for each in spent:
            tokens = each.usage.input_tokens + each.usage.output_tokens
            amount += Amount(each.cost, tokens)
        # Without budgets, too: the next settings may have some.
        now = self._services.clock.wall()
        known = self.runs.pop(run, RunSpent(who, Amount(), now))
        remember(self.runs, run, RunSpent(who, known.amount + amount, now))
        if self.is_ready:
            self._budgets.enter(who, amount, now)

    def recall(
        self, was_run: str, run: str, who: Spender, spent: tuple[Spent, ...]
    ) -> None:
        """Count what an earlier attempt had spent, if that was in another process.

        One of this process was counted as it went; from now on it is part of `run`.
        """
        known = self.runs.get(was_run)
        if known is None:
            self.enter(run, who, spent)
            return
        own = self.runs.get(run, RunSpent(who, Amount(), known.at))
        both = own.amount + known.amount
        remember(self.runs, run, RunSpent(who, both, own.at))
        remember(self.runs, was_run, RunSpent(who, Amount(), known.at))


def who_of(body: UsageRecord) -> Spender:
    """Say on whose account a ledger row stands."""
    return Spender(body.agent, f"{body.connector}/{body.sender_id}")


def amount_of(body: UsageRecord) -> Amount:
    """Say how much a ledger row is about."""
    return Amount(body.cost, body.input_tokens + body.output_tokens)


def remember(kept: OrderedDict[str, T], name: str, value: T) -> None:
    """Keep one thing more, and the newest ones only."""
    kept[name] = value
    if len(kept) > REMEMBERED:
        kept.popitem(last=False)
