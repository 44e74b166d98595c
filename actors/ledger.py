"""What turns took: the ledger's words.

Spending is kept apart by model, account and price list, because each has its own
price and its own limits.
"""

from __future__ import annotations

import msgspec

from actors.messages import Usage


class Spent(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What the calls to one model on one account took."""

    provider: str
    """Which of `[models.<name>]`."""

    model: str
    """The provider's name of the model."""

    account: str
    """Which of `[accounts.<name>]`; the model's own name if it has none."""

    usage: Usage = Usage()
    calls: int = 1
    cost: float = 0.0
    """US dollars; 0 without prices."""

    prices: str = ""
    """Version of the price list; empty without prices."""

    is_reckoned: bool = False
    """Whether the tokens are an estimate: the call was cut off, or nobody told."""


def add_up(spent: tuple[Spent, ...], more: tuple[Spent, ...]) -> tuple[Spent, ...]:
    """Add up what was spent, apart by model, account, price list; newest last."""
    sums: dict[tuple[object, ...], Spent] = {}
    for each in (*spent, *more):
        key = (each.provider, each.model, each.account, each.prices, each.is_reckoned)
        known = sums.pop(key, None)
        sums[key] = each if known is None else _both(known, each)
    return tuple(sums.values())


def total(spent: tuple[Spent, ...]) -> Usage:
    """Add up the tokens of all."""
    usage = Usage()
    for each in spent:
        usage += each.usage
    return usage


def _both(one: Spent, other: Spent) -> Spent:
    return msgspec.structs.replace(
        one,
        usage=one.usage + other.usage,
        calls=one.calls + other.calls,
        cost=round(one.cost + other.cost, 8),
    )


class Run(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What one turn took; goes into the journal and the ledger."""

    provider: str
    """Which of `[models.<name>]` was asked last."""

    model: str
    """The provider's name of the model; ours if none was asked, or it was stopped."""

    attempt: int
    """Which start of this message's turn it was, from 1."""

    seconds: float
    usage: Usage = Usage()
    """Of all rounds, those of cut off attempts included."""

    rounds: int = 0
    """How often the model answered."""

    cost: float = 0.0
    """US dollars, of all calls; 0 without prices."""

    spent: tuple[Spent, ...] = ()
    """The same, apart by model and account."""
