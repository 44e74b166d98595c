"""What is counted of the numbers; the labels are bounded by the settings."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from connectors.chat.whatsapp.events import Reason, States

if TYPE_CHECKING:
    from runtime.metrics import Metrics

Outcome = (
    Reason
    | Literal[
        "handed_in",
        "seen",
        "refused",
        "lost",
        "waits",
        "media_left_out",
        "errand_left_out",
        "window_closed",
    ]
)
"""What became of what came: beside the reasons of `events.py`, it was known (`seen`);
the domain never takes it (`refused`), or it could not be stored (`lost`), or not yet
(`waits`). Of files: `media_left_out`. Of ticks, typing and notices that found no room:
`errand_left_out`. Of what was to be said: its time was over (`window_closed`)."""


class WhatsAppCounters:
    """What all connectors of this kind count together.

    Args:
        metrics: where they are registered.
    """

    def __init__(self, metrics: Metrics) -> None:
        labels = ("connector", "account")
        self.events = metrics.counter(
            "callboard_whatsapp_events",
            "What became of what WhatsApp sent, by account (the agent's name).",
            (*labels, "outcome"),
        )
        self.statuses = metrics.counter(
            "callboard_whatsapp_statuses",
            "What WhatsApp said of our messages: sent, delivered, read, failed.",
            (*labels, "status"),
        )
        self.heard_at = metrics.gauge(
            "callboard_whatsapp_heard_timestamp_seconds",
            "When WhatsApp last called for an account, in Unix seconds.",
            labels,
        )
        self.up = metrics.gauge(
            "callboard_whatsapp_up", "1 while an account's token is taken.", labels
        )


class WhatsAppFigures:
    """The counters of one connector's accounts.

    Args:
        counters: those of all.
        connector: the name of the connector.
    """

    def __init__(self, counters: WhatsAppCounters, connector: str) -> None:
        self._counters = counters
        self._connector = connector

    def event(self, account: str, outcome: Outcome) -> None:
        """Count something that came, or was to be said."""
        self._counters.events.add(1, self._connector, account, outcome)

    def status(self, account: str, state: States) -> None:
        """Count a status."""
        self._counters.statuses.add(1, self._connector, account, state)

    def heard(self, account: str, at: float) -> None:
        """Note that WhatsApp called (Unix seconds)."""
        self._counters.heard_at.set(at, self._connector, account)

    def show(self, account: str, *, is_up: bool) -> None:
        """Show whether an account's token is taken."""
        self._counters.up.set(float(is_up), self._connector, account)
