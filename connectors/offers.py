"""Makes what can be asked from the settings: clients, models, prices, budgets.

The only file beside `app.py` that knows concrete classes: a new kind of model is
registered here.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import TYPE_CHECKING, cast

from actors.catalogue import Catalogue
from actors.rules.accounts import Offer
from actors.rules.prices import OWN, PriceList, Prices
from connectors.model_config import (
    AnthropicModelConfig,
    CliModelConfig,
    GoogleModelConfig,
    HttpModelConfig,
    ModelConfig,
    OllamaModelConfig,
    OpenAIModelConfig,
    ScriptedModelConfig,
    as_model,
    kind_of,
)
from connectors.models.script import load_script
from connectors.models.scripted import ScriptedModel
from connectors.office.budget_settings import as_budget, zone_of
from connectors.shipped import shipped_prices
from runtime.config import load
from runtime.logs import EventLog

if TYPE_CHECKING:
    from pathlib import Path

    from actors.ports import Model
    from connectors.config import AppConfig
    from connectors.models.cli import CliModel
    from connectors.models.cli_ground import Ground
    from runtime.clock import Clock

LOG = EventLog("models")

HTTP_MODELS: dict[type[HttpModelConfig], str] = {
    OpenAIModelConfig: "connectors.models.openai",
    AnthropicModelConfig: "connectors.models.anthropic",
    GoogleModelConfig: "connectors.models.google",
    OllamaModelConfig: "connectors.models.ollama",
}
"""Imported only for settings that ask for them: their HTTP client takes a fifth of the
whole start, and the offline company needs none."""

PROGRAMS = "connectors.models.cli"
"""Likewise."""

ClientConfig = ScriptedModelConfig | CliModelConfig | HttpModelConfig
MakeModel = Callable[[HttpModelConfig, Callable[[], float]], "Model"]


def make_catalogue(config: AppConfig, clock: Clock, ground: Ground) -> Catalogue:
    """Make all that can be asked; nothing is connected before it is.

    Args:
        config: checked settings.
        clock: the time.
        ground: where models run that are programs.

    Raises:
        runtime.errors.SettingsError: a script or the price list is wrong.
    """
    clients = {
        name: make_client(settings, clock, ground)
        for name, settings in accounts(config).items()
    }
    price_list = load_prices(config.ledger.prices or shipped_prices())
    priced = {
        name: prices_of(model, price_list) for name, model in config.models.items()
    }
    warn_of_unpriced(config, priced)
    return Catalogue(
        offers={name: offer(name, model) for name, model in config.models.items()},
        clients=clients,
        preferences={
            name: account.preference for name, account in config.accounts.items()
        },
        prices=priced,
        budgets=tuple(map(as_budget, config.budgets)),
        zone=zone_of(config),
    )


def accounts(config: AppConfig) -> dict[str, ClientConfig]:
    """Give the settings of each account's client; a model may be its own account."""
    found: dict[str, ClientConfig] = {
        name: as_model(account) for name, account in config.accounts.items()
    }
    return found | {
        name: model
        for name, model in config.models.items()
        if not (isinstance(model, HttpModelConfig) and model.accounts)
    }


def make_client(config: ClientConfig, clock: Clock, ground: Ground) -> Model:
    """Make the client of one account."""
    if isinstance(config, CliModelConfig):
        program = cast("type[CliModel]", importlib.import_module(PROGRAMS).CliModel)
        return program(config, ground)
    return make_plain_client(config, clock)


def make_plain_client(
    config: ScriptedModelConfig | HttpModelConfig, clock: Clock
) -> Model:
    """Make the client of an account whose model is no program.

    Raises:
        runtime.errors.SettingsError: a script is wrong, or an address or a key.
    """
    if isinstance(config, ScriptedModelConfig):
        return ScriptedModel(load_script(config.script))
    module = importlib.import_module(HTTP_MODELS[type(config)])
    return cast("MakeModel", module.make_model)(config, clock.wall)


def offer(name: str, model: ModelConfig) -> Offer:
    """Say what the domain must know of a model."""
    if isinstance(model, CliModelConfig):
        return Offer(
            name=name,
            model=model.model,
            accounts=(name,),
            fallbacks=model.fallbacks,
            takes_tools=False,
        )
    if not isinstance(model, HttpModelConfig):
        return Offer(name=name, model=name, accounts=(name,))
    return Offer(
        name=name,
        model=model.model,
        accounts=model.accounts or (name,),
        fallbacks=model.fallbacks,
        larger=model.larger,
        takes_tools=model.takes_tools,
        takes_images=model.takes_images,
        window=window_of(model),
    )


def window_of(model: HttpModelConfig) -> int:
    """Tell how many tokens a model reads at most; 0: the settings do not say."""
    own = model.context_tokens if isinstance(model, OllamaModelConfig) else None
    return model.context_window or own or 0


def load_prices(path: Path) -> PriceList:
    """Read a price list.

    Raises:
        runtime.errors.SettingsError: it is none.
    """
    return load(path, PriceList, environment={}).value


def prices_of(model: ModelConfig, price_list: PriceList) -> Prices:
    """Find a model's prices: its own, or those of the list."""
    if not isinstance(model, HttpModelConfig):
        return Prices()
    listed = price_list.find(kind_of(model), model.model)
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


def warn_of_unpriced(config: AppConfig, priced: dict[str, Prices]) -> None:
    """Say which models a budget in dollars does not see."""
    in_dollars = any(
        each.soft_usd is not None or each.hard_usd is not None
        for each in config.budgets
    )
    for name, prices in priced.items():
        is_remote = isinstance(config.models[name], HttpModelConfig)
        if in_dollars and is_remote and not prices.version:
            LOG.warning(
                "model without a price: budgets in dollars do not see it", model=name
            )
