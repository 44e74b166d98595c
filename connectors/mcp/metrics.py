"""What is counted of servers of tools; the labels are bounded by the settings."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from runtime.telemetry.metrics import Metrics

Event = Literal[
    "opened",
    "lost",
    "garbage",
    "tool_left_out",
    "tool_changed",
    "call_timeout",
    "call_refused",
]
"""What happens to a server: its session stood, or ended; it sent what is no message;
one of its tools cannot be used, or is described otherwise than before; a call took too
long, or was refused because too many waited."""


class McpFigures:
    """The counters of all servers of tools."""

    def __init__(self, metrics: Metrics) -> None:
        self._events = metrics.counter(
            "callboard_mcp_events",
            "What happened to servers of tools, by server.",
            ("server", "event"),
        )
        self._up = metrics.gauge(
            "callboard_mcp_up", "1 while a server of tools can be used.", ("server",)
        )

    def count(self, server: str, event: Event, times: int = 1) -> None:
        """Count something that happened."""
        if times:
            self._events.add(times, server, event)

    def show(self, server: str, *, is_up: bool) -> None:
        """Show whether a server can be used."""
        self._up.set(float(is_up), server)
