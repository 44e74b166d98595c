"""`callboard config`: check, show and describe the settings."""

from __future__ import annotations

import os
from datetime import UTC, datetime
from pathlib import Path

import click
import msgspec

from connectors.admin.applied_settings import (
    Applied,
    NotNotedError,
    differences,
    flat,
    read_applied,
    running_elsewhere,
)
from connectors.admin.settings import effective, origin_texts, toml_lines
from connectors.commands import (
    config_option,
    find_settings,
    given_settings,
    tell_problems,
)
from connectors.config.app import AppConfig
from connectors.config.models import ScriptedModelConfig
from connectors.files import receipt_key
from connectors.models.scripted.script import load_script
from connectors.settings.load import load_app
from connectors.settings.schema import settings_schema, table_lines
from runtime.config.loader import Settings
from runtime.errors import SettingsError
from runtime.secret import NOT_SET


@click.group()
def command() -> None:
    """Check, show or describe the settings."""


def load_found(config: Path | None) -> tuple[Path, Settings[AppConfig]]:
    """Load the file that is meant, and tell its warnings."""
    path = find_settings(config, Path.cwd()).path
    settings = load_app(path, os.environ, needs_secrets=False, given=given_settings())
    for warning in settings.warnings:
        tell_problems(warning, "warning: ")
    return path, settings


@command.command()
@config_option
def check(config: Path | None) -> None:
    """Say whether the settings are right, or everything that is wrong."""
    path, settings = load_found(config)
    for model in settings.value.models.values():
        if isinstance(model, ScriptedModelConfig):
            load_script(model.script)
    for each in settings.unset:
        tell_problems(each, "needed by serve and chat: ")
    click.echo(f"{path}: ok ({summary(settings.value)})")


@command.command()
@config_option
@click.argument("table", default="")
@click.option("--json", "as_json", is_flag=True, help="For programs.")
def show(config: Path | None, table: str, *, as_json: bool) -> None:
    """Show every setting in effect and where it comes from; secrets masked.

    With TABLE only what stands in it: agents, agents.anna, limits. If the settings are
    wrong, or have no such table: every key that it may have, with its default.
    """
    if table and as_json:
        raise click.UsageError("--json shows all settings; leave TABLE out")
    inside = [name for name in table.split(".") if name]
    try:
        _, settings = load_found(config)
    except SettingsError as error:
        lines = table_lines(inside) if inside else []
        if not lines:
            raise
        tell_problems(error)
        click.echo("\n".join(lines))
        raise click.exceptions.Exit(1) from error
    if inside:
        lines = list(toml_lines(settings, inside))
        if not lines:
            lines = table_lines(inside)
            if not lines:
                raise click.BadParameter(f"settings have no table {table!r}")
            click.echo(f"# The settings have no {table}. What it may hold, by default:")
        click.echo("\n".join(lines).lstrip("\n"))
    elif as_json:
        found = {
            "settings": effective(settings.value),
            "origins": origin_texts(settings),
            "files": [str(file) for file in settings.files],
        }
        click.echo(msgspec.json.format(msgspec.json.encode(found)))
    else:
        click.echo("\n".join(toml_lines(settings)))


@command.command()
def schema() -> None:
    """Write the JSON schema of the settings, for editors."""
    click.echo(msgspec.json.format(msgspec.json.encode(settings_schema())))


@command.command()
@config_option
def diff(config: Path | None) -> None:
    """Compare the saved settings with those of the process that runs; secrets masked.

    Ends with 1 if they differ. Lines with `-` are in use, those with `+` are saved.
    """
    path, settings = load_found(config)
    database = Path(settings.value.store.path)
    applied = read_running(path, database)
    saved = flat(settings.value, receipt_key.load(database))
    here = {name for name, text in saved.items() if NOT_SET not in text}
    in_use = {
        name: text
        for name, text in applied.settings.items()
        if name in here or name not in saved
    }
    lines = differences(in_use, {name: saved[name] for name in here})
    at = datetime.fromtimestamp(applied.at, UTC)
    click.echo(f"process {applied.process}, since {at:%Y-%m-%d %H:%M:%S} UTC; {path}")
    for line in lines:
        click.echo(line)
    for name, why in applied.waiting.items():
        click.echo(f"{name} waits for a restart: {why}")
    if applied.mistake:
        click.echo(f"what was saved last was not taken over: {applied.mistake}")
    if unset := saved.keys() - here:
        names = ", ".join(sorted(unset))
        click.echo(f"not compared, for they are not set here: {names}", err=True)
    if lines or applied.mistake:
        raise click.exceptions.Exit(1)
    click.echo("what is saved is in use")


def read_running(path: Path, database: Path) -> Applied:
    """Read what the process goes by that the settings at `path` tell of.

    Raises:
        click.ClickException: none runs with this database, or it has noted nothing.
    """
    try:
        applied = read_applied(database)
    except NotNotedError as error:
        raise click.ClickException(str(error)) from error
    if applied is not None:
        return applied
    nobody = f"nobody runs with the database {database}"
    if elsewhere := running_elsewhere(path, database):
        raise click.UsageError(f"{nobody}, but {elsewhere.told}: restart it")
    raise click.UsageError(
        f"{nobody}: start it with `callboard serve`. If it was started: perhaps the"
        " settings changed since"
    )


def summary(app: AppConfig) -> str:
    """Count what there is: `2 agents, 1 model, 2 connectors`."""
    counts = {
        "agent": len(app.agents),
        "model": len(app.models),
        "connector": len(app.connectors),
    }
    return ", ".join(
        f"{count} {noun}{'' if count == 1 else 's'}" for noun, count in counts.items()
    )
