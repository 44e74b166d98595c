"""What is counted of the bots; the labels are bounded by the settings."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from connectors.chat.discord.payloads import Reason

if TYPE_CHECKING:
    from runtime.metrics import Metrics

Outcome = (
    Reason
    | Literal[
        "edit",
        "handed_in",
        "seen",
        "refused",
        "lost",
        "overrun",
        "command",
        "command_refused",
        "media_left_out",
    ]
)
"""What became of what came: beside the reasons of `payloads.py`, it changed an earlier
message (`edit`); another bot had it before (`seen`); the domain never takes it
(`refused`), or it could not be stored (`lost`); too much came at once, so that it is
fetched later (`overrun`). Of commands: `command`, or `command_refused`. Of files:
`media_left_out`."""


class DiscordCounters:
    """What all connectors of this kind count together.

    Args:
        metrics: where they are registered.
    """

    def __init__(self, metrics: Metrics) -> None:
        labels = ("connector", "account")
        self.events = metrics.counter(
            "callboard_discord_events",
            "What became of what Discord sent, by account (the agent's name).",
            (*labels, "outcome"),
        )
        self.heard_at = metrics.gauge(
            "callboard_discord_heard_timestamp_seconds",
            "When a bot last had something from Discord for us, in Unix seconds.",
            labels,
        )
        self.up = metrics.gauge(
            "callboard_discord_up", "1 while a bot hears its gateway.", labels
        )
        self.reconnects = metrics.counter(
            "callboard_discord_reconnects",
            "How often a bot heard its gateway again after trouble.",
            labels,
        )
        self.restarts = metrics.counter(
            "callboard_discord_restarts",
            "How often a bot's client had ended and was made anew.",
            labels,
        )
        self.gaps = metrics.counter(
            "callboard_discord_gaps",
            "Gaps in a channel's messages: filled, or left open.",
            (*labels, "outcome"),
        )


class DiscordFigures:
    """The counters of one connector's bots.

    Args:
        counters: those of all.
        connector: the name of the connector.
    """

    def __init__(self, counters: DiscordCounters, connector: str) -> None:
        self._counters = counters
        self._connector = connector

    def event(self, account: str, outcome: Outcome) -> None:
        """Count something that came."""
        self._counters.events.add(1, self._connector, account, outcome)

    def heard(self, account: str, at: float) -> None:
        """Note that a bot heard something (Unix seconds)."""
        self._counters.heard_at.set(at, self._connector, account)

    def show(self, account: str, *, is_up: bool) -> None:
        """Show whether a bot hears its gateway."""
        self._counters.up.set(float(is_up), self._connector, account)

    def reconnected(self, account: str) -> None:
        """Count that a bot hears its gateway again."""
        self._counters.reconnects.add(1, self._connector, account)

    def restarted(self, account: str) -> None:
        """Count that a client was made anew."""
        self._counters.restarts.add(1, self._connector, account)

    def gap(self, account: str, *, is_filled: bool) -> None:
        """Count a gap."""
        self._counters.gaps.add(
            1, self._connector, account, "filled" if is_filled else "open"
        )
