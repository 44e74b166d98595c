"""Sums up the tokens and cost of turns, and the remains of budgets."""

from __future__ import annotations

import math
from threading import Lock
from typing import TYPE_CHECKING

import msgspec

from actors.journal import records
from actors.journal.records import UsageRecord
from actors.messages.inbound import Usage
from actors.messages.usage import Spent
from actors.models.budget import Amount, Budget, Budgets, Limit
from actors.models.spending import CALL, CallRecord
from connectors.admin.display import read_record, when
from connectors.config.checks import find_zone
from runtime.errors import SettingsError
from runtime.store.database import FIRST

if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import tzinfo

    from actors.config.limits import BudgetConfig
    from connectors.admin.display import Complain
    from connectors.config.app import AppConfig
    from runtime.clock import Clock
    from runtime.store.database import Inspection
    from runtime.store.rows import StoredRecord

    Name = Callable[[StoredRecord, UsageRecord], str]


NAMES: dict[str, Name] = {
    "agent": lambda _, body: body.agent,
    "sender": lambda _, body: f"{body.connector}/{body.sender_id}",
    "day": lambda row, _: when(row.at)[:10],
}
PARTS: dict[str, Callable[[Spent], str]] = {
    "model": lambda each: f"{each.provider}/{each.model}",
    "account": lambda each: each.account,
}
"""Of these, one turn may have used several."""

TOTAL = "all"


class UsageSum(msgspec.Struct):
    """Tokens, cost and time of some turns together."""

    name: str
    runs: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    cost: float = 0.0
    """US dollars."""

    seconds: float = 0.0
    reckoned_tokens: int = 0
    """Of the tokens, those of calls that were cut off, or of which nobody told."""

    def add(self, body: UsageRecord) -> None:
        """Count one turn more."""
        self.runs += 1
        self.input_tokens += body.input_tokens
        self.output_tokens += body.output_tokens
        self.cost += body.cost
        self.seconds += body.seconds
        self.reckoned_tokens += sum(map(reckoned, body.spent))

    def merge(self, other: UsageSum) -> None:
        """Add another sum of the same name."""
        self.runs += other.runs
        self.input_tokens += other.input_tokens
        self.output_tokens += other.output_tokens
        self.cost += other.cost
        self.seconds += other.seconds
        self.reckoned_tokens += other.reckoned_tokens

    def add_part(self, body: UsageRecord, part: Spent) -> None:
        """Count a turn's calls to one model on one account, and all its time."""
        self.runs += 1
        self.input_tokens += part.usage.input_tokens
        self.output_tokens += part.usage.output_tokens
        self.cost += part.cost
        self.seconds += body.seconds
        self.reckoned_tokens += reckoned(part)


def reckoned(spent: Spent) -> int:
    """Give the tokens that are an estimate."""
    usage = spent.usage
    return usage.input_tokens + usage.output_tokens if spent.is_reckoned else 0


INF = math.inf


def sum_up(
    rows: Inspection, by: str, since: float, complain: Complain, until: float = INF
) -> list[UsageSum]:
    """Sum up by name, in the order of the names; the last one is all together.

    Args:
        rows: the database.
        by: a key of `NAMES` or `PARTS`.
        since: Unix seconds; what was stored before is left out.
        complain: told of rows that cannot be read.
        until: Unix seconds; what was stored then or later is left out.
    """
    total = UsageSum(TOTAL)
    sums: dict[str, UsageSum] = {}
    for row in rows.records(
        records.USAGE, since, FIRST if until == INF else (until, 0)
    ):
        body = read_record(row, UsageRecord, complain)
        if body is None:
            continue
        total.add(body)
        if by in NAMES:
            name = NAMES[by](row, body)
            sums.setdefault(name, UsageSum(name)).add(body)
        else:
            for part in parts_of(body):
                name = PARTS[by](part)
                sums.setdefault(name, UsageSum(name)).add_part(body, part)
    return [*(sums[key] for key in sorted(sums)), total]


HOUR = 3_600.0

READS_FOR = 2.0
"""Seconds for which one look adds up; the next goes on."""

MOST_KEPT = 5_000
"""Hours that are kept, over all ways to add up."""


class SumsByNow(msgspec.Struct, frozen=True):
    """Sums as far as they are added up."""

    sums: list[UsageSum]
    """In the order of the names; the last one is all together."""

    unread: int
    """Hours, the oldest ones, that are not in them yet."""


