"""How long a session lasts; pure: told the time, in milliseconds.

A session ends so many minutes after it was last used, if it renews itself, and in any
case when it has lasted as long as it may.
"""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta, Struct, structs

MINUTE = 60_000


class Timeouts(Struct, frozen=True, rename="camel", kw_only=True):
    """What a client may ask for; the defaults are the official server's."""

    timeout_minutes: Annotated[float, Meta(ge=5, le=1440)] = 30.0
    auto_renew: bool = True
    max_duration_minutes: Annotated[float, Meta(gt=0, le=10_080)] = 720.0
    warning_threshold_minutes: Annotated[float, Meta(ge=0, le=1440)] = 5.0


class Span(Struct, frozen=True, kw_only=True):
    """From when to when a session lasts."""

    created_at: int
    used_at: int
    expires_at: int
    renewals: int = 0
    timeouts: Timeouts = Timeouts()

    def is_over(self, now: int) -> bool:
        """Whether it has ended."""
        return now >= self.expires_at

    def is_near_end(self, now: int) -> bool:
        """Whether it ends soon."""
        return self.expires_at - now <= self.timeouts.warning_threshold_minutes * MINUTE

    def used(self, now: int) -> Span:
        """Note that it is used; it is renewed if it renews itself."""
        noted = structs.replace(self, used_at=now)
        return noted.renewed(now) if self.timeouts.auto_renew else noted

    def renewed(self, now: int) -> Span:
        """Make it last anew, as far as it may; the same if it may not."""
        until = end_of(self.created_at, now, self.timeouts)
        if until <= self.expires_at:
            return self
        return structs.replace(self, expires_at=until, renewals=self.renewals + 1)

    def with_timeouts(self, timeouts: Timeouts, now: int) -> Span:
        """Make it last as other timeouts say, from now on."""
        until = end_of(self.created_at, now, timeouts)
        return structs.replace(self, timeouts=timeouts, expires_at=until)


def span(now: int, timeouts: Timeouts) -> Span:
    """Begin a session."""
    return Span(
        created_at=now,
        used_at=now,
        expires_at=end_of(now, now, timeouts),
        timeouts=timeouts,
    )


def end_of(created_at: int, now: int, timeouts: Timeouts) -> int:
    """Say when a session ends that is used now."""
    by_use = now + int(timeouts.timeout_minutes * MINUTE)
    at_most = created_at + int(timeouts.max_duration_minutes * MINUTE)
    return min(by_use, at_most)
