"""Metrics that can be read back, and that break the actor that counts, if told to.

A counter is touched in the middle of nearly every handler: an error raised there is
an actor that dies half way.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence

import prometheus_client

from runtime.telemetry.metrics import Counter, Gauge, Histogram, Metrics


class CountingMetrics(Metrics):
    """The figures of one life.

    Args:
        slip: called before each count; may raise.
    """

    def __init__(self, slip: Callable[[], object]) -> None:
        self._slip = slip
        self.counters: dict[str, Counted] = {}

    def counter(self, name: str, text: str, labels: Sequence[str] = ()) -> Counter:
        """Make a counter that remembers."""
        assert text
        assert name not in self.counters
        self.counters[name] = Counted(self._slip, len(labels))
        return self.counters[name]

    def gauge(self, name: str, text: str, labels: Sequence[str] = ()) -> Gauge:
        """Make a gauge that forgets."""
        assert name, (text, labels)
        return Unseen()

    def histogram(
        self,
        name: str,
        text: str,
        labels: Sequence[str] = (),
        buckets: Sequence[float] = (),
    ) -> Histogram:
        """Make a histogram that forgets."""
        assert name, (text, labels, buckets)
        return Unobserved()


class Counted(Counter):
    """A counter and its values by label.

    Args:
        slip: called before each count.
        labels: how many labels it has.
    """

    def __init__(self, slip: Callable[[], object], labels: int) -> None:
        self._slip = slip
        self._labels = labels
        self.values: defaultdict[tuple[str, ...], float] = defaultdict(float)

    @property
    def only(self) -> prometheus_client.Counter:
        """Give one that no registry has."""
        return prometheus_client.Counter("unseen", "Seen by nobody.", registry=None)

    def add(self, amount: float, *labels: str) -> None:
        """Grow."""
        assert len(labels) == self._labels
        self._slip()
        self.values[labels] += amount


class Unseen(Gauge):
    """A gauge that nobody reads."""

    def __init__(self) -> None:
        """Keep nothing."""

    @property
    def only(self) -> prometheus_client.Gauge:
        """Give one that no registry has."""
        return prometheus_client.Gauge("unseen", "Seen by nobody.", registry=None)

    def set(self, value: float, *labels: str) -> None:
        """Forget it."""

    def reset(self) -> None:
        """Nothing was kept."""


class Unobserved(Histogram):
    """A histogram that nobody reads."""

    def __init__(self) -> None:
        """Keep nothing."""

    @property
    def only(self) -> prometheus_client.Histogram:
        """Give one that no registry has."""
        return prometheus_client.Histogram("unseen", "Seen by nobody.", registry=None)

    def observe(self, value: float, *labels: str, example: str = "") -> None:
        """Forget it."""
