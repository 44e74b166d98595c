"""What the models of the settings cost: by themselves, or by a price list."""

from __future__ import annotations

from pathlib import Path

from actors.models.catalogue import OWN, PROGRAM, PriceList, Prices
from connectors.config.models import (
    CliModelConfig,
    HttpModelConfig,
    ModelConfig,
    kind_of,
)
from runtime.config.loader import load


def load_prices(path: Path) -> PriceList:
    """Read a price list.

    Raises:
        runtime.errors.SettingsError: it is none.
    """
    return load(path, PriceList, environment={}).value


def prices_of(model: ModelConfig, price_list: PriceList) -> Prices:
    """Find a model's prices: its own, or those of the list."""
    if isinstance(model, CliModelConfig):
        return Prices(version=PROGRAM)
    if not isinstance(model, HttpModelConfig):
        return Prices()
    listed = price_list.find(model.priced_as or kind_of(model), model.model)
    own = (model.input_price, model.output_price, model.cached_price)
    if all(each is None for each in own):
        return listed
    return Prices(
        input=listed.input if model.input_price is None else model.input_price,
        output=listed.output if model.output_price is None else model.output_price,
        cached=own_cached(model, listed),
        version=OWN,
    )


def own_cached(model: HttpModelConfig, listed: Prices) -> float | None:
    """Find the price of cached tokens; one of another price list would be a mixture."""
    if model.cached_price is not None:
        return model.cached_price
    return listed.cached if model.input_price is None else None
