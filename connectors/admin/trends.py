"""What the last day looked like, minute by minute; pure.

`Trends` is fed with samples of the metrics, which only grow, and with records of the
store for the time before the process began. It holds one `Minute` for each of the last
1,440, so it never grows beyond a day.
"""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass, field
from itertools import pairwise
from typing import TYPE_CHECKING

import msgspec

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from runtime.telemetry.metrics import Figure

MINUTE = 60.0
DAY = 86_400.0

BOUNDS = (0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0)
"""Upper bounds, in seconds, by which times to answer are counted; the histogram
`callboard_stage_seconds` has all of these."""

GOOD_ENDS = frozenset({"ok", "cancelled", "stopped", "interrupted"})
"""How turns end that have not failed."""

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


@dataclass
class Minute:
    """One minute."""

    messages: float = 0.0
    errors: float = 0.0
    tokens: float = 0.0
    dollars: float = 0.0
    times: list[float] = field(default_factory=lambda: [0.0] * (len(BOUNDS) + 1))
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

    def take(self, sample: Sample) -> None:
        """Take a sample; what has shrunk began anew and counts from nothing."""
        last, self._last = self._last, sample
        minute = self.minute(sample.at)
        minute.queue_age = max(minute.queue_age, sample.queue_age)
        minute.lag = max(minute.lag, sample.lag)
        if last is None:  # what came before is in the records of the store
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
            points: how many pieces.
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
