"""What Prometheus scrapes: one registry, and counters with bounded labels.

Owns a registry of its own, never the library's global one. Every method may be
called from any thread. `SystemCollector` reads the kernel's own figures.
"""

from __future__ import annotations

from collections import Counter as Count
from collections.abc import Iterable, Iterator, Mapping, Sequence
from copy import copy
from threading import Lock
from types import MappingProxyType
from typing import TYPE_CHECKING, NamedTuple, TypeVar

import prometheus_client
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.exposition import (
    CONTENT_TYPE_LATEST,
    choose_encoder,
    generate_latest,
)
from prometheus_client.registry import Collector, CollectorRegistry

from runtime.errors import MisuseError

if TYPE_CHECKING:
    from runtime.actor.statistics import SystemStatistics
    from runtime.system import ActorSystem


class SystemCollector(Collector):
    """The figures of an actor system, read when somebody scrapes."""

    def __init__(self, system: ActorSystem) -> None:
        self._system = system
        self._handled: Count[str] = Count()
        self._lock = Lock()

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
        with self._lock:  # two may read at the same time
            self._handled |= handled
            handled = Count(self._handled)
        yield _gauge("callboard_actors", "Living actors.", _one(living))
        yield _gauge(
            "callboard_mailbox_depth", "Messages waiting in mailboxes.", _one(depth)
        )
        yield _counter("callboard_actor_messages", "Messages handled.", _one(handled))
        yield from _totals(system)
        yield from _levels(system)


def _totals(system: SystemStatistics) -> Iterator[Metric]:
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
        "callboard_watchdog_actions",
        "What the watchdog saw and did.",
        system.watchdog,
        ("kind", "action"),
    )


