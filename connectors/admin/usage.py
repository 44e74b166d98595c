"""Sums up the tokens and cost of turns, the remains of budgets, and the last day.

`Trends` shows the last day minute by minute. It is fed with samples of the metrics,
which only grow, and with records of the store for the time before the process began. It
holds one `Minute` for each of the last 1,440, so it never grows beyond a day.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Callable, Iterable, Sequence
from itertools import pairwise
from threading import Lock
from typing import TYPE_CHECKING

import msgspec

from actors.journal.records import USAGE, UsageRecord
from actors.messages.inbound import Usage
from actors.messages.usage import Spent
from actors.models.budget import Amount, Budget, Budgets, Limit
from actors.models.spending import CALL, CallRecord
from connectors.admin.display import Complain, read_record, when
from connectors.config.checks import find_zone
from runtime.errors import SettingsError
from runtime.store.database import FIRST, Inspection

if TYPE_CHECKING:
    from datetime import tzinfo

    from actors.config.limits import BudgetConfig
    from connectors.config.app import AppConfig
    from runtime.clock import Clock
    from runtime.store.rows import StoredRecord
    from runtime.telemetry.metrics import Figure


Name = Callable[["StoredRecord", UsageRecord], str]

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
        by: a key of `NAMES` or `PARTS`.
        since: Unix seconds; what was stored before is left out.
        until: Unix seconds; what was stored then or later is left out.
    """
    total = UsageSum(TOTAL)
    sums: dict[str, UsageSum] = {}
    for row in rows.records(USAGE, since, FIRST if until == INF else (until, 0)):
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
            by: a key of `NAMES` or `PARTS`.
            span: Unix seconds of its beginning, which is taken to the whole hour, and
                of now.
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
        now: Unix seconds.
    """
    kept = tuple(map(as_budget, config.budgets))
    budgets = Budgets(kept, zone_of(config))
    for row in rows.records(CALL, budgets.since(now)):
        body = read_record(row, CallRecord, complain)
        if body is not None:
            budgets.enter(body.who, body.amount, row.at)
    spent = list(budgets.spent(now))
    seen = [budget for budget, _, _ in spent]
    # A budget of which nothing is spent yet has no sum; it is shown all the same.
    spent += [
        (each, "all" if each.scope == "all" else each.who, Amount())
        for each in kept
        if each not in seen
    ]
    return [budget_status(*each) for each in spent]


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


MINUTE = 60.0
DAY = 86_400.0

BOUNDS = (0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0)
"""Upper bounds, in seconds, by which times to answer are counted; the histogram
`callboard_stage_seconds` has all of these."""

GOOD_ENDS = frozenset({"ok", "cancelled", "stopped", "interrupted"})
"""How turns end that have not failed."""

BESIDE_ANSWERS = frozenset({"compaction", "flush", "reset", "check"})
"""What models are called for that makes no answer."""

# Chosen: two lines of a page are told apart by no more.
MOST_POINTS = 96


class Sample(msgspec.Struct, frozen=True, kw_only=True):
    """The metrics at one moment; all but the last two only grow."""

    at: float
    """Unix seconds."""

    messages: float = 0.0
    errors: float = 0.0
    """Turns that failed."""

    tokens: float = 0.0
    dollars: float = 0.0
    times: tuple[float, ...] = (0.0,) * (len(BOUNDS) + 1)
    """Turns by their seconds: up to each of `BOUNDS`, and above."""

    queue_age: float = 0.0
    """Seconds for which the oldest message waits; 0: none."""

    lag: float = 0.0
    """Seconds the kernel's loop took for its last sign of life."""


class Minute(msgspec.Struct):
    """One minute."""

    messages: float = 0.0
    errors: float = 0.0
    tokens: float = 0.0
    dollars: float = 0.0
    times: list[float] = msgspec.field(
        default_factory=lambda: [0.0] * (len(BOUNDS) + 1)
    )
    queue_age: float = 0.0
    """The highest of the minute; so also `lag`."""

    lag: float = 0.0

    def add(self, other: Minute) -> None:
        """Add another minute's."""
        self.messages += other.messages
        self.errors += other.errors
        self.tokens += other.tokens
        self.dollars += other.dollars
        self.times = [x + y for x, y in zip(self.times, other.times, strict=True)]
        self.queue_age = max(self.queue_age, other.queue_age)
        self.lag = max(self.lag, other.lag)


