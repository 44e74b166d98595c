"""What is counted of the bots; the labels are bounded by the settings."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from connectors.chat.telegram.updates import Reason

if TYPE_CHECKING:
    from runtime.metrics import Metrics

Outcome = (
    Reason
    | Literal[
        "handed_in",
        "seen",
        "refused",
        "lost",
        "later",
        "button",
        "unknown_button",
        "moved",
        "membership",
        "media_left_out",
    ]
)
"""What became of an update: beside the reasons of `updates.py`, another bot had it
before (`seen`); the domain never takes it (`refused`), or it could not be stored
(`lost`); a webhook is to bring it again (`later`). A button that was pressed, or that
nobody knows; a group that moved; a bot that came or went. Of files:
`media_left_out`."""


class TelegramCounters:
    """What all connectors of this kind count together.

    Args:
        metrics: where they are registered.
    """

    def __init__(self, metrics: Metrics) -> None:
        labels = ("connector", "account")
        self.updates = metrics.counter(
            "callboard_telegram_updates",
            "What became of what Telegram sent, by account (the agent's name).",
            (*labels, "outcome"),
        )
        self.polled_at = metrics.gauge(
            "callboard_telegram_polled_timestamp_seconds",
            "When a bot last heard from Telegram, in Unix seconds.",
            labels,
        )
        self.up = metrics.gauge(
            "callboard_telegram_up", "1 while a bot hears Telegram.", labels
        )
        self.reconnects = metrics.counter(
            "callboard_telegram_reconnects",
            "How often a bot heard from Telegram again after trouble.",
            labels,
        )
        self.conflicts = metrics.counter(
            "callboard_telegram_conflicts",
            "How often another program asked for a bot's messages.",
            labels,
        )
        self.plain = metrics.counter(
            "callboard_telegram_plain",
            "Messages whose markup Telegram refused: said again as plain text.",
            labels,
        )


class TelegramFigures:
    """The counters of one connector's bots.

    Args:
        counters: those of all.
        connector: the name of the connector.
    """

    def __init__(self, counters: TelegramCounters, connector: str) -> None:
        self._counters = counters
        self._connector = connector

    def update(self, account: str, outcome: Outcome) -> None:
        """Count something that came."""
        self._counters.updates.add(1, self._connector, account, outcome)

    def polled(self, account: str, at: float) -> None:
        """Note that a bot heard from Telegram (Unix seconds)."""
        self._counters.polled_at.set(at, self._connector, account)

    def show(self, account: str, *, is_up: bool) -> None:
        """Show whether a bot hears Telegram."""
        self._counters.up.set(float(is_up), self._connector, account)

    def reconnected(self, account: str) -> None:
        """Count that a bot hears Telegram again."""
        self._counters.reconnects.add(1, self._connector, account)

    def conflict(self, account: str) -> None:
        """Count that somebody else asks for a bot's messages."""
        self._counters.conflicts.add(1, self._connector, account)

    def plain(self, account: str) -> None:
        """Count a message that went out as plain text."""
        self._counters.plain.add(1, self._connector, account)