def _levels(system: SystemStatistics) -> Iterator[Metric]:
    yield GaugeMetricFamily(
        "callboard_loop_lag_seconds",
        "Seconds the kernel's loop took for its last sign of life.",
        system.loop_lag,
    )
    yield GaugeMetricFamily(
        "callboard_run_queue", "Actors waiting for their turn.", system.run_queue
    )
    yield GaugeMetricFamily(
        "callboard_thread_messages_waiting",
        "Messages from other threads that have not arrived yet.",
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


# Chosen: more agents, tools or models than one settings file names, and few enough that
# a mistake (an id in a label) costs a scraper little.
MOST_VALUES = 500
"""Values of one label that are kept apart."""

MOST_SERIES = 5_000
"""Sets of label values of one metric that are kept apart."""

OTHER = "other"
"""What stands for the values of a label above its bound, each label by itself."""

BUCKETS = (0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1.0, 5.0, 10.0, 60.0)
"""Upper bounds of a histogram's buckets, in its unit, unless it says otherwise."""


class Guard:
    """Keeps the series of one metric below a bound.

    A label with too many values has `other` for the further ones; the other labels of
    such a series stay true. Sets of values above `MOST_SERIES` become `other` as a
    whole.

    Args:
        labels: how many labels it has.
        most: how many values of one label, and how many sets, are kept apart.
        dropped: counts what went to `other`, by metric.
    """

    def __init__(
        self,
        name: str,
        labels: int,
        most: tuple[int, int],
        dropped: prometheus_client.Counter,
    ) -> None:
        self._name = name
        self._most_values, self._most_series = most
        self._values: tuple[set[str], ...] = tuple(set() for _ in range(labels))
        self._known: set[tuple[str, ...]] = set()
        self._lock = Lock()
        self._dropped = dropped

    def bound(self, labels: tuple[str, ...]) -> tuple[str, ...]:
        """Give these label values, with `other` for those that are too many.

        Raises:
            MisuseError: the metric has more labels than that, or fewer.
        """
        if labels in self._known:
            return labels
        if len(labels) != len(self._values):
            text = f"{len(labels)} labels given, {len(self._values)} declared"
            raise MisuseError(text)
        with self._lock:
            bounded = tuple(map(self._kept, self._values, labels))
            if bounded not in self._known:
                if len(self._known) < self._most_series:
                    self._known.add(bounded)
                else:
                    bounded = (OTHER,) * len(labels)
        if bounded != labels:
            self._dropped.labels(self._name).inc()
        return bounded

    def _kept(self, known: set[str], value: str) -> str:
        if value not in known:
            if len(known) >= self._most_values:
                return OTHER
            known.add(value)
        return value


M = TypeVar(
    "M", prometheus_client.Counter, prometheus_client.Gauge, prometheus_client.Histogram
)


class Series(dict[tuple[str, ...], M]):
    """The series of one metric, by their labels' values.

    Why kept: looking one up in the metric costs more than counting in it. Bounded by
    the guard: only the sets that it keeps apart are in here. One that is not gives the
    series of all others.
    """

    def __init__(self, metric: M, guard: Guard) -> None:
        super().__init__()
        self._metric: M = metric
        self._guard = guard

    def __missing__(self, labels: tuple[str, ...]) -> M:
        """Look a series up in the metric."""
        bounded = self._guard.bound(labels)
        series = self._metric.labels(*bounded) if bounded else self._metric
        if bounded == labels:
            self[labels] = series
        return series

    def own(self, labels: tuple[str, ...]) -> M | None:
        """Give the series with these values; None: there are too many."""
        series = self.get(labels)
        if series is None and self._guard.bound(labels) == labels:
            series = self[labels]
        return series


class Counter:
    """A number that only grows, for each set of labels."""

    def __init__(self, series: Series[prometheus_client.Counter]) -> None:
        self._series = series

    @property
    def only(self) -> prometheus_client.Counter:
        """The one series of a metric without labels, to be kept where it is hot."""
        return self._series[()]

    def add(self, amount: float, *labels: str) -> None:
        """Let it grow by `amount`, which must not be negative."""
        self._series[labels].inc(amount)


class Gauge:
    """A number that goes up and down, for each set of labels.

    One above the bound is left out: several in one series would show the last one's.
    """

    def __init__(self, series: Series[prometheus_client.Gauge]) -> None:
        self._series = series

    @property
    def only(self) -> prometheus_client.Gauge:
        """The one series of a metric without labels, to be kept where it is hot."""
        return self._series[()]

    def set(self, value: float, *labels: str) -> None:
        """Say what it is now."""
        series = self._series.get(labels) or self._series.own(labels)
        if series is not None:
            series.set(value)

    def reset(self) -> None:
        """Set each value to 0, as when the actor that set them was killed."""
        for series in self._series.values():
            series.set(0)


class Histogram:
    """How values are spread, for each set of labels."""

    def __init__(self, series: Series[prometheus_client.Histogram]) -> None:
        self._series = series

    @property
    def only(self) -> prometheus_client.Histogram:
        """The one series of a metric without labels, to be kept where it is hot."""
        return self._series[()]

    def observe(self, value: float, *labels: str, example: str = "") -> None:
        """Take one value in.

        Args:
            example: correlation id of the message that it was measured at, shown to
                scrapers that ask for OpenMetrics; empty: none.
        """
        # Source: OpenMetrics 1.0: an exemplar's labels have 128 characters at most.
        fits = 0 < len(example) <= LONGEST_EXAMPLE
        given = {EXAMPLE: example} if fits else None
        self._series[labels].observe(value, given)


EXAMPLE = "correlation_id"
"""Label of a histogram's exemplars."""

LONGEST_EXAMPLE = 128 - len(EXAMPLE)


class Figure(NamedTuple):
    """One figure, now."""

    name: str
    labels: Mapping[str, str]
    value: float


class Metrics:
    """All figures of one process.

    Args:
        most_values: values of one label that are kept apart.
        most_series: sets of label values of one metric that are kept apart.
        node: what is written as the label `node` of all of them; empty: no such label.
    """

    def __init__(
        self,
        most_values: int = MOST_VALUES,
        most_series: int = MOST_SERIES,
        node: str = "",
    ) -> None:
        self._most = most_values, most_series
        self._shown = {"node": node} if node else {}
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

        Raises:
            ValueError: the name is taken, or is none.
        """
        metric = prometheus_client.Counter(name, text, labels, registry=self._registry)
        return Counter(Series(metric, self._guard(f"{name}_total", labels)))

    def gauge(self, name: str, text: str, labels: Sequence[str] = ()) -> Gauge:
        """Make a gauge; arguments and errors as for `counter`."""
        metric = prometheus_client.Gauge(name, text, labels, registry=self._registry)
        return Gauge(Series(metric, self._guard(name, labels)))

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
        return Histogram(Series(metric, self._guard(name, labels)))

    def watch(self, system: ActorSystem) -> None:
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
        return generate_latest(Plain(self._registry, self._shown))

    def render_as(self, accept: str) -> tuple[bytes, str]:
        """Write all figures as a scraper wants them; OpenMetrics has exemplars.

        Args:
            accept: what its request says; empty: nothing.

        Returns:
            The figures, and their media type.
        """
        if OPEN_METRICS not in accept:
            return self.render(), CONTENT_TYPE_LATEST
        encode, media_type = choose_encoder(accept)
        return encode(Plain(self._registry, self._shown)), media_type

    def figures(self) -> Iterator[Figure]:
        """Give all figures, without a label `node`; may be called from any thread."""
        for metric in Plain(self._registry).collect():
            for sample in metric.samples:
                yield Figure(sample.name, sample.labels, sample.value)

    def _guard(self, name: str, labels: Sequence[str]) -> Guard:
        return Guard(name, len(labels), self._most, self._dropped)


OPEN_METRICS = "application/openmetrics-text"


class Plain(Collector):
    """A registry without `_created` series, which double what nobody looks at.

    Args:
        labels: further ones, by name, of each sample.
    """

    def __init__(
        self,
        registry: CollectorRegistry,
        labels: Mapping[str, str] = MappingProxyType({}),
    ) -> None:
        self._all = registry
        self._labels = labels

    def collect(self) -> Iterator[Metric]:
        """Give the metrics as they are now."""
        for metric in self._all.collect():
            # Not the collector's own: that of the platform gives the same one again.
            shown = copy(metric)
            shown.samples = [
                sample
                if not self._labels
                else sample._replace(labels={**self._labels, **sample.labels})
                for sample in metric.samples
                if not sample.name.endswith("_created")
            ]
            yield shown
