"""Puts hooks together: those of the settings, and those that skills bring along."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import cast

from actors.hooks.book import HookBook
from connectors.config.app import AppConfig
from connectors.config.hooks import HookConfig
from connectors.sandbox.runner import Sandbox
from runtime.clock import Clock
from runtime.errors import SettingsError
from runtime.store.port import Store
from runtime.supervision.child import ChildSpec
from runtime.telemetry.logs import EventLog
from runtime.telemetry.metrics import Metrics

LOG = EventLog("hooks")

INTERCEPTORS = "connectors.skills.checks"
"""Imported only for settings with skills that may have messages for themselves."""

TREE = "connectors.hooks.tree"
"""Imported only for settings with hooks."""

BookOf = Callable[["Mapping[str, HookConfig]"], HookBook]
Branches = Callable[..., "tuple[ChildSpec, ...]"]

AddHooks = Callable[
    ["AppConfig"], "tuple[Mapping[str, HookConfig], Iterable[SettingsError]]"
]


def all_hooks(config: AppConfig) -> Mapping[str, HookConfig]:
    """Give the hooks of the settings, and those that skills bring along."""
    if not config.skills.interceptors:
        return config.hooks
    add = cast("AddHooks", importlib.import_module(INTERCEPTORS).with_interceptors)
    hooks, problems = add(config)
    for problem in problems:
        LOG.warning("interceptor of a skill left out", why=str(problem))
    return hooks


class Hooking:
    """How hooks are started."""

    def __init__(self, config: AppConfig, sandbox: Sandbox) -> None:
        self.hooks = all_hooks(config)
        """All there are, by name."""

        self._workspace = Path(config.workspace.path).absolute()
        self._sandbox = sandbox

    @property
    def book(self) -> HookBook:
        """Say who is asked about what."""
        if not self.hooks:
            return HookBook()
        made = cast("BookOf", importlib.import_module(TREE).book_of)
        return made(self.hooks)

    def branches(
        self, metrics: Metrics, store: Store, clock: Clock
    ) -> tuple[ChildSpec, ...]:
        """Say how the actors of all hooks are started; nothing if there are none."""
        if not self.hooks:
            return ()
        made = cast("Branches", importlib.import_module(TREE).branches)
        return made(self.hooks, self._sandbox, self._workspace, metrics, store, clock)
