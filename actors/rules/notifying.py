"""When an event is sent again that a receiver did not take, and when no more; pure."""

from __future__ import annotations

from typing import Literal

import msgspec

FACTOR = 4.0
"""By which each wait is longer than the one before."""

SPREAD = 0.2
"""Most of a wait that is added by chance, so that not all come again at once."""

GONE = 410
BUSY = frozenset({408, 425, 429})


class Policy(msgspec.Struct, frozen=True, kw_only=True):
    """How patient one webhook is."""

    attempts: int = 10
    first_wait: float = 10.0
    """Seconds after the first failure."""

    longest_wait: float = 21_600.0
    """Most seconds between two tries, also of what the receiver asks for."""

    keep: float = 259_200.0
    """Seconds after which an event is given up that was not sent."""


class Posted(msgspec.Struct, frozen=True):
    """What a receiver answered."""

    status: int
    """Of HTTP; 0: no answer came."""

    why: str = ""
    """Why none came; without secrets."""

    retry_after: float = 0.0
    """Seconds that it asks to wait; 0: it does not say."""


class Verdict(msgspec.Struct, frozen=True):
    """What becomes of an event."""

    kind: Literal["sent", "later", "dead"]
    why: str = ""
    due_at: float = 0.0
    """Unix seconds of the next try, of what is sent later."""

    is_receivers: bool = False
    """Whether the receiver takes nothing now, and others need not be tried either."""


def judge(
    posted: Posted,
    attempts: int,
    made_at: float,
    policy: Policy,
    *,
    now: float,
    chance: float,
) -> Verdict:
    """Decide what becomes of an event that was just tried.

    Args:
        posted: what came of it.
        attempts: tries, this one included.
        made_at: Unix seconds at which it happened.
        policy: how patient the webhook is.
        now: Unix seconds.
        chance: from 0 to 1; decides by how much the wait is stretched.
    """
    if 200 <= posted.status < 300:
        return Verdict("sent")
    why = posted.why or f"HTTP {posted.status}"
    if posted.status == GONE:
        return Verdict("dead", f"{why}: the receiver wants no more")
    if attempts >= policy.attempts:
        return Verdict("dead", f"{why}, at the last of {attempts} tries")
    wait = wait_after(attempts, policy, chance)
    wait = max(wait, min(posted.retry_after, policy.longest_wait))
    if now + wait > made_at + policy.keep:
        return Verdict("dead", f"{why}, and it is too old to be tried again")
    is_receivers = not posted.status or posted.status in BUSY or posted.status >= 500
    return Verdict("later", why, now + wait, is_receivers)


def wait_after(failures: int, policy: Policy, chance: float) -> float:
    """Give the seconds to wait after so many failures in a row, at least 1."""
    # Why a bound: a power of a large number is none.
    wait = policy.first_wait * FACTOR ** min(failures - 1, 30)
    return min(policy.longest_wait, wait) * (1.0 + SPREAD * chance)
