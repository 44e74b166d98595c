"""How times are written for people and for programs."""

from __future__ import annotations

import math
from datetime import UTC, datetime
from typing import Literal

Precision = Literal["seconds", "milliseconds"]

NONE = "-"
"""Stands for what there is not."""

UNITS = (("d", 86_400), ("h", 3600), ("m", 60), ("s", 1))


def when(at: float, precision: Precision = "seconds") -> str:
    """Write Unix seconds in ISO 8601, local with offset; 0 is `-`.

    What has no date, as a time in a damaged row may be, is written as the number it is.
    """
    if not at:
        return NONE
    try:
        there = datetime.fromtimestamp(at, UTC).astimezone()
    except (ValueError, OverflowError, OSError):
        return f"{at:g} s"
    return there.isoformat(timespec=precision)


def moment(at: float) -> str | None:
    """Write Unix seconds for programs; 0 is null."""
    return when(at, "milliseconds") if at else None


def lasting(seconds: float) -> str:
    """Write roughly how long: `3d`, `2h`, `45s`."""
    for unit, length in UNITS:
        if length <= seconds < math.inf:
            return f"{int(seconds // length)}{unit}"
    return "0s"
