"""Which database a command works with: `--db`, or what the settings say.

The only module beside `connectors/app` that knows which engine keeps the rows.
"""

from __future__ import annotations

import importlib.util
import os
from collections.abc import Callable
from functools import cached_property, partial, wraps
from pathlib import Path
from urllib.parse import urlsplit

import click
import msgspec

from connectors.admin.settings import running_elsewhere
from connectors.commands import (
    config_option,
    find_settings,
    given_settings,
    tell_problems,
)
from connectors.commands.common.output import complain
from connectors.config.app import INSTALL, LIBRARY, AppConfig, StoreConfig, address_of
from connectors.config.shipped import state_folder
from connectors.files import receipt_key
from connectors.settings.load import load_app, overrides
from runtime.config.loader import LoadOptions, Settings, load
from runtime.config.tree import Node
from runtime.errors import SequenceConflictError, SettingsError, StoreUnavailableError
from runtime.sqlite.database import SqliteDatabase
from runtime.store.database import Database
from runtime.store.rows import Commit

VARIABLE = "env:"
SERVERS = ("postgresql://", "postgres://")

_db_option = click.option(
    "--db",
    metavar="PATH",
    type=click.Path(path_type=Path),
    help="The database. Without it: where the settings keep it.",
)


class DatabaseChoice(msgspec.Struct, dict=True):
    """The database that a command line names, and the settings beside it."""

    config: Path | None
    db: Path | None

    @cached_property
    def store(self) -> StoreConfig:
        """Which database it is; whether it is there is not looked at.

        Where the settings started a process that runs with another one, people are
        told.

        Raises:
            click.UsageError: neither a database nor settings are named or found.
            runtime.errors.SettingsError: the settings are wrong.
        """
        if self.db is not None:
            return StoreConfig(path=str(self.db))
        try:
            settings = find_settings(self.config, Path.cwd()).path
        except click.UsageError as error:
            raise click.UsageError(
                f"{error.message}. Or name the database: --db PATH"
            ) from error
        store = _store_of(settings)
        path = Path(store.path)
        if elsewhere := running_elsewhere(settings, path):
            other = elsewhere.database
            complain(
                f"{elsewhere.told}; restart it, or name its database: --db {other}"
            )
        return store

    @property
    def path(self) -> Path:
        """Where the database's file is, or what lies beside it; see `store`."""
        return Path(self.store.path)

    @cached_property
    def database(self) -> Database:
        """The database; see `path` for errors.

        Raises:
            runtime.errors.StoreUnavailableError: the settings' one is not made yet.
        """
        found = database_of_store(self.store)
        is_given = self.db is not None and self.config is None
        if not is_given and not found.exists():
            raise StoreUnavailableError(
                f"there is no database {found.name} yet: start `callboard serve`, or"
                " `callboard chat`, first"
            )
        return found

    def refuse_server(self, command: str) -> None:
        """Refuse a command that works on a SQLite file alone.

        Raises:
            click.UsageError: the database is on a server.
        """
        if self.store.kind != "sqlite":
            raise click.UsageError(
                f"{command} works on a SQLite file only: stop Callboard; callboard"
                f" store copy env:NAME FILE; callboard {command} with --db FILE; and"
                " copy it back into an empty database"
            )

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


def database_at(path: Path) -> Database:
    """Give the database in a file; it is not opened yet."""
    return SqliteDatabase(path)


def database_named(text: str) -> Database:
    """Give the database that somebody names on a command line.

    Args:
        text: the path of a SQLite file; `postgresql://…` without a password; or
            `env:NAME`, an environment variable that holds either.

    Raises:
        click.UsageError: it holds a password, or names no variable.
        runtime.errors.StoreError: the address cannot be read.
    """
    if text.startswith(VARIABLE):
        name = text.removeprefix(VARIABLE)
        if not (value := os.environ.get(name, "")):
            raise click.UsageError(f"the environment variable {name} is not set")
        if not value.startswith(SERVERS) and "=" not in value:
            return database_at(Path(value))
        return database_on_server(value)
    if not text.startswith(SERVERS):
        return database_at(Path(text))
    if has_password(text):
        raise click.UsageError(
            "a password in a command line can be read by others on this machine: put"
            " the address into an environment variable, and write env:NAME"
        )
    return database_on_server(text)


def has_password(address: str) -> bool:
    """Whether the address of a server holds a password."""
    try:
        parts = urlsplit(address)
    except ValueError:
        return True  # as far as we can see
    return parts.password is not None or "password=" in parts.query


def database_of(config: AppConfig) -> Database:
    """Give the database of an application."""
    return database_of_store(config.store)


def database_of_store(store: StoreConfig) -> Database:
    """Give the database that settings name.

    Raises:
        runtime.errors.SettingsError: the address of its server is not known here.
        runtime.errors.StoreRefusedError: it cannot be read.
    """
    if store.kind == "sqlite":
        return database_at(Path(store.path))
    return database_on_server(address_of(store))


def database_on_server(dsn: str) -> Database:
    """Give a database on a PostgreSQL server; nobody has connected yet.

    Raises:
        runtime.errors.StoreRefusedError: the address cannot be read.
    """
    if importlib.util.find_spec(LIBRARY) is None:
        raise SettingsError("the extra 'postgresql' is not installed", hint=INSTALL)
    # Why here: psycopg takes a tenth of a second to load, and most have a file.
    from runtime.postgresql.database import PostgresqlDatabase  # noqa: PLC0415
    from runtime.postgresql.server import PostgresqlServer  # noqa: PLC0415

    return PostgresqlDatabase(PostgresqlServer(dsn))


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


def _store_of(settings: Path) -> StoreConfig:
    """Read where the database is, and nothing else: no key needs to be there."""

    def only_store(top: Node) -> Node:
        table = {k: each for k, each in (top.table() or {}).items() if k == "store"}
        return Node(table, top.key, top.value)

    options = LoadOptions(
        start=partial(state_folder, environment=os.environ),
        overrides=overrides(os.environ, given_settings()),
        needs_secrets=False,
    )
    found = load(
        settings,
        OnlyStore,
        environment=os.environ,
        prepare=only_store,
        options=options,
    )
    return found.value.store