class Trends:
    """The last day."""

    def __init__(self) -> None:
        self._minutes: dict[int, Minute] = {}
        self._last: Sample | None = None
        self.uncounted = FIRST
        """Before which record of the store no sample counts: (Unix seconds, number)."""

        self.badges: dict[str, int] = {}
        """How many things wait for a person, by view. Replaced as a whole, so that any
        thread may read it."""

        self.is_seeded = False
        """Whether the records of the store are in it."""

    def minute(self, at: float) -> Minute:
        """Give the minute of a time (Unix seconds), and drop those of the day before.

        One that is older than a day is not kept.
        """
        number = int(at // MINUTE)
        newest = max(self._minutes, default=number)
        if number <= newest - DAY // MINUTE:
            return Minute()
        found = self._minutes.get(number)
        if found is None:
            found = self._minutes[number] = Minute()
            if number > newest:
                oldest = number - int(DAY // MINUTE)
                for each in [x for x in self._minutes if x <= oldest]:
                    del self._minutes[each]
        return found

    def take_waits(self, other: Trends) -> None:
        """Take from another one what no record says: waits in the queue, and lags."""
        for at, wait, lag in other.waits():
            minute = self.minute(at)
            minute.queue_age, minute.lag = wait, lag

    def waits(self) -> list[tuple[float, float, float]]:
        """Give each minute (Unix seconds), its longest wait, and its longest lag."""
        known = list(self._minutes.items())
        return [(n * MINUTE, each.queue_age, each.lag) for n, each in known]

    def take(self, sample: Sample) -> None:
        """Take a sample; what has shrunk began anew and counts from nothing."""
        last, self._last = self._last, sample
        minute = self.minute(sample.at)
        minute.queue_age = max(minute.queue_age, sample.queue_age)
        minute.lag = max(minute.lag, sample.lag)
        if last is None:
            self.uncounted = (sample.at, 0)
            return
        minute.messages += grown(last.messages, sample.messages)
        minute.errors += grown(last.errors, sample.errors)
        minute.tokens += grown(last.tokens, sample.tokens)
        minute.dollars += grown(last.dollars, sample.dollars)
        pairs = zip(minute.times, last.times, sample.times, strict=True)
        minute.times = [count + grown(old, new) for count, old, new in pairs]

    def series(
        self, now: float, span: float, points: int = MOST_POINTS
    ) -> list[Minute]:
        """Give the time up to now in equal pieces, the oldest first.

        Args:
            now: Unix seconds.
            span: seconds; at most a day.
        """
        size, end = span / points, now
        found = [Minute() for _ in range(points)]
        for number, minute in list(self._minutes.items()):
            index = int((number * MINUTE - (end - span)) // size)
            if 0 <= index < points:
                found[index].add(minute)
        return found


def grown(before: float, now: float) -> float:
    """By how much a counter grew."""
    return now - before if now >= before else now


def place_of(seconds: float) -> int:
    """Give the place in `Minute.times` of a time to answer."""
    return bisect_left(BOUNDS, seconds)


def quantile(times: Sequence[float], part: float) -> float | None:
    """Estimate within how many seconds a part of the turns ended; None: there is none.

    Between two bounds the times are taken to be spread evenly, as Prometheus does.
    """
    total = sum(times)
    if total <= 0:
        return None
    rank, below = part * total, 0.0
    for index, count in enumerate(times):
        if count and below + count >= rank:
            low = BOUNDS[index - 1] if index else 0.0
            high = BOUNDS[index] if index < len(BOUNDS) else low
            return low + (high - low) * (rank - below) / count
        below += count
    return BOUNDS[-1]


def sample_of(figures: Iterable[Figure], at: float, queue_age: float) -> Sample:
    """Take a sample of the metrics.

    Args:
        figures: of `runtime.telemetry.metrics.Metrics`.
        at: Unix seconds.
        queue_age: seconds for which the oldest message waits.
    """
    sums: dict[str, float] = {}
    buckets: dict[float, float] = {}
    for each in figures:
        if key := key_of(each):
            sums[key] = sums.get(key, 0.0) + each.value
        elif each.name == f"{TIMES}_bucket" and each.labels.get("stage") == "turn":
            buckets[float(each.labels["le"])] = each.value
    counts = [buckets.get(bound, 0.0) for bound in (*BOUNDS, float("inf"))]
    # Each bucket of Prometheus' format counts those below it, too.
    times = (counts[0], *(max(0.0, after - one) for one, after in pairwise(counts)))
    return Sample(at=at, queue_age=queue_age, times=times, **sums)


TIMES = "callboard_stage_seconds"
"""The histogram; its buckets are figures of their own."""


def key_of(figure: Figure) -> str:
    """Say which field of a `Sample` a figure is added to; empty: none."""
    outcome = figure.labels.get("outcome")
    match figure.name:
        case "callboard_messages_total":
            return "messages" if outcome == "accepted" else ""
        case "callboard_turns_total":
            return "" if outcome in GOOD_ENDS else "errors"
        case "callboard_model_tokens_total":
            return "tokens"
        case "callboard_cost_dollars_total":
            return "dollars"
        case "callboard_loop_lag_seconds":
            return "lag"
        case _:
            return ""


class ChartLines(msgspec.Struct, frozen=True, kw_only=True):
    """Lines for a chart of 300 by 72 units, as paths of SVG."""

    lines: tuple[str, ...]
    area: str
    """Below the first line; empty: there is nothing to see."""

    top: float
    """The highest value."""


WIDTH, HEIGHT = 300.0, 72.0


def chart_lines(*rows: Sequence[float | None]) -> ChartLines:
    """Draw values as lines, the highest of all at the top; None: no value there."""
    top = max((x for row in rows for x in row if x is not None), default=0.0)
    paths: list[str] = []
    for row in rows:
        step, pen, path = WIDTH / max(1, len(row) - 1), "M", ""
        for index, value in enumerate(row):
            if value is None:
                continue
            height = value / top * (HEIGHT - 4) if top > 0 else 0.0
            path += f"{pen}{index * step:.1f} {HEIGHT - 1 - height:.1f}"
            pen = "L"
        paths.append(path)
    first = rows[0]
    known = [index for index, value in enumerate(first) if value is not None]
    area = ""
    if top > 0 and len(known) > 1:
        step = WIDTH / max(1, len(first) - 1)
        ends = known[0] * step, known[-1] * step
        area = f"{paths[0]}L{ends[1]:.1f} {HEIGHT}L{ends[0]:.1f} {HEIGHT}Z"
    return ChartLines(lines=tuple(paths), area=area, top=top)
