"""The sandbox as figures: what is in force, and how programs end."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from connectors.sandbox.plan import Standing
    from runtime.metrics import Metrics


def show_standing(metrics: Metrics, standing: Standing) -> None:
    """Show each protection as 1 or 0, by the kind of sandbox and its name."""
    gauge = metrics.gauge(
        "callboard_sandbox_in_force",
        "Whether a protection from programs that agents start is in force, as tried.",
        ("kind", "feature"),
    )
    for name, holds in standing.features.items():
        gauge.set(int(holds), standing.kind, name)
