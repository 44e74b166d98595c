"""What was spent of each budget of the settings, and what is left."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from actors.purse import amount_of, who_of
from actors.records import USAGE, UsageRecord
from actors.rules.budget import Amount, Budget, Budgets
from connectors.office.budget_settings import as_budget, zone_of
from connectors.office.record import read_record

if TYPE_CHECKING:
    from connectors.config import AppConfig
    from connectors.office.record import Complain
    from runtime.sqlite_survey import Survey


class Standing(msgspec.Struct, frozen=True, kw_only=True):
    """How one sum of a budget stands; what has no limit has nothing left (null)."""

    scope: str
    who: str
    period: str
    spent_usd: float
    left_usd: float | None
    spent_tokens: int
    left_tokens: int | None


def standings(
    rows: Survey, config: AppConfig, now: float, complain: Complain
) -> list[Standing]:
    """Add up the ledger for each budget of the settings.

    Args:
        rows: the database.
        config: the settings.
        now: Unix seconds.
        complain: told of rows that cannot be read.
    """
    kept = tuple(map(as_budget, config.budgets))
    budgets = Budgets(kept, zone_of(config))
    for row in rows.recent(USAGE, budgets.since(now)):
        body = read_record(row, UsageRecord, complain)
        if body is not None:
            budgets.enter(who_of(body), amount_of(body), row.at)
    found = [standing(*each) for each in budgets.spent(now)]
    seen = {(each.scope, each.period) for each in found}
    # A budget of which nothing is spent yet has no sum; it is shown all the same.
    return found + [
        standing(each, each.who, Amount())
        for each in kept
        if (each.scope, each.period) not in seen
    ]


def standing(budget: Budget, who: str, spent: Amount) -> Standing:
    """Say how one sum stands."""
    hard = budget.hard
    return Standing(
        scope=budget.scope,
        who=who,
        period=budget.period,
        spent_usd=round(spent.usd, 6),
        left_usd=None if hard.usd is None else round(max(hard.usd - spent.usd, 0.0), 6),
        spent_tokens=spent.tokens,
        left_tokens=None if hard.tokens is None else max(hard.tokens - spent.tokens, 0),
    )
