"""`callboard doctor`: look and ask around, and say what is wrong and what to do."""

from __future__ import annotations

import importlib.metadata
import os
import re
import shutil
import sys
from collections import Counter
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

import click

from actors.rules.text.cleaning import one_line
from connectors.admin.probes import (
    ABOUT,
    TIMEOUT,
    Finding,
    Probe,
    ask_all,
    look_at_port,
    not_asked,
    told,
    who_listens,
)
from connectors.chat.platforms import platform_of, setting_of
from connectors.commands import config_option, find_settings, given_settings
from connectors.commands.common.output import json_option, say, say_json, wrapped
from connectors.commands.common.running import run_interruptible
from connectors.commands.doctor.database import check_database, check_folder
from connectors.commands.doctor.models import model_probes
from connectors.commands.doctor.others import (
    check_doors,
    check_hooks,
    check_schedule,
    check_servers,
    webhook_probes,
)
from connectors.config.models import CliModelConfig
from connectors.mcp.doctor import server_probes
from connectors.models.program import confinement_of
from connectors.sandbox.plan import SandboxError, Standing, territory
from connectors.sandbox.runner import FEATURES, open_sandbox
from connectors.settings.load import load_app
from runtime.errors import SettingsError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    import httpx

    from actors.config.agents import AgentConfig
    from connectors.admin.probes import State
    from connectors.config.app import AppConfig, ConnectorConfig
    from connectors.sandbox.runner import Sandbox
    from runtime.config.loader import Settings


def connector_probes(
    app: AppConfig, network: httpx.AsyncBaseTransport | None = None
) -> Iterator[Probe]:
    """Give the probes of all connectors, mostly one for each account.

    Args:
        app: the settings.
        network: what carries the requests to platforms; None is the network.
    """
    for name, config in app.connectors.items():
        yield from probes_of(name, config, network)


def probes_of(
    name: str, config: ConnectorConfig, network: httpx.AsyncBaseTransport | None
) -> Iterable[Probe]:
    """Give the probes of one connector."""
    platform, place = platform_of(config), f"connectors.{name}"
    if platform.has_doctor:
        try:
            return tuple(platform.probes(name, config, network))
        except SettingsError as error:
            found = not_asked(ABOUT, place, error)
        except ModuleNotFoundError as error:
            text = f"{place}: there is no module {error.name!r}"
            cure = f"pip install 'callboard[{platform.extra}]'"
            found = Finding("wrong", ABOUT, text, cure)
    elif host := setting_of(config, "host", ""):
        look = partial(look_at_server, place, host, setting_of(config, "port", 0))
        return (Probe(ABOUT, place, look),)
    elif platform.is_server:
        text = f"{place}: there is no probe for its platform"
        found = Finding("unknown", ABOUT, text)
    else:
        found = Finding("ok", ABOUT, f"{place}: used by `callboard chat`")
    return (Probe(ABOUT, place, partial(known, found)),)


async def known(found: Finding) -> list[Finding]:
    """Say what is known without asking."""
    return [found]


async def look_at_server(place: str, host: str, port: int) -> list[Finding]:
    """See whether our port is free, or held by a Callboard that runs."""
    who = partial(who_listens, place, f"{host}:{port}")
    return await look_at_port(place, host, port, who)


PACKAGE = "callboard"
FOR_DEVELOPERS = frozenset({"dev", "peers"})
REQUIREMENT = re.compile(r"\s*([A-Za-z0-9._-]+).*;.*extra\s*==\s*['\"]([^'\"]+)['\"]")
TRIED_FOR = 30.0
"""Seconds that a program may take to say its version."""

MAX_SAID = 64 * 1024
LONGEST_SAID = 200
RUNS_PROGRAMS = frozenset({"run_shell"})


def refused(error: SettingsError, state: State) -> Iterator[Finding]:
    """Say what is wrong with the settings."""
    for problem in error.problems:
        yield Finding(state, "settings", str(problem), problem.hint or "")


