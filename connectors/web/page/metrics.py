"""Metrics of the page; the labels are bounded by the settings."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from runtime.telemetry.metrics import Metrics


class PageCounters:
    """The metrics that all connectors of this kind share."""

    def __init__(self, metrics: Metrics) -> None:
        self.sessions = metrics.gauge(
            "callboard_page_sessions", "Browsers that are logged in.", ("connector",)
        )
        self.streams = metrics.gauge(
            "callboard_page_streams",
            "Tabs that are kept up to date now.",
            ("connector",),
        )
        self.logins = metrics.counter(
            "callboard_page_logins", "Browsers that were logged in.", ("connector",)
        )
        self.refused = metrics.counter(
            "callboard_page_refused",
            "Requests that were refused, by why: links that do not hold, other hosts,"
            " forms of other pages.",
            ("connector", "reason"),
        )
        self.streams_cut = metrics.counter(
            "callboard_page_streams_cut",
            "Streams that were ended, by why: too slow, or too many of one browser.",
            ("connector", "reason"),
        )


class PageMetrics:
    """The metrics of one connector."""

    def __init__(self, counters: PageCounters, connector: str) -> None:
        self._counters = counters
        self._connector = connector
        self._streams = 0

    def sessions(self, count: int) -> None:
        """Set the number of logged-in browsers."""
        self._counters.sessions.set(float(count), self._connector)

    def logged_in(self) -> None:
        """Count a login."""
        self._counters.logins.add(1, self._connector)

    def refused(self, reason: str) -> None:
        """Count a refused request; reasons are a fixed set of words."""
        self._counters.refused.add(1, self._connector, reason)

    def stream(self, change: int) -> None:
        """Add an opened (1) or ended (-1) stream."""
        self._streams += change
        self._counters.streams.set(float(self._streams), self._connector)

    def cut(self, reason: str) -> None:
        """Count a stream that the server closed."""
        self._counters.streams_cut.add(1, self._connector, reason)
