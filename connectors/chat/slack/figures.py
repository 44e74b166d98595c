"""What is counted of the apps; the labels are bounded by the settings."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from connectors.chat.slack.events import Reason

if TYPE_CHECKING:
    from runtime.metrics import Metrics

Outcome = (
    Reason
    | Literal[
        "handed_in",
        "seen",
        "refused",
        "lost",
        "overflow",
        "gone",
        "media_left_out",
    ]
)
"""What became of what Slack sent: beside the reasons of `events.py`, another app had it
before, or it came again (`seen`); the domain never takes it (`refused`), or it could
not be stored (`lost`); too much was waiting, and Slack sends it again (`overflow`),
or has it no more when its history is read to the end (`gone`). Of files:
`media_left_out`. Calls that are not signed rightly are the HTTP server's to count."""


class SlackCounters:
    """What all connectors of this kind count together.

    Args:
        metrics: where they are registered.
    """

    def __init__(self, metrics: Metrics) -> None:
        labels = ("connector", "account")
        self.events = metrics.counter(
            "callboard_slack_events",
            "What became of what Slack sent, by account (the agent's name).",
            (*labels, "outcome"),
        )
        self.heard_at = metrics.gauge(
            "callboard_slack_heard_timestamp_seconds",
            "When an app last heard from Slack, in Unix seconds.",
            labels,
        )
        self.up = metrics.gauge(
            "callboard_slack_up", "1 while an app can hear Slack.", labels
        )
        self.reconnects = metrics.counter(
            "callboard_slack_reconnects",
            "Connections after the first: asked for by Slack, or after trouble.",
            (*labels, "why"),
        )
        self.gaps = metrics.counter(
            "callboard_slack_gaps",
            "Gaps in a channel's messages: filled, or left open.",
            (*labels, "outcome"),
        )


class SlackFigures:
    """The counters of one workspace's apps.

    Args:
        counters: those of all.
        connector: the name of the connector.
    """

    def __init__(self, counters: SlackCounters, connector: str) -> None:
        self._counters = counters
        self._connector = connector

    def event(self, account: str, outcome: Outcome) -> None:
        """Count something that came."""
        self._counters.events.add(1, self._connector, account, outcome)

    def heard(self, account: str, at: float) -> None:
        """Note that an app heard from Slack (Unix seconds)."""
        self._counters.heard_at.set(at, self._connector, account)

    def show(self, account: str, *, is_up: bool) -> None:
        """Show whether an app can hear Slack."""
        self._counters.up.set(float(is_up), self._connector, account)

    def reconnected(self, account: str, *, is_asked: bool) -> None:
        """Count a connection after the first."""
        why = "asked" if is_asked else "trouble"
        self._counters.reconnects.add(1, self._connector, account, why)

    def gap(self, account: str, *, is_filled: bool) -> None:
        """Count a channel's gap."""
        outcome = "filled" if is_filled else "open"
        self._counters.gaps.add(1, self._connector, account, outcome)
