"""`callboard doctor`: look at this machine, and say what is wrong and what to do."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

import click
import trio

from connectors.commands import config_option, find_settings
from connectors.commands.database import json_option
from connectors.commands.doctor_checks import (
    Finding,
    check_database,
    check_extras,
    check_folder,
    check_programs,
    check_sandbox,
    refused,
    told,
)
from connectors.commands.printing import say, say_json
from connectors.settings import load_app
from runtime.errors import SettingsError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from connectors.config import AppConfig
    from runtime.config import Settings

FAILED = 1


@click.command()
@config_option
@json_option
def command(config: Path | None, *, as_json: bool) -> int:
    """Check settings, database, sandbox and optional packages; change nothing.

    Exit code 1 if something is wrong that would keep the agents from working.
    """
    found: list[Finding] = []
    for finding in findings(config):
        found.append(finding)
        if not as_json:
            say(told(finding))
    if as_json:
        say_json(found)
    return FAILED if any(each.state == "wrong" for each in found) else 0


def findings(config: Path | None) -> Iterator[Finding]:
    """Look at one thing after the other."""
    path = find_settings(config, Path.cwd(), may_fall_back=True).path
    try:
        settings = load_app(path, os.environ)
    except SettingsError as error:
        yield from refused(error, "wrong")
        yield from check_extras()
        return
    yield from looked_at(path, settings)


def looked_at(path: Path, settings: Settings[AppConfig]) -> Iterator[Finding]:
    """Look at what right settings speak of."""
    app = settings.value
    agents = f"{len(app.agents)} agent{'' if len(app.agents) == 1 else 's'}"
    yield Finding("ok", "settings", f"{path} ({agents})")
    for warning in settings.warnings:
        yield from refused(warning, "warning")
    yield from check_database(Path(app.store.path))
    yield from check_folder("workspace", Path(app.workspace.path).absolute())
    yield from check_programs(app)
    files = (*settings.files, *settings.secret_files)
    yield from trio.run(check_sandbox, app, files)
    yield from check_extras()
