"""All models and accounts of the settings, as clients that can be asked; and prices.

Only `accounts.py` has it; a turn is told of it what one call needs.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import UTC, tzinfo
from fnmatch import fnmatchcase
from typing import Annotated

import msgspec

from actors.messages.inbound import Usage
from actors.models.budget import Budget
from actors.models.pool import Backend, ModelOffer
from actors.ports import Model

OWN = "settings"
"""Stands for the version where the settings themselves name a model's prices."""

PROGRAM = "program"
"""Stands for the version where a program says itself what its answers cost."""


class Prices(msgspec.Struct, frozen=True):
    """What a model costs, in US dollars for a million tokens."""

    input: float = 0.0
    output: float = 0.0
    cached: float | None = None
    """For what the provider had in its cache; None: as `input`."""

    version: str = ""
    """Which price list says so; empty without one."""

    def cost(self, usage: Usage) -> float:
        """Say what a use of the model costs, in US dollars."""
        if usage.dollars:
            return round(usage.dollars, 8)
        cached = min(max(usage.cached_tokens, 0), usage.input_tokens)
        cached_price = self.input if self.cached is None else self.cached
        spent = (
            (usage.input_tokens - cached) * self.input
            + cached * cached_price
            + usage.output_tokens * self.output
        )
        return round(spent / 1_000_000, 8)


Price = Annotated[float, msgspec.Meta(ge=0)]


class PriceLine(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One line of a price list."""

    kind: str
    """Which wire format, as in `[models.<name>]`."""

    model: str
    """The provider's name of the model; `*` stands for anything."""

    input: Price
    output: Price
    cached: Price | None = None


class PriceList(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What models cost, as of one day; the first line that fits counts."""

    version: str
    """Written into the ledger beside each cost."""

    prices: tuple[PriceLine, ...] = ()

    def find(self, kind: str, model: str) -> Prices:
        """Give a model's prices; nothing is known of one that no line fits."""
        return find(self.prices, kind, model, self.version)


def find(lines: Iterable[PriceLine], kind: str, model: str, version: str) -> Prices:
    """Give the prices of the first line that fits."""
    for line in lines:
        if line.kind == kind and fnmatchcase(model, line.model):
            return Prices(line.input, line.output, line.cached, version)
    return Prices()


NO_PRICES = Prices()


class Catalogue(msgspec.Struct, frozen=True):
    """All models, accounts, prices and budgets."""

    offers: Mapping[str, ModelOffer] = msgspec.field(
        default_factory=dict[str, ModelOffer]
    )
    """By the name of the model in the settings."""

    clients: Mapping[str, Model] = msgspec.field(default_factory=dict[str, "Model"])
    """By account: one pool of connections each, for all models it is asked for. Who
    has the catalogue closes them."""

    preferences: Mapping[str, int] = msgspec.field(default_factory=dict[str, int])
    """By account, lower first."""

    prices: Mapping[str, Prices] = msgspec.field(default_factory=dict[str, Prices])
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
