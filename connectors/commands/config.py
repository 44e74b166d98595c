"""`callboard config`: check, show and describe the settings."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from difflib import get_close_matches
from pathlib import Path
from textwrap import wrap
from typing import Literal, NamedTuple

import click
import msgspec

from connectors.admin.settings import (
    DEFAULT,
    Applied,
    NotNotedError,
    Setting,
    differences,
    effective,
    flat,
    is_within,
    origin_texts,
    read_applied,
    running_elsewhere,
    setting_rows,
    toml_lines,
    written,
)
from connectors.app.reload.rules import TABLE
from connectors.chat.terminal.platform import with_terminal
from connectors.commands import (
    config_option,
    find_settings,
    given_settings,
    tell_problems,
)
from connectors.commands.common.output import (
    FAILED,
    json_option,
    rows_options,
    say_json,
    say_rows,
)
from connectors.config.app import AppConfig
from connectors.config.models import ScriptedModelConfig
from connectors.files import receipt_key
from connectors.models.scripted import load_script
from connectors.settings.load import load_app
from connectors.settings.schema import (
    Explained,
    common_texts,
    explained,
    level_of,
    settings_schema,
    table_lines,
    why_gone,
)
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
@json_option
def check(config: Path | None, *, as_json: bool) -> int:
    """Say whether the settings are right, or everything that is wrong.

    Exit code 1 if something is wrong.
    """
    if as_json:
        return check_as_json(config)
    path, settings = load_found(config)
    check_scripts(settings)
    for each in settings.unset:
        tell_problems(each, "needed by serve and chat: ")
    click.echo(f"{path}: ok ({summary(settings.value)})")
    return 0


def check_scripts(settings: Settings[AppConfig]) -> None:
    """Read the scripts of models.

    Raises:
        SettingsError: one is wrong.
    """
    for model in settings.value.models.values():
        if isinstance(model, ScriptedModelConfig):
            load_script(model.script)


class SettingsProblem(msgspec.Struct, frozen=True):
    """One thing that is wrong, or doubtful, with settings."""

    kind: Literal["wrong", "warning", "unset"]
    """`unset`: a secret that serve and chat need is not there."""

    file: str
    text: str
    """With line and column, if it stands somewhere."""

    hint: str


def check_as_json(config: Path | None) -> int:
    """Say for programs whether the settings are right."""
    path = find_settings(config, Path.cwd()).path
    problems: list[SettingsProblem] = []

    def add(kind: Literal["wrong", "warning", "unset"], error: SettingsError) -> None:
        problems.extend(
            SettingsProblem(kind, str(each.file or path), str(each), each.hint or "")
            for each in error.problems
        )

    try:
        settings = load_app(
            path, os.environ, needs_secrets=False, given=given_settings()
        )
        check_scripts(settings)
    except SettingsError as error:
        add("wrong", error)
    else:
        for warning in settings.warnings:
            add("warning", warning)
        for unset in settings.unset:
            add("unset", unset)
    is_right = not any(each.kind == "wrong" for each in problems)
    say_json({"ok": is_right, "file": str(path), "problems": problems})
    return 0 if is_right else FAILED


@command.command()
@config_option
@click.argument("table", default="")
@click.option("--changed", is_flag=True, help="Only what somebody has set.")
@json_option
def show(config: Path | None, table: str, *, changed: bool, as_json: bool) -> None:
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
    if as_json:
        say_settings(settings, only_changed=changed)
        return
    lines = list(toml_lines(settings, inside, only_changed=changed))
    if inside and not lines:
        known = table_lines(inside)
        if not known:
            raise click.BadParameter(f"settings have no table {table!r}")
        none = f"# The settings have no {table}. What it may hold, by default:"
        lines = ["# nothing is set here"] if changed else [none, *known]
    click.echo("\n".join(lines).lstrip("\n"))


def say_settings(settings: Settings[AppConfig], *, only_changed: bool) -> None:
    """Write settings and their origins for programs; changed ones by dotted names."""
    origins = origin_texts(settings)
    plain: Mapping[str, object] = effective(settings.value)
    if only_changed:
        origins = {key: each for key, each in origins.items() if each != DEFAULT}
        every = written(settings.value)
        plain = {key: every[key] for key in every if key in origins}
    found = {
        "settings": plain,
        "origins": origins,
        "files": [str(file) for file in settings.files],
    }
    click.echo(msgspec.json.format(msgspec.json.encode(found)))


@command.command()
@config_option
@click.argument("key", default="")
@rows_options
def explain(config: Path | None, key: str, *, as_json: bool) -> None:
    """Say what a setting does, what may be written, and where it is set, since when.

    KEY is its name with those of its tables: limits.turn_timeout, agents.anna.model;
    or a table, whose keys are named then. Without KEY: the few settings that most
    companies need. Works without settings, too.
    """
    if not key:
        rows = [(name.replace(".x", ".NAME"), words) for name, words in common_texts()]
        if as_json:
            say_json([{"key": name, "text": words} for name, words in rows])
        else:
            say_rows(rows, ("SETTING", "WHAT IT DOES"), tuple, "")
        return
    names = [name for name in key.split(".") if name]
    found = explained(names) if names else []
    if names and not found and (why := why_gone(names)):
        if as_json:
            say_json([{"key": key, "gone": why}])
        else:
            click.echo(f"{key} is gone, and has no effect where it stands: {why}")
        return
    if not found:
        near = get_close_matches(key, known_keys(names[:-1]), n=3)
        hint = f". Did you mean {' or '.join(near)}?" if near else ""
        raise click.BadParameter(f"there is no setting {key!r}{hint}", param_hint="KEY")
    here = setting_here(config, tuple(names))
    own = [each for each in found if each.kind == here.kind] if here.kind else found
    if as_json:
        say_json([facts_of(key, each, names, here) for each in own or found])
        return
    for each in own or found:
        click.echo("\n".join(told_of(key, each, names, here)))


def known_keys(tables: list[str]) -> list[str]:
    """Name the keys that a table has."""
    return [
        ".".join((*tables, name)) for each in explained(tables) for name in each.keys
    ]


class Here(NamedTuple):
    """A setting as it is in the settings that are found."""

    kind: str = ""
    """Of the table that it is in; empty: of none, or there are no settings."""

    setting: Setting | None = None
    """None: there are no settings, or it is a table."""

    at: float = 0.0
    """Unix seconds since when it is so; 0: not known."""

    in_use: bool | None = None
    """Whether the process that runs goes by it; None: none runs, or nobody knows."""

    since: str = ""
    """Since when, in words; empty: not known."""


def setting_here(config: Path | None, way: tuple[str, ...]) -> Here:
    """Find a setting as it is in effect, and the kind of the table that it is in."""
    try:
        _, settings = load_found(config)
    except (click.UsageError, SettingsError):
        return Here()
    rows = {each.way: each for each in setting_rows(settings.value, settings.origins)}
    kind = rows.get((*way[:-1], "kind"))
    named = "" if kind is None else str(kind.text).strip('"')
    return dated(Here(named, rows.get(way)), settings, way)


def dated(here: Here, settings: Settings[AppConfig], way: tuple[str, ...]) -> Here:
    """Add since when a setting is so: in the process that runs, else in its file."""
    key, database = ".".join(way), Path(settings.value.store.path)
    try:
        running = read_applied(database, settings.value.nodes.name)
        saved = flat(with_terminal(settings.value), receipt_key.load(database))
    except (NotNotedError, OSError, SettingsError):
        return here
    if running is None:
        origin = settings.origins.get(way)
        file = Path(origin.file) if origin is not None and origin.line else None
        if file is None or not file.is_file():
            return here
        at = file.stat().st_mtime
        return here._replace(at=at, since=f"{utc(at)}, when {file.name} was written")
    at = running.since_of(key)
    own = [x for x in saved.keys() | running.settings.keys() if is_within(x, key)]
    if not own:
        return here
    differs = [
        name
        for name in own
        if saved.get(name) != running.settings.get(name)
        and NOT_SET not in saved.get(name, "")
    ]
    who = f"process {running.process}"
    if not differs:
        since = f"{utc(at)}, in {who}" if at else ""
        return here._replace(at=at, in_use=True, since=since)
    goes_by = running.settings.get(key, "something else")
    since = f"not in use: {who} goes by {goes_by}; see callboard config diff"
    return here._replace(in_use=False, since=since)


def utc(at: float) -> str:
    """Write a time of Unix seconds."""
    return f"{datetime.fromtimestamp(at, UTC):%Y-%m-%d %H:%M:%S} UTC"


def told_of(key: str, it: Explained, names: list[str], here: Here) -> Iterator[str]:
    """Write what can be said of one setting, for people."""
    yield f"{key}  (kind = {it.kind})" if it.kind else key
    for line in wrap(it.words, 76):
        yield f"  {line}"
    if it.keys:
        yield f"  keys:     {', '.join(it.keys)}"
    else:
        yield f"  takes:    {it.type}"
        yield f"  default:  {it.default or 'none'}"
    if here.setting is not None:
        value = "not set" if here.setting.text is None else here.setting.text
        yield f"  here:     {value}  ({here.setting.origin})"
    if here.since:
        yield f"  since:    {here.since}"
    yield f"  changes:  {takes_effect(names)}"
    yield f"  level:    {level_of(names)}"
    if not it.keys and len(names) > 1:
        table = ".".join(names[:-1])
        is_list = any(each.type.startswith("list") for each in explained(names[:-1]))
        way = f"[[{table}]]" if is_list else f"[{table}]"
        beside = "" if is_list else f", or --set {key}=…"
        yield f"  to set:   {way} {names[-1]} = …{beside}"


def facts_of(
    key: str, it: Explained, names: list[str], here: Here
) -> dict[str, object]:
    """Give what can be said of one setting, for programs."""
    return {
        "key": key,
        "kind": it.kind,
        "text": it.words,
        "keys": it.keys,
        "type": it.type,
        "default": it.default,
        "value": None if here.setting is None else here.setting.text,
        "origin": None if here.setting is None else here.setting.origin,
        "since": here.at or None,
        "in_use": here.in_use,
        "changes": takes_effect(names),
        "level": level_of(names),
    }


def takes_effect(names: list[str]) -> str:
    """Say when a change of a setting is in use."""
    for place in (".".join(names[:2]), names[0]):
        if place in TABLE:
            why = TABLE[place].cold
            return f"with the next start: {why}" if why else "within three seconds"
    return "with the next start"


@command.command()
def schema() -> None:
    """Write the JSON schema of the settings, for editors."""
    click.echo(msgspec.json.format(msgspec.json.encode(settings_schema())))


@command.command()
@config_option
@json_option
def diff(config: Path | None, *, as_json: bool) -> None:
    """Compare the saved settings with those of the process that runs; secrets masked.

    Ends with 1 if they differ. Lines with `-` are in use, those with `+` are saved.
    """
    path, settings = load_found(config)
    database = Path(settings.value.store.path)
    applied = read_running(path, database, settings.value.nodes.name)
    # What runs has a terminal in any case.
    saved = flat(with_terminal(settings.value), receipt_key.load(database))
    here = {name for name, text in saved.items() if NOT_SET not in text}
    in_use = {
        name: text
        for name, text in applied.settings.items()
        if name in here or name not in saved
    }
    lines = differences(in_use, {name: saved[name] for name in here})
    is_same = not lines and not applied.mistake
    if as_json:
        say_json(
            {
                "process": applied.process,
                "since": applied.at,
                "differences": lines,
                "waiting": applied.waiting,
                "mistake": applied.mistake,
                "not_compared": sorted(saved.keys() - here),
            }
        )
        raise click.exceptions.Exit(0 if is_same else FAILED)
    click.echo(f"process {applied.process}, since {utc(applied.at)}; {path}")
    for line in lines:
        click.echo(line)
    for name, why in applied.waiting.items():
        click.echo(f"{name} waits for a restart: {why}")
    if applied.mistake:
        click.echo(f"what was saved last was not taken over: {applied.mistake}")
    if unset := saved.keys() - here:
        names = ", ".join(sorted(unset))
        click.echo(f"not compared, for they are not set here: {names}", err=True)
    if not is_same:
        raise click.exceptions.Exit(FAILED)
    click.echo("what is saved is in use")


def read_running(path: Path, database: Path, node: str) -> Applied:
    """Read what the process goes by that the settings at `path` tell of.

    Raises:
        click.ClickException: none runs with this database, or it has noted nothing.
    """
    try:
        applied = read_applied(database, node)
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
