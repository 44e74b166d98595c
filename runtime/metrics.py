"""What Prometheus scrapes: one registry, counters with bounded labels, the kernel.

Owns a registry of its own, never the library's global one. Knows the kernel only
by what it tells of itself, see `Watched`. Every method may be called from any
thread.
"""

from __future__ import annotations

from collections import Counter as Count
from threading import Lock
from typing import TYPE_CHECKING, Protocol

import prometheus_client
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.exposition import CONTENT_TYPE_LATEST, generate_latest
from prometheus_client.registry import Collector, CollectorRegistry

from runtime.errors import MisuseError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from prometheus_client.core import Metric

# Chosen: far more agents, tools or outcomes than one settings file names, and few
# enough that a mistake (an id in a label) costs a scraper nothing.
MOST_SERIES = 200

OTHER = "other"
"""The label of everything above the bound."""

BUCKETS = (0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1.0, 5.0, 10.0, 60.0)
"""Upper bounds of a histogram's buckets, in its unit, unless it says otherwise."""


class ActorFigures(Protocol):
    """What is shown of one living actor."""

    @property
    def kind(self) -> str:
        """The actor's class."""
        ...

    @property
    def depth(self) -> int:
        """User messages waiting."""
        ...

    @property
    def handled(self) -> int:
        """Messages handled so far."""
        ...


class SystemFigures(Protocol):
    """What is shown of a whole system."""

    @property
    def run_queue(self) -> int:
        """Actors waiting for their turn."""
        ...

    @property
    def foreign_waiting(self) -> int:
        """Messages from other threads that have not arrived yet."""
        ...

    @property
    def timers(self) -> int:
        """Timers that have still to fire."""
        ...

    @property
    def handled_by(self) -> Mapping[str, int]:
        """Messages handled by actors that have ended, by kind."""
        ...

    @property
    def dead_letters(self) -> Mapping[str, int]:
        """Reason → count."""
        ...

    @property
    def restarts(self) -> Mapping[tuple[str, str], int]:
        """(kind, reason) → count."""
        ...

    @property
    def watchdog(self) -> Mapping[tuple[str, str], int]:
        """(kind, action) → count."""
        ...

    @property
    def loop_lag(self) -> float:
        """Seconds."""
        ...


class Watched(Protocol):
    """An actor system that tells of itself; `runtime.system` has it."""

    def actors(self) -> Sequence[ActorFigures]:
        """Tell of every living actor."""
        ...

    def statistics(self) -> SystemFigures:
        """Tell of the system as a whole."""
        ...


class Guard:
    """Keeps the series of one metric below a bound.

    Args:
        name: of the metric.
        labels: how many labels it has.
        most: how many label sets are kept apart.
        dropped: counts what went to `other`, by metric.
    """

    def __init__(
        self, name: str, labels: int, most: int, dropped: prometheus_client.Counter
    ) -> None:
        self._labels = labels
        self._most = most
        self._known: set[tuple[str, ...]] = set()
        self._lock = Lock()
        self._other = (OTHER,) * labels
        self._dropped = dropped.labels(name)

    def bound(self, labels: tuple[str, ...]) -> tuple[str, ...]:
        """Give these label values, or `other` for each if they are one too many.

        Raises:
            MisuseError: the metric has more labels than that, or fewer.
        """
        if labels in self._known:
            return labels
        if len(labels) != self._labels:
            raise MisuseError(f"{len(labels)} labels given, {self._labels} declared")
        with self._lock:
            if len(self._known) < self._most:
                self._known.add(labels)
                return labels
        self._dropped.inc()
        return self._other


class Counter:
    """A number that only grows, for each set of labels."""

    def __init__(self, metric: prometheus_client.Counter, guard: Guard) -> None:
        self._metric = metric
        self._guard = guard
        # Bounded by the guard: `other` is the only set beyond the known ones.
        self._series: dict[tuple[str, ...], prometheus_client.Counter] = {}

    def add(self, amount: float, *labels: str) -> None:
        """Let it grow by `amount`, which must not be negative."""
        series = self._series.get(labels)
        if series is None:
            bounded = self._guard.bound(labels)
            series = self._metric.labels(*bounded) if bounded else self._metric
            if bounded == labels:
                self._series[labels] = series
        series.inc(amount)


class Gauge:
    """A number that goes up and down, for each set of labels."""

    def __init__(self, metric: prometheus_client.Gauge, guard: Guard) -> None:
        self._metric = metric
        self._guard = guard

    def set(self, value: float, *labels: str) -> None:
        """Say what it is now."""
        bounded = self._guard.bound(labels)
        (self._metric.labels(*bounded) if bounded else self._metric).set(value)


class Histogram:
    """How values are spread, for each set of labels."""

    def __init__(self, metric: prometheus_client.Histogram, guard: Guard) -> None:
        self._metric = metric
        self._guard = guard
        self._series: dict[tuple[str, ...], prometheus_client.Histogram] = {}

    def observe(self, value: float, *labels: str) -> None:
        """Take one value in."""
        series = self._series.get(labels)
        if series is None:
            bounded = self._guard.bound(labels)
            series = self._metric.labels(*bounded) if bounded else self._metric
            if bounded == labels:
                self._series[labels] = series
        series.observe(value)


