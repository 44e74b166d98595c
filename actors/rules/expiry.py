"""When a conversation has had its time; pure.

`daily`: its last words were said before the hour at which every day begins anew
(F122). `idle`: nobody said anything for so long (F123). Hours are those of a time zone,
so on the two days a year that have 23 or 25 of them the hour is still the one on the
wall.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Literal

import msgspec

if TYPE_CHECKING:
    from datetime import tzinfo

Expiry = Literal["none", "daily", "idle", "both"]
Expired = Literal["daily", "idle"]


class ExpiryRule(msgspec.Struct, frozen=True):
    """When conversations end by themselves."""

    expiry: Expiry = "none"
    reset_hour: int = 4
    """0 to 23, on the wall."""

    idle_after: float = 7_200.0
    """Seconds."""


def expired(
    last_at: float, now: float, rule: ExpiryRule, zone: tzinfo
) -> Expired | None:
    """Say why a conversation is over; None: it goes on.

    Args:
        last_at: Unix seconds of its last words; 0: it has none.
        now: Unix seconds.
        rule: when conversations end.
        zone: whose hours count.
    """
    if last_at <= 0:
        return None
    is_daily = rule.expiry in {"daily", "both"}
    if is_daily and last_at < last_reset(now, rule.reset_hour, zone):
        return "daily"
    is_idle = rule.expiry in {"idle", "both"}
    if is_idle and now - last_at >= rule.idle_after:
        return "idle"
    return None


def cutoff(now: float, rule: ExpiryRule, zone: tzinfo) -> float | None:
    """Give the Unix seconds before which all last words are too long ago.

    None: no conversation ends by itself.
    """
    ends: list[float] = []
    if rule.expiry in {"daily", "both"}:
        ends.append(last_reset(now, rule.reset_hour, zone))
    if rule.expiry in {"idle", "both"}:
        ends.append(now - rule.idle_after)
    return max(ends, default=None)


def last_reset(now: float, hour: int, zone: tzinfo) -> float:
    """Give the last time, in Unix seconds, that it was this hour; `now` counts."""
    wall = datetime.fromtimestamp(now, zone)
    today = wall.replace(hour=hour, minute=0, second=0, microsecond=0, fold=0)
    for days in (0, 1, 2):  # an hour that a day leaves out lies after that day's now
        at = (today - timedelta(days=days)).timestamp()
        if at <= now:
            return at
    raise AssertionError("unreachable: the day before yesterday is over")
