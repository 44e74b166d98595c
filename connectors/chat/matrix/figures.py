"""What is counted of the accounts; the labels are bounded by the settings."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from connectors.chat.matrix.events import Reason

if TYPE_CHECKING:
    from runtime.metrics import Metrics

Outcome = (
    Reason
    | Literal[
        "handed_in",
        "seen",
        "old",
        "encrypted_room",
        "refused",
        "lost",
        "joined",
        "declined",
        "not_joined",
        "media_left_out",
    ]
)
"""What became of an event: beside the reasons of `events.py`, another account had it
before (`seen`); it is older than the account's being there (`old`); the domain never
takes it (`refused`), or it could not be stored (`lost`). Of invitations: `joined`,
`declined`, or accepted in vain (`not_joined`). Of files: `media_left_out`."""


class MatrixCounters:
    """What all connectors of this kind count together.

    Args:
        metrics: where they are registered.
    """

    def __init__(self, metrics: Metrics) -> None:
        labels = ("connector", "account")
        self.events = metrics.counter(
            "callboard_matrix_events",
            "What became of what homeservers sent, by account (the agent's name).",
            (*labels, "outcome"),
        )
        self.synced_at = metrics.gauge(
            "callboard_matrix_synced_timestamp_seconds",
            "When an account last heard from its homeserver, in Unix seconds.",
            labels,
        )
        self.up = metrics.gauge(
            "callboard_matrix_up", "1 while an account hears its homeserver.", labels
        )
        self.reconnects = metrics.counter(
            "callboard_matrix_reconnects",
            "How often an account heard from its homeserver again after trouble.",
            labels,
        )
        self.gaps = metrics.counter(
            "callboard_matrix_gaps",
            "Gaps in a room's messages: filled, or left open.",
            (*labels, "outcome"),
        )


class MatrixFigures:
    """The counters of one homeserver's accounts.

    Args:
        counters: those of all.
        connector: the name of the connector.
    """

    def __init__(self, counters: MatrixCounters, connector: str) -> None:
        self._counters = counters
        self._connector = connector

    def event(self, account: str, outcome: Outcome) -> None:
        """Count something that came."""
        self._counters.events.add(1, self._connector, account, outcome)

    def synced(self, account: str, at: float) -> None:
        """Note that an account heard from its homeserver (Unix seconds)."""
        self._counters.synced_at.set(at, self._connector, account)

    def show(self, account: str, *, is_up: bool) -> None:
        """Show whether an account hears its homeserver."""
        self._counters.up.set(float(is_up), self._connector, account)

    def reconnected(self, account: str) -> None:
        """Count that an account hears its homeserver again."""
        self._counters.reconnects.add(1, self._connector, account)

    def gap(self, account: str, *, is_filled: bool) -> None:
        """Count a gap."""
        self._counters.gaps.add(
            1, self._connector, account, "filled" if is_filled else "open"
        )
