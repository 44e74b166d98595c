"""Token usage and cost of turns, as kept in the ledger.

Spending is recorded per model, account and price list, because each has its own prices
and limits.
"""

from __future__ import annotations

import msgspec

from actors.messages.inbound import Usage


class Spent(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Usage and cost of the calls to one model on one account."""

    provider: str
    """Name of `[models.<name>]`."""

    model: str
    """The provider's name of the model."""

    account: str
    """Name of `[accounts.<name>]`; the model's name if it has no accounts."""

    usage: Usage = Usage()
    calls: int = 1
    cost: float = 0.0
    """US dollars; 0 without prices."""

    prices: str = ""
    """Version of the price list; empty without prices."""

    is_reckoned: bool = False
    """Whether the tokens are an estimate, because the call was interrupted or the
    provider reported none.
    """


def add_up(spent: tuple[Spent, ...], more: tuple[Spent, ...]) -> tuple[Spent, ...]:
    """Sum up spending per model, account and price list, newest last."""
    sums: dict[tuple[object, ...], Spent] = {}
    for each in (*spent, *more):
        key = (each.provider, each.model, each.account, each.prices, each.is_reckoned)
        known = sums.pop(key, None)
        sums[key] = each if known is None else _both(known, each)
    return tuple(sums.values())


def total(spent: tuple[Spent, ...]) -> Usage:
    """Return the tokens of all spending."""
    if not spent:
        return Usage()
    usage = spent[0].usage
    for each in spent[1:]:
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
    """Usage and cost of one turn; stored in the journal and the ledger."""

    provider: str
    """Name of the `[models.<name>]` that was called last."""

    model: str
    """The provider's name of the model; our name if none was called or the turn was
    stopped.
    """

    attempt: int
    """Number of the attempt, from 1."""

    seconds: float
    prepared: float = 0.0
    """Of these seconds, those until the prompt could be made."""

    usage: Usage = Usage()
    """Tokens of all rounds, those of interrupted attempts included."""

    rounds: int = 0
    """Number of model answers."""

    cost: float = 0.0
    """Cost of all calls in US dollars; 0 without prices."""

    spent: tuple[Spent, ...] = ()
    """The same per model and account."""
