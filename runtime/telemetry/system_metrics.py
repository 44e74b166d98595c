"""The kernel's own figures, read when somebody scrapes.

Knows the kernel only by what it tells of itself, see `Watched`. Safe on any thread.
"""

from __future__ import annotations

from collections import Counter as Count
from collections.abc import Iterable, Iterator, Mapping, Sequence
from threading import Lock
from typing import Protocol

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector


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


class SystemCollector(Collector):
    """The figures of an actor system, read when somebody scrapes."""

    def __init__(self, system: Watched) -> None:
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
        "callboard_watchdog_actions",
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
