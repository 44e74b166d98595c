"""Metrics of webhooks. Label values are names from the settings, so they are few."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from runtime.telemetry.metrics import Metrics

UNKNOWN = "(unknown)"
"""The label of names that are not in the settings: strangers choose no labels."""


class WebhookMetrics:
    """The counters of incoming and outgoing webhooks.

    Args:
        metrics: where they are registered.
    """

    def __init__(self, metrics: Metrics) -> None:
        self._received = metrics.counter(
            "callboard_webhooks_received",
            "Webhooks that came in, by name and what became of them.",
            ("webhook", "outcome"),
        )
        self._sent = metrics.counter(
            "callboard_webhooks_sent",
            "Tries to send a webhook, by name and what came of them.",
            ("webhook", "outcome"),
        )
        self._waiting = metrics.gauge(
            "callboard_webhooks_waiting",
            "Events that are not sent yet, by webhook.",
            ("webhook",),
        )

    def received(self, webhook: str, outcome: str) -> None:
        """Count an incoming webhook."""
        self._received.add(1, webhook, outcome)

    def sent(self, webhook: str, outcome: str) -> None:
        """Count a try, or an event that was given up."""
        self._sent.add(1, webhook, outcome)

    def waiting(self, webhook: str, count: int) -> None:
        """Show how many events wait."""
        self._waiting.set(count, webhook)