class UsageBook:
    """Sums by the hour, kept from one look to the next; any thread may ask.

    An hour that is over is read once, so that a month of a million answers takes a few
    looks the first time, and little after. Nothing is kept for longer than an hour:
    what is erased must not be shown.
    """

    def __init__(self) -> None:
        self._lock = Lock()
        self._hours: dict[tuple[str, int], list[UsageSum]] = {}
        self._since = 0.0

    def sum_up(
        self,
        rows: Inspection,
        by: str,
        span: tuple[float, float],
        clock: Clock,
        complain: Complain,
    ) -> SumsByNow:
        """Sum up by name.

        Args:
            rows: the database.
            by: a key of `NAMES` or `PARTS`.
            span: Unix seconds of its beginning, which is taken to the whole hour, and
                of now.
            clock: says how long it takes.
            complain: told of rows that cannot be read.
        """
        first, last = int(span[0] // HOUR), int(span[1] // HOUR)
        began, sums, total = clock.monotonic(), dict[str, UsageSum](), UsageSum(TOTAL)
        unread = 0
        with self._lock:
            if began - self._since > HOUR:
                self._hours, self._since = {}, began
            for hour in range(last, first - 1, -1):
                found = self._hours.get((by, hour))
                if found is None and clock.monotonic() - began > READS_FOR:
                    unread += 1
                    continue
                if found is None:
                    times = (hour * HOUR, (hour + 1) * HOUR if hour < last else INF)
                    found = sum_up(rows, by, times[0], complain, until=times[1])
                    if hour < last - 1:  # what is stored late has come by then
                        self._keep((by, hour), found)
                *each_name, whole = found
                total.merge(whole)
                for each in each_name:
                    sums.setdefault(each.name, UsageSum(each.name)).merge(each)
        return SumsByNow([*(sums[key] for key in sorted(sums)), total], unread)

    def _keep(self, key: tuple[str, int], found: list[UsageSum]) -> None:
        while len(self._hours) >= MOST_KEPT:
            del self._hours[next(iter(self._hours))]
        self._hours[key] = found


def parts_of(body: UsageRecord) -> tuple[Spent, ...]:
    """Give what a turn spent by model and account; older rows have one part."""
    usage = Usage(body.input_tokens, body.output_tokens, body.cached_tokens)
    whole = Spent(
        provider=body.provider,
        model=body.model,
        account=body.provider,
        usage=usage,
        cost=body.cost,
    )
    return body.spent or (whole,)


def as_budget(config: BudgetConfig) -> Budget:
    """Turn a budget of the settings into the domain's."""
    return Budget(
        scope=config.scope,
        period=config.period,
        who=config.who,
        soft=Limit(config.soft_usd, config.soft_tokens),
        hard=Limit(config.hard_usd, config.hard_tokens),
        downgrade_to=config.downgrade_to,
    )


def zone_of(config: AppConfig) -> tzinfo:
    """Give the time zone in which a budget's day begins.

    Raises:
        runtime.errors.SettingsError: this machine does not know the time zone.
    """
    zone = find_zone(config.ledger.time_zone)
    if zone is None:
        raise SettingsError(f"there is no time zone {config.ledger.time_zone!r}")
    return zone


class BudgetStatus(msgspec.Struct, frozen=True, kw_only=True):
    """What is spent and left of a budget; without a limit, left is null."""

    scope: str
    who: str
    period: str
    spent_usd: float
    left_usd: float | None
    spent_tokens: int
    left_tokens: int | None


def budget_statuses(
    rows: Inspection, config: AppConfig, now: float, complain: Complain
) -> list[BudgetStatus]:
    """Add up the calls for each budget of the settings.

    Args:
        rows: the database.
        config: the settings.
        now: Unix seconds.
        complain: told of rows that cannot be read.
    """
    kept = tuple(map(as_budget, config.budgets))
    budgets = Budgets(kept, zone_of(config))
    for row in rows.records(CALL, budgets.since(now)):
        body = read_record(row, CallRecord, complain)
        if body is not None:
            budgets.enter(body.who, body.amount, row.at)
    found = [budget_status(*each) for each in budgets.spent(now)]
    seen = {(each.scope, each.period) for each in found}
    # A budget of which nothing is spent yet has no sum; it is shown all the same.
    return found + [
        budget_status(each, each.who, Amount())
        for each in kept
        if (each.scope, each.period) not in seen
    ]


def budget_status(budget: Budget, who: str, spent: Amount) -> BudgetStatus:
    """Describe one sum."""
    hard = budget.hard
    return BudgetStatus(
        scope=budget.scope,
        who=who,
        period=budget.period,
        spent_usd=round(spent.usd, 6),
        left_usd=None if hard.usd is None else round(max(hard.usd - spent.usd, 0.0), 6),
        spent_tokens=spent.tokens,
        left_tokens=None if hard.tokens is None else max(hard.tokens - spent.tokens, 0),
    )
