"""Makes clients, models, prices and budgets of the settings, and makes them again.

Knows no kind of model but programs, which run in a sandbox that is made here, too:
`connectors/config/models.py` names the module of each other kind.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, cast

import msgspec
import trio

from actors.models.catalogue import Catalogue, PriceList
from actors.models.pool import ModelOffer
from connectors.admin.usage import as_budget, zone_of
from connectors.config.app import AppConfig
from connectors.config.models import (
    CliModelConfig,
    EmbeddedModelConfig,
    HttpModelConfig,
    ModelConfig,
    OllamaModelConfig,
    as_model,
    load_prices,
    merged,
    prices_of,
)
from connectors.config.shipped import shipped_prices
from connectors.models.program import DAY, CliModel, Folders, Prepare, ProgramPlace
from connectors.sandbox.plan import SandboxFigures, territory
from connectors.sandbox.runner import LateSandbox

if TYPE_CHECKING:
    from actors.ports import Model
    from runtime.clock import Clock
    from runtime.telemetry.metrics import Metrics


PROGRAM_MODELS = "connectors.models.program"
"""Imported only for settings that ask for it."""

ClientConfig = EmbeddedModelConfig | CliModelConfig | HttpModelConfig
MakeModel = Callable[
    [EmbeddedModelConfig | HttpModelConfig, Callable[[], float]], "Model"
]


def make_catalogue(config: AppConfig, clock: Clock, ground: ProgramPlace) -> Catalogue:
    """Make all that can be asked; nothing is connected before it is.

    Raises:
        runtime.errors.SettingsError: a script or the price list is wrong.
    """
    clients = {
        name: make_client(settings, clock, ground)
        for name, settings in accounts(config).items()
    }
    # Most of what prices cost is to read their list, and only these have any.
    is_sold = any(isinstance(each, HttpModelConfig) for each in config.models.values())
    given = config.ledger.prices or shipped_prices()
    price_list = load_prices(given) if is_sold else PriceList(version="")
    priced = {
        name: prices_of(model, price_list) for name, model in config.models.items()
    }
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


def make_client(config: ClientConfig, clock: Clock, ground: ProgramPlace) -> Model:
    """Make the client of one account."""
    if isinstance(config, CliModelConfig):
        program = cast(
            "type[CliModel]", importlib.import_module(PROGRAM_MODELS).CliModel
        )
        return program(config, ground)
    return make_plain_client(config, clock)


def make_plain_client(
    config: EmbeddedModelConfig | HttpModelConfig, clock: Clock
) -> Model:
    """Make the client of an account whose model is no program.

    Raises:
        runtime.errors.SettingsError: a script is wrong, or an address or a key.
    """
    module = importlib.import_module(config.module)
    return cast("MakeModel", module.make_model)(config, clock.wall)


def offer(name: str, model: ModelConfig) -> ModelOffer:
    """Say what the domain must know of a model."""
    if isinstance(model, CliModelConfig):
        return ModelOffer(
            name=name,
            model=model.model,
            accounts=(name,),
            fallbacks=model.fallbacks,
            takes_tools=False,
            has_own_tools=True,
        )
    if not isinstance(model, HttpModelConfig):
        return ModelOffer(name=name, model=name, accounts=(name,))
    return ModelOffer(
        name=name,
        model=model.model,
        accounts=model.accounts or (name,),
        fallbacks=model.fallbacks,
        larger=model.larger,
        takes_tools=model.takes_tools,
        takes_images=model.takes_images,
        window=window_of(model),
        extra_body=extra_body(model),
    )


def window_of(model: HttpModelConfig) -> int:
    """Tell how many tokens a model reads at most; 0: the settings do not say."""
    own = model.context_tokens if isinstance(model, OllamaModelConfig) else None
    return model.context_window or own or 0


def extra_body(model: HttpModelConfig) -> bytes:
    """Write what each request of a model has besides; empty: nothing."""
    found = merged(model.parameters(), model.extra_body)
    return msgspec.json.encode(found) if found else b""


RUN_SHELL = "run_shell"
"""Needs the sandbox, which is tried only if somebody has this tool."""

PROGRAMS = "connectors.app.program_servers"
"""Imported only for settings with models that are programs beside those."""

MakePrepare = Callable[[AppConfig, Path], "Prepare"]


@dataclass
class Stock:
    """Makes catalogues of settings."""

    clock: Clock
    sandbox: LateSandbox
    removed: Callable[[int], object]
    """Counts folders of programs' conversations that are removed."""

    current: Catalogue = field(default_factory=Catalogue)
    """The one in use: what the accounts' actor begins with if it has to begin anew."""

    def catalogue(self, config: AppConfig) -> Catalogue:
        """Make one.

        Raises:
            runtime.errors.SettingsError: a script or the price list is wrong.
            OSError: a file cannot be read.
        """
        return make_catalogue(config, self.clock, self._ground(config))

    def _ground(self, config: AppConfig) -> ProgramPlace:
        """Say where models run that are programs, and tell them of servers of tools."""
        folder = Path(config.workspace.path).absolute() / "cli"
        keep = config.workspace.keep_days * DAY
        folders = Folders(folder, keep, self.clock.wall, self.removed)
        ground = ProgramPlace(self.sandbox, folder, tidy=folders.tidy)
        if not (
            asks_programs(config) and (config.mcp_servers or config.skills.folders)
        ):
            return ground
        make = cast("MakePrepare", importlib.import_module(PROGRAMS).preparing)
        return msgspec.structs.replace(ground, prepare=make(config, folder))

    async def renew(self, config: AppConfig, private: Iterable[Path]) -> Catalogue:
        """Make one of changed settings, in a thread: it may load whole libraries.

        Args:
            private: files of settings and secrets; programs that are started from now
                on cannot reach them.

        Raises:
            connectors.sandbox.plan.SandboxError: a program is to be asked, and there
                is no sandbox; or programs could not be kept from a file.
            runtime.errors.SettingsError: a script or the price list is wrong.
            OSError: a file cannot be read.
        """
        await self.keep(config, private)
        return await trio.to_thread.run_sync(self.catalogue, config)

    async def keep(self, config: AppConfig, private: Iterable[Path]) -> None:
        """Keep programs that are started from now on from what they may not reach.

        Raises:
            connectors.sandbox.plan.SandboxError: as `renew`.
        """
        await self.sandbox.keep(territory(config, private), config.sandbox)
        if has_shell(config) or asks_programs(config):
            await self.sandbox.open()


async def open_stock(
    config: AppConfig, clock: Clock, metrics: Metrics, private: Iterable[Path]
) -> Stock:
    """Make the sandbox; try it at once if some program is sure to be started.

    Args:
        private: files of settings and secrets, which no program may reach.

    Raises:
        connectors.sandbox.plan.SandboxError: there is none, and there must be.
    """
    figures = SandboxFigures(metrics)
    sandbox = LateSandbox(config.sandbox, territory(config, private), figures.show)
    if has_shell(config) or asks_programs(config):
        await sandbox.open()
    removed = metrics.counter(
        "callboard_program_folders_removed",
        "Folders of programs' conversations that nobody had used for long.",
    )
    return Stock(clock, sandbox, removed.add)


def has_shell(config: AppConfig) -> bool:
    """Tell whether some agent may run command lines."""
    lists = (agent.tools for agent in config.agents.values())
    return any(RUN_SHELL in tools for tools in (*lists, config.hiring.tools))


def asks_programs(config: AppConfig) -> bool:
    """Tell whether some model is a program."""
    return bool(config.program_seconds)
