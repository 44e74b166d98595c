"""All models and accounts of the settings, as clients that can be asked.

Only `accounts.py` has it; a turn is told of it what one call needs.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, tzinfo
from typing import TYPE_CHECKING

from actors.models.pool import Backend, ModelOffer
from actors.models.prices import Prices

if TYPE_CHECKING:
    from collections.abc import Mapping

    from actors.messages.inbound import Usage
    from actors.models.budget import Budget
    from actors.ports import Model

NO_PRICES = Prices()


@dataclass(frozen=True)
class Catalogue:
    """All models, accounts, prices and budgets."""

    offers: Mapping[str, ModelOffer] = field(default_factory=dict[str, ModelOffer])
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
    offer = ModelOffer(name=name, model=model, accounts=(name,))
    return Catalogue(
        offers={name: offer}, clients={name: client}, prices={name: prices}
    )
