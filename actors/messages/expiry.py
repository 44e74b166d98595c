"""When a conversation expires. Pure.

`daily` ends conversations whose last message is older than the latest daily reset hour.
`idle` ends conversations without a message for some time. The reset hour is wall-clock
time of a time zone, also on days of 23 or 25 hours.
"""

from __future__ import annotations

from datetime import datetime, timedelta, tzinfo
from typing import Literal

import msgspec

Expiry = Literal["none", "daily", "idle", "both"]
Expired = Literal["daily", "idle"]


class ExpiryRule(msgspec.Struct, frozen=True):
    """When conversations expire."""

    expiry: Expiry = "none"
    reset_hour: int = 4
    """Daily reset, 0 to 23, wall-clock hour."""

    idle_after: float = 7_200.0
    """Seconds."""


def expired(
    last_at: float, now: float, rule: ExpiryRule, zone: tzinfo
) -> Expired | None:
    """Return why a conversation has expired; None if it has not.

    Args:
        last_at: Unix seconds of its last message; 0 without any.
        now: Unix seconds.
        zone: time zone of the reset hour.
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
    """Return the Unix time of the oldest last message that has not expired.

    None: conversations never expire.
    """
    ends: list[float] = []
    if rule.expiry in {"daily", "both"}:
        ends.append(last_reset(now, rule.reset_hour, zone))
    if rule.expiry in {"idle", "both"}:
        ends.append(now - rule.idle_after)
    return max(ends, default=None)


def last_reset(now: float, hour: int, zone: tzinfo) -> float:
    """Return the latest time, in Unix seconds up to `now`, at which this hour began."""
    wall = datetime.fromtimestamp(now, zone)
    today = wall.replace(hour=hour, minute=0, second=0, microsecond=0, fold=0)
    for days in (0, 1, 2):  # an hour that the day skips lies after that day's now
        at = (today - timedelta(days=days)).timestamp()
        if at <= now:
            return at
    raise AssertionError("unreachable: the day before yesterday is over")
