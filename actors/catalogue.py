"""All models and accounts of the settings, made ready to be asked.

Only `accounts.py` has it; a turn is told of it what one call needs.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, tzinfo
from typing import TYPE_CHECKING

from actors.rules.accounts import Offer
from actors.rules.prices import Prices

if TYPE_CHECKING:
    from collections.abc import Mapping

    from actors.messages import Usage
    from actors.ports import Model
    from actors.rules.accounts import Backend
    from actors.rules.budget import Budget

NO_PRICES = Prices()


@dataclass(frozen=True)
class Catalogue:
    """What can be asked, where, at which price, and how much of it."""

    offers: Mapping[str, Offer] = field(default_factory=dict[str, Offer])
    """By the name of the model in the settings."""

    clients: Mapping[str, Model] = field(default_factory=dict[str, "Model"])
    """By account: one pool of connections each, for all models it is asked for. Who
    has the catalogue closes them."""

    preferences: Mapping[str, int] = field(default_factory=dict[str, int])
    """By account, lower first."""

    prices: Mapping[str, Prices] = field(default_factory=dict[str, Prices])
    """By the name of the model in the settings."""

    budgets: tuple[Budget, ...] = ()
    zone: tzinfo = UTC
    """Where a budget's day begins at midnight."""

    def cost(self, model: str, usage: Usage) -> float:
        """Say what a use of a model costs, in US dollars."""
        return self.prices.get(model, NO_PRICES).cost(usage)

    def has(self, backend: Backend) -> bool:
        """Tell whether a model is to be had on an account."""
        offer = self.offers.get(backend.model)
        return offer is not None and backend.account in offer.accounts


def of_one(
    client: Model,
    name: str = "scripted",
    model: str = "scripted",
    prices: Prices = NO_PRICES,
) -> Catalogue:
    """Make the catalogue of a company with one model."""
    offer = Offer(name=name, model=model, accounts=(name,))
    return Catalogue(
        offers={name: offer}, clients={name: client}, prices={name: prices}
    )