async def check_programs(app: AppConfig, sandbox: Sandbox | None) -> list[Finding]:
    """Check that the programs are there that models are, and start in the sandbox."""
    found: list[Finding] = []
    for name, model in app.models.items():
        if isinstance(model, CliModelConfig):
            place, program = f"models.{name}", model.command[0]
            if shutil.which(program) is None:
                text = f"{place}: there is no program {program!r}"
                cure = "install it, or give its whole path in command"
                found.append(Finding("wrong", "program", text, cure))
            elif sandbox is not None:
                found.append(await try_program(place, model, sandbox))
    return found


async def try_program(place: str, model: CliModelConfig, sandbox: Sandbox) -> Finding:
    """Have a program say its version, confined as it is when it answers."""
    with TemporaryDirectory() as folder:
        try:
            ended = await sandbox.run(
                (*model.command, "--version"),
                confinement=confinement_of(model, Path(folder)),
                cwd=Path(folder),
                env=model.variables,
                timeout=TRIED_FOR,
                max_output=MAX_SAID,
            )
        except SandboxError as error:
            cure = "see the sandbox above"
            return Finding("wrong", "program", f"{place}: {error}", cure)
    said = one_line(ended.stdout.decode("utf-8", "replace"), LONGEST_SAID)
    if ended.returncode == 0:
        text = f"{place}: starts in the sandbox, and says {said or 'nothing'!r}"
        return Finding("ok", "program", text)
    said = one_line(ended.stderr.decode("utf-8", "replace"), LONGEST_SAID) or said
    how = "did not end" if ended.timed_out else f"ended with code {ended.returncode}"
    text = f"{place}: {model.command[0]} --version {how} in the sandbox: {said}"
    cure = "name what it has to read in `readable`, its own folder for example"
    return Finding("wrong", "program", text, cure)


def runs_programs(app: AppConfig, agent: AgentConfig) -> bool:
    """Whether an agent's tools, or its model, are programs."""
    is_program = isinstance(app.models[agent.model], CliModelConfig)
    return is_program or not RUNS_PROGRAMS.isdisjoint(agent.tools)


async def check_sandbox(app: AppConfig, files: Iterable[Path]) -> list[Finding]:
    """Try the sandbox, and say what is in force."""
    users = [name for name, agent in app.agents.items() if runs_programs(app, agent)]
    needed = f"needed by {', '.join(users)}" if users else "no agent runs programs"
    try:
        sandbox = await open_sandbox(app.sandbox, territory(app, files))
    except SandboxError as error:
        state: State = "wrong" if users else "warning"
        none = Finding(state, "sandbox", f"none ({needed})", str(error))
        return [none, *await check_programs(app, None)]
    programs = await check_programs(app, sandbox)
    held = in_force(sandbox.standing, needed)
    if not users and sandbox.standing.kind != "none":
        # Nothing is to be done about what nobody needs.
        held = (each for each in held if each.state == "ok")
    return [*held, *programs]


def in_force(standing: Standing, needed: str) -> Iterator[Finding]:
    """Say each protection, held or not."""
    if standing.kind == "none":
        cure = "set [sandbox] required = true, and mode to another than none"
        yield Finding("warning", "sandbox", f"none, as set ({needed})", cure)
    else:
        abi = f"Landlock ABI {standing.abi}"
        yield Finding("ok", "sandbox", f"{standing.kind}, {abi} ({needed})")
    for name, meaning in FEATURES.items():
        if standing.features[name]:
            yield Finding("ok", "sandbox", f"{name}: {meaning}")
    for reason in standing.missing:
        yield Finding("warning", "sandbox", reason)


