"""Progress of a turn: normal, long-running, stalled, or stuck. Pure.

A turn makes progress when its model streams text, or when a round or a tool ends. A
turn that waits for an approval is not watched meanwhile.
"""

from __future__ import annotations

import math
from typing import Literal

import msgspec

Pace = Literal["running", "long-running", "stalled", "stuck"]

Remedy = Literal["cancel", "kill", "restart"]
"""What the watchdog does about a stuck turn: cancel it, kill its actor and abandon its
task, or restart the whole agent.
"""

REMEDIES: tuple[Remedy, ...] = ("cancel", "kill", "restart")
"""In order of escalation; each is tried when the one before it did not help."""


def next_remedy(tried: Remedy) -> Remedy | None:
    """Return the next remedy; None if all have been tried."""
    left = REMEDIES[REMEDIES.index(tried) + 1 :]
    return left[0] if left else None


class ProgressLimits(msgspec.Struct, frozen=True):
    """Thresholds for the progress of a turn, in seconds; 0 disables one."""

    long_after: float = 0.0
    """Since it began."""

    stalled_after: float = 0.0
    """Since it moved last."""

    stuck_after: float = 0.0
    """Since it moved last."""

    quiet_after: float = 0.0
    """Since it moved last; then other people are answered beside it."""


def pace_of(patience: ProgressLimits, lasted: float, silent: float) -> Pace:
    """Say how a turn gets on.

    Args:
        lasted: seconds since it began.
        silent: seconds since it moved last.
    """
    if 0 < patience.stuck_after <= silent:
        return "stuck"
    if 0 < patience.stalled_after <= silent:
        return "stalled"
    return "long-running" if 0 < patience.long_after <= lasted else "running"


def look_after(patience: ProgressLimits, lasted: float, silent: float) -> float:
    """Say in how many seconds, at the earliest, it may count as something else.

    Returns:
        Infinity: never.
    """
    times = (
        (patience.quiet_after, silent),
        (patience.long_after, lasted),
        (patience.stalled_after, silent),
        (patience.stuck_after, silent),
    )
    left = [after - gone for after, gone in times if after > gone]
    return min(left, default=math.inf)