class Metrics:
    """All figures of one process.

    Args:
        most_series: label sets of one metric that are kept apart.
    """

    content_type = CONTENT_TYPE_LATEST
    """What `render` writes, as HTTP names it."""

    def __init__(self, most_series: int = MOST_SERIES) -> None:
        self._most_series = most_series
        self._registry = CollectorRegistry()
        self._system: SystemCollector | None = None
        self._dropped = prometheus_client.Counter(
            "callboard_metric_series_dropped",
            "Updates counted under other labels: the metric had too many series.",
            ("metric",),
            registry=self._registry,
        )
        prometheus_client.ProcessCollector(registry=self._registry)
        prometheus_client.PlatformCollector(registry=self._registry)

    def counter(self, name: str, text: str, labels: Sequence[str] = ()) -> Counter:
        """Make a counter.

        Args:
            name: without `_total`, which is added.
            text: what it counts, a sentence.
            labels: names of its labels.

        Raises:
            ValueError: the name is taken, or is none.
        """
        metric = prometheus_client.Counter(name, text, labels, registry=self._registry)
        return Counter(metric, self._guard(f"{name}_total", labels))

    def gauge(self, name: str, text: str, labels: Sequence[str] = ()) -> Gauge:
        """Make a gauge; arguments and errors as for `counter`."""
        metric = prometheus_client.Gauge(name, text, labels, registry=self._registry)
        return Gauge(metric, self._guard(name, labels))

    def histogram(
        self,
        name: str,
        text: str,
        labels: Sequence[str] = (),
        buckets: Sequence[float] = BUCKETS,
    ) -> Histogram:
        """Make a histogram; `buckets` are upper bounds in its unit, growing."""
        metric = prometheus_client.Histogram(
            name, text, labels, buckets=buckets, registry=self._registry
        )
        return Histogram(metric, self._guard(name, labels))

    def watch(self, system: Watched) -> None:
        """Show the figures of an actor system from now on.

        Raises:
            MisuseError: another one is shown already.
        """
        if self._system is not None:
            raise MisuseError("these metrics show an actor system already; make others")
        self._system = SystemCollector(system)
        self._registry.register(self._system)

    def render(self) -> bytes:
        """Write all figures in Prometheus' text format."""
        return generate_latest(Plain(self._registry))

    def _guard(self, name: str, labels: Sequence[str]) -> Guard:
        return Guard(name, len(labels), self._most_series, self._dropped)


class Plain(Collector):
    """A registry without `_created` series, which double what nobody looks at.

    Args:
        registry: the one with everything in it.
    """

    def __init__(self, registry: CollectorRegistry) -> None:
        self._all = registry

    def collect(self) -> Iterator[Metric]:
        """Give the metrics as they are now."""
        for metric in self._all.collect():
            metric.samples = [
                sample
                for sample in metric.samples
                if not sample.name.endswith("_created")
            ]
            yield metric


class SystemCollector(Collector):
    """The figures of an actor system, read when somebody scrapes.

    Args:
        system: what to show.
    """

    def __init__(self, system: Watched) -> None:
        self._system = system
        self._handled: Count[str] = Count()

    def describe(self) -> Iterable[Metric]:
        """Name the metrics when this is registered, without reading any."""
        return ()

    def collect(self) -> Iterator[Metric]:
        """Give the metrics as they are now."""
        system = self._system.statistics()
        actors = self._system.actors()
        living: Count[str] = Count()
        depth: Count[str] = Count()
        handled = Count(system.handled_by)
        for actor in actors:
            living[actor.kind] += 1
            depth[actor.kind] += actor.depth
            handled[actor.kind] += actor.handled
        # Why: an actor that ends while this reads would make the count fall for a
        # moment, which looks like a restart of the process.
        self._handled |= handled
        yield _gauge("callboard_actors", "Living actors.", _one(living))
        yield _gauge(
            "callboard_mailbox_depth", "Messages waiting in mailboxes.", _one(depth)
        )
        yield _counter(
            "callboard_actor_messages", "Messages handled.", _one(self._handled)
        )
        yield from _totals(system)
        yield from _levels(system)


def _totals(system: SystemFigures) -> Iterator[Metric]:
    yield _counter(
        "callboard_actor_restarts",
        "Restarts of actors by what made them necessary.",
        system.restarts,
        ("kind", "reason"),
    )
    yield _counter(
        "callboard_dead_letters",
        "Messages that nobody handled.",
        _one(system.dead_letters),
        ("reason",),
    )
    yield _counter(
        "callboard_watchdog",
        "What the watchdog saw and did.",
        system.watchdog,
        ("kind", "action"),
    )


def _levels(system: SystemFigures) -> Iterator[Metric]:
    yield GaugeMetricFamily(
        "callboard_loop_lag_seconds",
        "Seconds the kernel's loop took for its last sign of life.",
        system.loop_lag,
    )
    yield GaugeMetricFamily(
        "callboard_run_queue", "Actors waiting for their turn.", system.run_queue
    )
    yield GaugeMetricFamily(
        "callboard_foreign_messages",
        "Messages from other threads on their way.",
        system.foreign_waiting,
    )
    yield GaugeMetricFamily(
        "callboard_timers", "Timers that have still to fire.", system.timers
    )


def _one(counts: Mapping[str, int]) -> Mapping[tuple[str, ...], int]:
    return {(label,): count for label, count in counts.items()}


def _gauge(
    name: str, text: str, values: Mapping[tuple[str, ...], int]
) -> GaugeMetricFamily:
    family = GaugeMetricFamily(name, text, labels=("kind",))
    for labels, value in values.items():
        family.add_metric(labels, value)
    return family


def _counter(
    name: str,
    text: str,
    values: Mapping[tuple[str, ...], int] | Mapping[tuple[str, str], int],
    labels: tuple[str, ...] = ("kind",),
) -> CounterMetricFamily:
    family = CounterMetricFamily(name, text, labels=labels)
    for values_of, value in values.items():
        family.add_metric(values_of, value)
    return family
