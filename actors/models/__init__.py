"""Which model is asked on which account, at what price, and within which budget.

Turns ask the actor in `accounts` before each call and tell it how the call ended; the
actor in `limiter` says when a turn may run at all. Begin with `pool` (which account is
next) and `budget` (what may still be spent); both are pure.
"""

__all__ = [
    "accounts",
    "budget",
    "catalogue",
    "classify",
    "cool_downs",
    "daily_tokens",
    "limiter",
    "messages",
    "pool",
    "spending",
]
