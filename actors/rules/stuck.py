"""Whether a turn still gets on: long-running, stalled, or stuck (B22); pure.

A turn moves when its model says a word, or a round or a tool ends. One that only waits
for people's leave is not looked at meanwhile.
"""

from __future__ import annotations

import math
from typing import Literal

import msgspec

Pace = Literal["running", "long-running", "stalled", "stuck"]

Remedy = Literal["cancel", "kill", "restart"]
"""What is done about a turn that does not end: it is cancelled; its actor is killed,
and its code left behind; all of its agent is restarted."""

REMEDIES: tuple[Remedy, ...] = ("cancel", "kill", "restart")
"""Each is tried when the one before it has not helped (P4)."""


def next_remedy(tried: Remedy) -> Remedy | None:
    """Say what is tried next; None: there is nothing more."""
    left = REMEDIES[REMEDIES.index(tried) + 1 :]
    return left[0] if left else None


class Patience(msgspec.Struct, frozen=True):
    """When a turn counts as what; all in seconds, 0: never."""

    long_after: float = 0.0
    """Since it began."""

    stalled_after: float = 0.0
    """Since it moved last."""

    stuck_after: float = 0.0
    """Since it moved last."""


def pace_of(patience: Patience, lasted: float, silent: float) -> Pace:
    """Say how a turn gets on.

    Args:
        patience: the limits.
        lasted: seconds since it began.
        silent: seconds since it moved last.
    """
    if 0 < patience.stuck_after <= silent:
        return "stuck"
    if 0 < patience.stalled_after <= silent:
        return "stalled"
    return "long-running" if 0 < patience.long_after <= lasted else "running"


def look_after(patience: Patience, lasted: float, silent: float) -> float:
    """Say in how many seconds, at the earliest, it may count as something else.

    Returns:
        Infinity: never.
    """
    times = (
        (patience.long_after, lasted),
        (patience.stalled_after, silent),
        (patience.stuck_after, silent),
    )
    left = [after - gone for after, gone in times if after > gone]
    return min(left, default=math.inf)
