"""Decides when an event is sent again that a receiver did not take; pure."""

from __future__ import annotations

from typing import Literal

import msgspec

FACTOR = 4.0
"""Each wait is longer by this factor than the one before."""

SPREAD = 0.2
"""Largest part of a wait that is added at random, so that not all come at once."""

GONE = 410
BUSY = frozenset({408, 425, 429})


class WebhookRetryPolicy(msgspec.Struct, frozen=True, kw_only=True):
    """How often and how long one webhook is retried."""

    attempts: int = 10
    first_wait: float = 10.0
    """Seconds after the first failure."""

    longest_wait: float = 21_600.0
    """Most seconds between two tries, also if the receiver asks for more."""

    keep: float = 259_200.0
    """Seconds after which an unsent event is given up."""


class PostResult(msgspec.Struct, frozen=True):
    """A receiver's answer."""

    status: int
    """HTTP status; 0: no answer."""

    why: str = ""
    """Why there was no answer; holds no secrets."""

    retry_after: float = 0.0
    """Seconds that the receiver asks to wait; 0: it does not say."""


class NoticeDecision(msgspec.Struct, frozen=True):
    """What is done with an event after a try."""

    kind: Literal["sent", "later", "dead"]
    why: str = ""
    due_at: float = 0.0
    """Unix seconds of the next try, if it is sent later."""

    is_receivers: bool = False
    """Whether the receiver takes nothing now, so that others need not be tried."""


def judge(
    posted: PostResult,
    attempts: int,
    made_at: float,
    policy: WebhookRetryPolicy,
    *,
    now: float,
    chance: float,
) -> NoticeDecision:
    """Decide what is done with an event that was just tried.

    Args:
        attempts: tries so far, with this one.
        made_at: Unix seconds of the event.
        now: Unix seconds.
        chance: random number from 0 to 1, for the spread.
    """
    if 200 <= posted.status < 300:
        return NoticeDecision("sent")
    why = posted.why or f"HTTP {posted.status}"
    if posted.status == GONE:
        return NoticeDecision("dead", f"{why}: the receiver wants no more")
    if attempts >= policy.attempts:
        return NoticeDecision("dead", f"{why}, at the last of {attempts} tries")
    wait = wait_after(attempts, policy, chance)
    wait = max(wait, min(posted.retry_after, policy.longest_wait))
    if now + wait > made_at + policy.keep:
        return NoticeDecision("dead", f"{why}, and it is too old to be tried again")
    is_receivers = not posted.status or posted.status in BUSY or posted.status >= 500
    return NoticeDecision("later", why, now + wait, is_receivers)


def wait_after(failures: int, policy: WebhookRetryPolicy, chance: float) -> float:
    """Give the seconds to wait after this many failures in a row, from 1."""
    # Why a bound: a large power overflows.
    wait = policy.first_wait * FACTOR ** min(failures - 1, 30)
    return min(policy.longest_wait, wait) * (1.0 + SPREAD * chance)
