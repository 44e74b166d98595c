"""The metrics of a chat platform; the settings bound their labels.

A platform names its metrics once, as `METRICS = partial(PlatformCounters, …)`. All its
connectors share them, and each counts by a `PlatformMetrics` of its own.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Generic, NamedTuple, TypeVar

if TYPE_CHECKING:
    from runtime.telemetry.metrics import Metrics

LABELS = ("connector", "account")

Outcome_contra = TypeVar("Outcome_contra", bound=str, contravariant=True)
"""The outcomes that a platform counts its events by."""


class Family(NamedTuple):
    """One metric, as it is registered."""

    name: str
    text: str
    label: str = ""
    """A label beside those of the connector and the account; empty: none."""

    @property
    def labels(self) -> tuple[str, ...]:
        """Return all labels."""
        return (*LABELS, self.label) if self.label else LABELS


class PlatformCounters:
    """The metrics that all connectors of one platform share.

    Args:
        metrics: where they are registered.
        events: counts what came, by outcome.
        heard: shows when an account last heard from the platform, in Unix seconds.
        up: shows 1 while an account hears the platform.
        further: counts further things, by their names here.
    """

    def __init__(
        self,
        metrics: Metrics,
        *,
        events: Family,
        heard: Family,
        up: Family,
        **further: Family,
    ) -> None:
        self.heard = metrics.gauge(heard.name, heard.text, heard.labels)
        self.up = metrics.gauge(up.name, up.text, up.labels)
        self.counters = {
            key: metrics.counter(each.name, each.text, each.labels)
            for key, each in {"events": events, **further}.items()
        }


class PlatformMetrics(Generic[Outcome_contra]):
    """Counts for the accounts of one connector."""

    def __init__(self, counters: PlatformCounters, connector: str) -> None:
        self._counters = counters
        self._connector = connector

    def event(self, account: str, outcome: Outcome_contra) -> None:
        """Count something that came."""
        self.count("events", account, outcome)

    def heard(self, account: str, at: float) -> None:
        """Note that an account heard from the platform (Unix seconds)."""
        self._counters.heard.set(at, self._connector, account)

    def show(self, account: str, *, is_up: bool) -> None:
        """Show whether an account hears the platform."""
        self._counters.up.set(float(is_up), self._connector, account)

    def gap(self, account: str, *, is_filled: bool) -> None:
        """Count a gap in a channel's messages."""
        self.count("gaps", account, "filled" if is_filled else "open")

    def count(self, what: str, account: str, *labels: str) -> None:
        """Count once in one of the platform's counters.

        Args:
            what: the counter's name among those of the platform.
            account: whose; the agent's name.
            labels: the value of its further label, if it has one.
        """
        self._counters.counters[what].add(1, self._connector, account, *labels)
