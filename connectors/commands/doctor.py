"""`callboard doctor`: look and ask around, and say what is wrong and what to do."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

import click

from connectors.commands import config_option, find_settings
from connectors.commands.database import json_option
from connectors.commands.doctor_checks import (
    Finding,
    check_extras,
    check_programs,
    check_sandbox,
    refused,
    told,
)
from connectors.commands.doctor_connectors import connector_probes
from connectors.commands.doctor_database import check_database, check_folder
from connectors.commands.doctor_models import model_probes
from connectors.commands.doctor_others import (
    check_doors,
    check_hooks,
    check_schedule,
    check_servers,
    webhook_probes,
)
from connectors.commands.doctor_probes import TIMEOUT, ask_all
from connectors.commands.interruptible import run_interruptible
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
@click.option("--offline", is_flag=True, help="Ask nobody over the network.")
@click.option(
    "--timeout",
    type=click.FloatRange(min=0, min_open=True, max=600),
    default=TIMEOUT,
    show_default=True,
    help="Seconds for each of those who are asked, all at the same time.",
)
def command(
    config: Path | None, *, as_json: bool, offline: bool, timeout: float
) -> int:
    """Check settings, machine, models, connectors, hooks and webhooks.

    Changes nothing, sends nobody a message, and asks no model. Exit code 1 if something
    is wrong that would keep the agents from working.
    """
    found: list[Finding] = []
    for finding in findings(config, None if offline else timeout):
        found.append(finding)
        if not as_json:
            say(told(finding))
    if as_json:
        say_json(found)
    return FAILED if any(each.state == "wrong" for each in found) else 0


def findings(config: Path | None, seconds: float | None) -> Iterator[Finding]:
    """Look at one thing after the other, and then ask all who can be asked.

    Args:
        config: the settings file, if one was named.
        seconds: for each of those who are asked; None: nobody is.
    """
    path = find_settings(config, Path.cwd(), may_fall_back=True).path
    try:
        settings = load_app(path, os.environ)
    except SettingsError as error:
        yield from refused(error, "wrong")
        yield from check_extras()
        return
    yield from looked_at(path, settings)
    if seconds is not None:
        app = settings.value
        probes = (*model_probes(app), *connector_probes(app), *webhook_probes(app))
        yield from run_interruptible(ask_all, probes, seconds)


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
    yield from run_interruptible(check_sandbox, app, files)
    yield from check_hooks(app)
    yield from check_servers(app)
    yield from check_doors(app)
    yield from check_schedule(app)
    yield from check_extras()