def check_extras() -> Iterator[Finding]:
    """Say which optional packages are there."""
    wanted: dict[str, list[str]] = {}
    for line in importlib.metadata.requires(PACKAGE) or ():
        match = REQUIREMENT.match(line)
        if match and match[2] not in FOR_DEVELOPERS:
            wanted.setdefault(match[2], []).append(match[1])
    for extra, names in sorted(wanted.items()):
        missing = [name for name in names if not is_installed(name)]
        if missing:
            text = f"{extra}: without {', '.join(missing)}"
            cure = f"pip install '{PACKAGE}[{extra}]', if you want it"
            yield Finding("ok", "extra", text, cure)
        else:
            yield Finding("ok", "extra", f"{extra}: installed")


def is_installed(name: str) -> bool:
    """Whether a package is there."""
    try:
        importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return False
    return True


FAILED = 1


@click.command()
@config_option
@json_option
@click.option("--all", "is_whole", is_flag=True, help="Show each thing that is fine.")
@click.option("--offline", is_flag=True, help="Ask nobody over the network.")
@click.option(
    "--timeout",
    type=click.FloatRange(min=0, min_open=True, max=600),
    default=TIMEOUT,
    show_default=True,
    help="Seconds that each server has to answer; all are asked at the same time.",
)
def command(
    config: Path | None, *, as_json: bool, is_whole: bool, offline: bool, timeout: float
) -> int:
    """Check settings, machine, models, connectors, tool servers, hooks and webhooks.

    Changes nothing, sends nobody a message, and asks no model; tool servers are started
    once, unless --offline. What is fine is counted in the last line; --all shows it.
    Exit code 1 if something is wrong that would keep the agents from working.
    """
    found: list[Finding] = []
    for finding in findings(config, None if offline else timeout):
        found.append(finding)
        if not as_json and (is_whole or finding.state != "ok"):
            say(wrapped(told(finding), sys.stdout, indent=20))
    if as_json:
        say_json(found)
    elif not is_whole:
        say(wrapped(folded(found), sys.stdout, indent=9))
    return FAILED if any(each.state == "wrong" for each in found) else 0


def folded(found: Iterable[Finding]) -> str:
    """Count what is fine by what it is about: `ok  settings, connector (3)`."""
    counts = Counter(each.about for each in found if each.state == "ok")
    parts = [f"{about} ({n})" if n > 1 else about for about, n in counts.items()]
    fine = ", ".join(parts) or "nothing"
    return f"{'ok':<8} {fine}: callboard doctor --all shows each"


def findings(config: Path | None, seconds: float | None) -> Iterator[Finding]:
    """Look at one thing after the other, and then ask all who can be asked.

    Args:
        config: the settings file, if one was named.
        seconds: for each of those who are asked; None: nobody is.
    """
    chosen = find_settings(config, Path.cwd(), may_fall_back=True)
    if chosen.note:
        click.echo(chosen.note, err=True)
    path = chosen.path
    try:
        settings = load_app(
            path, os.environ, needs_secrets=False, given=given_settings()
        )
    except SettingsError as error:
        yield from refused(error, "wrong")
        yield from check_extras()
        return
    yield from looked_at(path, settings)
    app = settings.value
    if seconds is None:
        yield from check_servers(app)
    else:
        files = (*settings.files, *settings.secret_files)
        probes = (
            *model_probes(app),
            *connector_probes(app),
            *webhook_probes(app),
            *server_probes(app, files),
        )
        yield from run_interruptible(ask_all, probes, seconds)


def looked_at(path: Path, settings: Settings[AppConfig]) -> Iterator[Finding]:
    """Look at what right settings speak of."""
    app = settings.value
    agents = f"{len(app.agents)} agent{'' if len(app.agents) == 1 else 's'}"
    yield Finding("ok", "settings", f"{path} ({agents})")
    for warning in (*settings.warnings, *settings.unset):
        yield from refused(warning, "warning")
    yield from check_database(app.store)
    yield from check_folder("workspace", Path(app.workspace.path).absolute())
    files = (*settings.files, *settings.secret_files)
    yield from run_interruptible(check_sandbox, app, files)
    yield from check_hooks(app)
    yield from check_doors(app)
    yield from check_schedule(app)
    yield from check_extras()
