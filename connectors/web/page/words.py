"""How times and numbers are written on the page; pure."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

UNITS = ((86_400, "d"), (3_600, "h"), (60, "min"))


def when(at: float) -> str:
    """Write a moment (Unix seconds) as UTC; 0: it has not been."""
    if at <= 0:
        return "never"
    return datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")


def iso(at: float) -> str:
    """Write a moment (Unix seconds) for programs: scripts show it in local time."""
    return datetime.fromtimestamp(at, UTC).isoformat(timespec="milliseconds")


def lasting(seconds: float) -> str:
    """Write how long something takes or took, in its two largest units."""
    left = max(0, int(seconds))
    said: list[str] = []
    for size, unit in UNITS:
        if left >= size and len(said) < 2:
            said.append(f"{left // size} {unit}")
            left %= size
    if not said:
        return f"{left} s"
    return " ".join(said)


def number(value: float) -> str:
    """Write a number with marks between thousands."""
    return f"{value:,.0f}" if float(value).is_integer() else f"{value:,.2f}"


FILTERS: dict[str, Callable[..., object]] = {
    "when": when,
    "iso": iso,
    "lasting": lasting,
    "number": number,
}
"""What templates may write behind `|`."""
