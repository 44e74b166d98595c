"""Which database a command is about: `--db`, or what the settings say."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import click
import msgspec

from connectors.applied import running_elsewhere
from connectors.commands import config_option, find_settings
from connectors.commands.printing import complain
from connectors.config import StoreConfig
from connectors.settings import load_app
from runtime.config import load
from runtime.config_tree import Node

if TYPE_CHECKING:
    from collections.abc import Callable

    from connectors.config import AppConfig
    from runtime.config import Settings

Command = TypeVar("Command", bound="Callable[..., object]")

_db_option = click.option(
    "--db",
    metavar="PATH",
    type=click.Path(path_type=Path),
    help="The database. Without it: where the settings keep it.",
)
json_option = click.option("--json", "as_json", is_flag=True, help="For programs.")
"""Gives a command the parameter `as_json: bool`."""


def database_options(command: Command) -> Command:
    """Give a command the parameters `config` and `db`; pass both to `find_database`."""
    return config_option(_db_option(command))


def find_database(config: Path | None, db: Path | None) -> Path:
    """Decide which database is meant; whether it is there is not looked at.

    Where the settings started a process that runs with another one, people are told.

    Raises:
        click.UsageError: neither a database nor settings are named or found.
        runtime.errors.SettingsError: the settings are wrong.
    """
    if db is not None:
        return db
    try:
        settings = find_settings(config, Path.cwd()).path
    except click.UsageError as error:
        raise click.UsageError(
            f"{error.message}. Or name the database: --db PATH"
        ) from error
    path = _store_path(settings)
    if elsewhere := running_elsewhere(settings, path):
        other = elsewhere.database
        complain(f"{elsewhere.told}; restart it, or name its database: --db {other}")
    return path


class OnlyStore(msgspec.Struct, frozen=True):
    """All that is read of the settings to find the database."""

    store: StoreConfig = msgspec.field(default_factory=StoreConfig)


def _store_path(settings: Path) -> Path:
    """Read where the database is, and nothing else: no key needs to be there."""

    def only_store(top: Node) -> Node:
        table = {k: each for k, each in (top.table() or {}).items() if k == "store"}
        return Node(table, top.key, top.value)

    found = load(settings, OnlyStore, environment={}, prepare=only_store)
    return Path(found.value.store.path)


def settings_beside(config: Path | None, db: Path | None) -> Settings[AppConfig] | None:
    """Load the settings that belong to a database; None: only `--db` was given.

    Raises:
        runtime.errors.SettingsError: they are wrong.
    """
    return None if config is None and db is not None else _load(config)


def _load(config: Path | None) -> Settings[AppConfig]:
    return load_app(find_settings(config, Path.cwd()).path, os.environ)
