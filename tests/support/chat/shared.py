"""What the beds of all platforms share: a clock, figures, something to say."""

from __future__ import annotations

from typing import Any

import trio

from actors.messages.deliveries import Delivery
from actors.messages.inbound import Address
from runtime.telemetry.metrics import Metrics


class Hand:
    """A clock whose wall a test sets."""

    def __init__(self) -> None:
        self.ahead = 0.0

    def wall(self) -> float:
        """Give Unix seconds."""
        return 1_700_000_010.0 + self.ahead

    def monotonic(self) -> float:
        """Give trio's seconds."""
        return trio.current_time()


def figure(metrics: Metrics, name: str, **labels: str) -> float:
    """Give a figure as `/metrics` shows it; 0 if there is none."""
    shown = ",".join(f'{key}="{value}"' for key, value in sorted(labels.items()))
    start = f"callboard_{name}{{{shown}}} "
    for line in metrics.render().decode().splitlines():
        if line.startswith(start):
            return float(line.removeprefix(start))
    return 0.0


def delivery_to(
    address: Address, /, text: str, agent: str = "anna", **more: Any
) -> Delivery:
    """Make something to say at an address."""
    fields: dict[str, Any] = {
        "id": f"{agent}/{text}",
        "correlation_id": "c",
        "address": address,
        "agent": agent,
        "text": text,
    }
    return Delivery(**{**fields, **more})
