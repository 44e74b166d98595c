"""The sandbox as figures: what is in force, and how programs end."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from connectors.sandbox.plan import Standing
    from runtime.telemetry.metrics import Gauge, Metrics


class SandboxFigures:
    """What is in force, as it was tried last.

    Args:
        metrics: where it is shown, from the first try on.
    """

    def __init__(self, metrics: Metrics) -> None:
        self._metrics = metrics
        self._gauge: Gauge | None = None
        self._shown: set[tuple[str, str]] = set()

    def show(self, standing: Standing) -> None:
        """Show each protection as 1 or 0, by the kind of sandbox and its name."""
        if self._gauge is None:
            self._gauge = self._metrics.gauge(
                "callboard_sandbox_in_force",
                "Whether a protection from programs that agents start is in force,"
                " as tried.",
                ("kind", "feature"),
            )
        for labels in self._shown:  # settings may want another kind by now
            self._gauge.set(0, *labels)
        for name, holds in standing.features.items():
            self._gauge.set(int(holds), standing.kind, name)
            self._shown.add((standing.kind, name))
