"""Makes what can be asked, at the start and whenever the settings have changed.

Some models are programs, so the sandbox they run in is made here, too.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, cast

import trio

from actors.catalogue import Catalogue
from connectors.config import AppConfig
from connectors.model_config import CliModelConfig
from connectors.models.cli_folders import DAY, Folders
from connectors.models.cli_ground import Ground
from connectors.offers import make_catalogue
from connectors.sandbox.figures import SandboxFigures
from connectors.sandbox.kept import territory
from connectors.sandbox.late import LateSandbox

if TYPE_CHECKING:
    from collections.abc import Iterable

    from connectors.models.cli_ground import Prepare
    from runtime.clock import Clock
    from runtime.metrics import Metrics

RUN_SHELL = "run_shell"
"""Needs the sandbox, which is tried only if somebody has this tool."""

PROGRAMS = "connectors.program_servers"
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

    def _ground(self, config: AppConfig) -> Ground:
        """Say where models run that are programs, and tell them of servers of tools."""
        folder = Path(config.workspace.path).absolute() / "cli"
        keep = config.workspace.keep_days * DAY
        folders = Folders(folder, keep, self.clock.wall, self.removed)
        ground = Ground(self.sandbox, folder, tidy=folders.tidy)
        if not (
            asks_programs(config) and (config.mcp_servers or config.skills.folders)
        ):
            return ground
        make = cast("MakePrepare", importlib.import_module(PROGRAMS).preparing)
        return replace(ground, prepare=make(config, folder))

    async def renew(self, config: AppConfig, private: Iterable[Path]) -> Catalogue:
        """Make one of changed settings, in a thread: it may load whole libraries.

        Args:
            config: the settings.
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
        config: checked settings.
        clock: the time.
        metrics: show what of the sandbox is in force.
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
    return any(isinstance(each, CliModelConfig) for each in config.models.values())
