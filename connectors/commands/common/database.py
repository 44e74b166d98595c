"""Which database a command works with: `--db`, or what the settings say.

The only module beside `connectors/app` that knows which engine keeps the rows.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property, partial, wraps
from pathlib import Path

import click
import msgspec

from connectors.admin.applied_settings import running_elsewhere
from connectors.commands import (
    config_option,
    find_settings,
    given_settings,
    tell_problems,
)
from connectors.commands.common.output import complain
from connectors.config.app import AppConfig, StoreConfig
from connectors.config.shipped import state_folder
from connectors.files import receipt_key
from connectors.settings.load import load_app, overrides
from runtime.config.loader import LoadOptions, Settings, load
from runtime.config.tree import Node
from runtime.errors import SequenceConflictError, StoreUnavailableError
from runtime.sqlite import rewriting
from runtime.sqlite.database import SqliteDatabase
from runtime.store.database import Database
from runtime.store.rows import AnyRow, Commit

_db_option = click.option(
    "--db",
    metavar="PATH",
    type=click.Path(path_type=Path),
    help="The database. Without it: where the settings keep it.",
)


@dataclass
class DatabaseChoice:
    """The database that a command line names, and the settings beside it."""

    config: Path | None
    db: Path | None

    @cached_property
    def path(self) -> Path:
        """Where the database is; whether it is there is not looked at.

        Where the settings started a process that runs with another one, people are
        told.

        Raises:
            click.UsageError: neither a database nor settings are named or found.
            runtime.errors.SettingsError: the settings are wrong.
        """
        if self.db is not None:
            return self.db
        try:
            settings = find_settings(self.config, Path.cwd()).path
        except click.UsageError as error:
            raise click.UsageError(
                f"{error.message}. Or name the database: --db PATH"
            ) from error
        path = _store_path(settings)
        if elsewhere := running_elsewhere(settings, path):
            other = elsewhere.database
            complain(
                f"{elsewhere.told}; restart it, or name its database: --db {other}"
            )
        return path

    @cached_property
    def database(self) -> Database:
        """The database; see `path` for errors.

        Raises:
            runtime.errors.StoreUnavailableError: the settings' one is not made yet.
        """
        found = database_at(self.path)
        is_given = self.db is not None and self.config is None
        if not is_given and not found.exists():
            raise StoreUnavailableError(
                f"there is no database {found.name} yet: start `callboard serve`, or"
                " `callboard chat`, first"
            )
        return found

    @cached_property
    def settings(self) -> Settings[AppConfig] | None:
        """The settings that belong to the database; None: only `--db` was given.

        Raises:
            runtime.errors.SettingsError: they are wrong.
        """
        if self.config is None and self.db is not None:
            return None
        path = find_settings(self.config, Path.cwd()).path
        return load_app(path, os.environ, needs_secrets=False, given=given_settings())

    def receipt_key(self) -> bytes:
        """Read what receipts of tool calls are signed with; empty: there is no key."""
        return receipt_key.load(self.path)


def database_options(command: Callable[..., object]) -> Callable[..., object]:
    """Give a command the parameter `choice: DatabaseChoice`."""

    @wraps(command)
    def with_choice(*, config: Path | None, db: Path | None, **given: object) -> object:
        return command(choice=DatabaseChoice(config, db), **given)

    return config_option(_db_option(with_choice))


def every_row(path: Path) -> Iterator[AnyRow]:
    """Give every row of a database as of one moment."""
    return rewriting.every_row(path)


def rewrite(path: Path, decide: rewriting.Decide) -> int:
    """Change or remove rows of a claimed database; see `runtime.sqlite.rewriting`."""
    return rewriting.rewrite(path, decide)


def database_at(path: Path) -> Database:
    """Give the database in a file; it is not opened yet."""
    return SqliteDatabase(path)


def database_of(config: AppConfig) -> Database:
    """Give the database of an application."""
    return database_at(Path(config.store.path))


def load_settings(
    config: Path | None, *, may_fall_back: bool = False
) -> Settings[AppConfig]:
    """Load the settings that a command looks at; their warnings go to standard error.

    Secrets need not be there: a command that needs one after all ends with the error.

    Args:
        config: the file, if one was named.
        may_fall_back: take the shipped offline settings if there are none.

    Raises:
        click.UsageError: no file is named, and none is where it usually is.
        runtime.errors.SettingsError: they are wrong.
    """
    path = find_settings(config, Path.cwd(), may_fall_back=may_fall_back).path
    settings = load_app(path, os.environ, needs_secrets=False, given=given_settings())
    for warning in settings.warnings:
        tell_problems(warning, "warning: ")
    return settings


def is_stored(
    database: Database,
    commit: Commit,
    conflict: str = "somebody wrote to the same rows at the same moment; try again",
) -> bool:
    """Store a change beside a running server; complain if another writer was first."""
    try:
        database.write((commit,))
    except SequenceConflictError:
        complain(conflict)
        return False
    return True


class OnlyStore(msgspec.Struct, frozen=True):
    """All that is read of the settings to find the database."""

    store: StoreConfig = msgspec.field(default_factory=StoreConfig)


def _store_path(settings: Path) -> Path:
    """Read where the database is, and nothing else: no key needs to be there."""

    def only_store(top: Node) -> Node:
        table = {k: each for k, each in (top.table() or {}).items() if k == "store"}
        return Node(table, top.key, top.value)

    options = LoadOptions(
        start=partial(state_folder, environment=os.environ),
        overrides=overrides(os.environ, given_settings()),
    )
    found = load(
        settings, OnlyStore, environment={}, prepare=only_store, options=options
    )
    return Path(found.value.store.path)
