"""`callboard doctor`: look and ask around, and say what is wrong and what to do.

It looks at the database and the folders that are written to, at hooks, servers of
tools, webhooks and what is due; it changes nothing and starts none of them.
"""

from __future__ import annotations

import importlib.metadata
import os
import re
import shutil
import sys
from collections import Counter
from collections.abc import Iterable, Iterator
from functools import partial
from importlib.metadata import entry_points
from pathlib import Path
from tempfile import TemporaryDirectory

import click
import httpx

from actors.config.agents import AgentConfig
from actors.rules.text.cleaning import one_line
from connectors.admin.probes import (
    ABOUT,
    EVERYWHERE,
    TIMEOUT,
    Finding,
    Probe,
    State,
    ask_all,
    look_at_port,
    not_asked,
    told,
    who_listens,
)
from connectors.admin.schedule import all_rows
from connectors.admin.settings import EMPTIED, left_beside
from connectors.app.webhooks import way_to
from connectors.chat.platforms import platform_of, setting_of
from connectors.commands import config_option, find_settings, given_settings
from connectors.commands.common.database import (
    database_at,
    database_of,
    database_of_store,
)
from connectors.commands.common.output import json_option, say, say_json, wrapped
from connectors.commands.common.running import run_interruptible
from connectors.commands.doctor.models import model_probes
from connectors.config.app import AppConfig, ConnectorConfig, HttpConfig, StoreConfig
from connectors.config.checks import is_loopback
from connectors.config.hooks import HookConfig, WebhookOutConfig
from connectors.config.models import CliModelConfig
from connectors.config.tools import FetchConfig
from connectors.fetch.messages import (
    FetchError,
    FetchRefusedError,
    FetchRequest,
    FetchTooLargeError,
)
from connectors.hooks.runner import GROUP
from connectors.mcp.doctor import server_probes
from connectors.models.program import confinement_of
from connectors.sandbox.plan import SandboxError, Standing, territory
from connectors.sandbox.runner import FEATURES, Sandbox, open_sandbox
from connectors.settings.load import load_app
from runtime.config.loader import Settings
from runtime.disk import barrier, user
from runtime.errors import (
    CorruptError,
    SettingsError,
    StoreError,
    StoreRefusedError,
    StoreTooNewError,
)
from runtime.store.database import Database

LITTLE_SPACE = 200 * 1024 * 1024
"""Bytes free; the database's log alone may take a tenth of that between two looks."""

CURES: dict[type[StoreError], str] = {
    CorruptError: "stop Callboard, then callboard restore COPY",
    StoreTooNewError: "install the release that wrote it: a copy would be older",
    StoreRefusedError: "give another database under [store] in the settings",
}
"""What to do about a database that cannot be opened; of another error, its text says
all."""


def check_database(store: StoreConfig) -> Iterator[Finding]:
    """Check the engine's version, and that the database can be used."""
    path = Path(store.path)
    if store.kind == "postgresql":
        yield look_at_database_server(store)
        yield from check_folder("database", path.absolute().parent)
        return
    try:
        version = database_at(path).engine_version()
    except StoreRefusedError as error:
        yield Finding("wrong", "sqlite", str(error), "pip install --upgrade apsw")
    else:
        yield Finding("ok", "sqlite", version)
    yield look_at(path)
    yield from check_folder("database", path.absolute().parent)


def look_at_database_server(store: StoreConfig) -> Finding:
    """Say what stands in the database on a server."""
    try:
        database = database_of_store(store)
        version = database.engine_version()
        if not database.exists():
            text = f"{database.name} (version {version}) has no tables yet"
            return Finding("ok", "database", f"{text}; the next start makes them")
    except SettingsError as error:
        return Finding("wrong", "database", error.text, error.hint)
    except StoreError as error:
        return Finding("wrong", "database", str(error), cure_of(error))
    return opened(database, f"{database.name} (version {version})")


def look_at(path: Path) -> Finding:
    """Say what stands at the database's path."""
    database = database_at(path)
    try:
        size = path.stat().st_size if database.exists() else None
    except StoreError as error:
        cure = f"chown or chmod {path.parent}"
        return Finding("wrong", "database", str(error), cure)
    if size is None:
        return Finding("ok", "database", f"{path} is not there yet")
    if size == 0 and (beside := left_beside(path)):
        return Finding("wrong", "database", EMPTIED.format(path, beside[0]))
    if size == 0 and path.is_file():
        text = f"{path} is an empty file: the next start makes a new database of it"
        cure = "if it should hold something: callboard restore COPY, before that start"
        return Finding("warning", "database", text, cure)
    if not os.access(path, os.R_OK | os.W_OK):
        text = f"{path} cannot be read and written by {user()}"
        return Finding("wrong", "database", text, f"chown or chmod {path}")
    link = f", a link to {path.resolve()}" if path.is_symlink() else ""
    return opened(database, f"{database.name}{link}")


def opened(database: Database, name: str) -> Finding:
    """Open a database that is there, and say whose it is."""
    try:
        is_current = database.is_current()
        database.refuse_damaged()
    except StoreError as error:
        return Finding("wrong", "database", str(error), cure_of(error))
    words = " (an earlier release's; the next start brings it up to date)"
    return Finding("ok", "database", f"{name}{'' if is_current else words}")


def cure_of(error: StoreError) -> str:
    """Say what to do about a database that cannot be used."""
    return CURES.get(type(error), "")


def is_readable(database: Database) -> bool:
    """Whether there is a database of this release; `check_database` says why not."""
    try:
        return database.is_current()
    except StoreError:
        return False


def check_folder(about: str, folder: Path) -> Iterator[Finding]:
    """Check that there is, or can be made, a folder with room to write in."""
    try:
        place = nearest(folder)
    except OSError as error:
        text = f"{folder} cannot be looked at by {user()}: {error.strerror}"
        cure = f"change owner or permissions of {barrier(folder)}"
        yield Finding("wrong", about, text, cure)
        return
    if not place.is_dir() or not os.access(place, os.W_OK | os.X_OK):
        text = f"{place} is no folder that {user()} may write to"
        yield Finding("wrong", about, text, "change its owner, or the path in settings")
        return
    free = shutil.disk_usage(place).free
    text = f"{free // 1024**2:,} MiB free in {place}"
    if free < LITTLE_SPACE:
        yield Finding(
            "warning", about, text, "make room: a full disk stops all answers"
        )
    else:
        yield Finding("ok", about, text)


def nearest(folder: Path) -> Path:
    """Give a folder, or the nearest thing above it that is there.

    Raises:
        OSError: nobody may look.
    """
    place = folder
    while not place.exists():
        place = place.parent
    return place


FAILURES = "failures"
SHOWN_ID = 10
NO_PROGRAM = "install it, or give its whole path"


def webhook_probes(app: AppConfig) -> Iterator[Probe]:
    """Give a probe for each receiver of webhooks."""
    for name, webhook in app.webhooks.out.items():
        place = f"webhooks.out.{name}"
        yield Probe("webhook", place, partial(reach, place, webhook, app.fetch))


async def reach(
    place: str, webhook: WebhookOutConfig, fetch: FetchConfig
) -> list[Finding]:
    """Connect to a receiver as it would be sent to; nothing is told there."""
    fetcher = way_to(webhook, fetch)
    try:
        answer = await fetcher.fetch(FetchRequest(url=webhook.url))
    except FetchTooLargeError:
        return [Finding("ok", "webhook", f"{place}: reached")]
    except FetchRefusedError as error:
        cure = "private = true, if it is in your own network"
        return [Finding("wrong", "webhook", f"{place}: {error}", cure)]
    except FetchError as error:
        cure = "check url, and that the receiver runs; what is told waits meanwhile"
        return [Finding("wrong", "webhook", f"{place}: {error}", cure)]
    finally:
        await fetcher.aclose()
    words = f"{place}: reached (HTTP {answer.status} to a GET, which need not be taken)"
    return [Finding("ok", "webhook", words)]


def check_doors(app: AppConfig) -> Iterator[Finding]:
    """Say where webhooks come in, and whether others can reach that."""
    servers = [each for each in app.connectors.values() if isinstance(each, HttpConfig)]
    for name in app.webhooks.incoming:
        for http in servers:
            text = f"webhooks.in.{name}: POST {http.host}:{http.port}/webhooks/{name}"
            if is_loopback(http.host):
                cure = "others reach it only through a proxy on this machine"
                yield Finding("ok", "webhook", text, cure)
            else:
                yield Finding("ok", "webhook", text)


def check_reach(app: AppConfig) -> Iterator[Finding]:
    """Check that nodes on other machines can ask this one what runs here."""
    address, admin = app.nodes.address, app.admin
    if not app.nodes.name or is_loopback(address):
        return
    hosts = [
        each.host for each in app.connectors.values() if isinstance(each, HttpConfig)
    ]
    hosts = hosts if address else []
    if admin.is_on and (address or admin.host not in EVERYWHERE):
        hosts.append(admin.host)
    if all(map(is_loopback, hosts)):
        text = "nodes on other machines cannot ask this one what runs here"
        cure = "give [nodes] address, and [admin] a host that they reach, with api_key"
        yield Finding("warning", "nodes", text, cure)


def check_hooks(app: AppConfig) -> Iterator[Finding]:
    """Check that the code of hooks is there; it is not started."""
    for name, hook in app.hooks.items():
        if hook.disabled:
            yield Finding("ok", "hook", f"hooks.{name}: left out, as set")
        elif hook.python:
            yield check_function(name, hook)
        else:
            yield check_program("hook", f"hooks.{name}", hook.command[0], hook.folder)


def check_function(name: str, hook: HookConfig) -> Finding:
    """Check that an installed package has the entry point."""
    known = sorted(each.name for each in entry_points(group=GROUP))
    if hook.python in known:
        text = (
            f"hooks.{name}: {hook.python}; to try it: callboard hooks try {name} TEXT"
        )
        return Finding("ok", "hook", text)
    text = f"hooks.{name}: no installed package has {hook.python!r} in {GROUP}"
    return Finding("wrong", "hook", text, f"known: {', '.join(known) or 'none'}")


def check_servers(app: AppConfig) -> Iterator[Finding]:
    """Check that the programs are there that servers of tools are."""
    for name, server in app.mcp_servers.items():
        if server.command and not server.disabled:
            place = f"mcpServers.{name}"
            yield check_program("tools", place, server.command, server.cwd)


def check_program(about: str, place: str, program: str, folder: Path | None) -> Finding:
    """Check that a program is there and may be run; one with a path from its folder."""
    found: str | None
    if os.sep in program:
        path = (folder or Path()) / program
        found = str(path) if os.access(path, os.X_OK) and path.is_file() else None
    else:
        found = shutil.which(program)
    if found is None:
        text = f"{place}: there is no program {program!r} that may be run"
        return Finding("wrong", about, text, NO_PROGRAM)
    return Finding("ok", about, f"{place}: {found}")


def check_schedule(app: AppConfig) -> Iterator[Finding]:
    """Check that what is due is carried out, and what rests because it failed."""
    waiting = [
        name
        for name, agent in app.agents.items()
        if agent.heartbeat.chat or agent.autonomous.repeat
    ]
    if not app.scheduler.is_on:
        text, cure = "off: nothing that is due is carried out", ""
        if waiting or app.webhooks.incoming:
            cure = "set is_on = true under [scheduler], or take what needs it out"
        yield Finding("warning" if cure else "ok", "scheduler", text, cure)
        return
    who = ", ".join(waiting) or "nobody"
    yield Finding("ok", "scheduler", f"on; by the settings {who} has something to do")
    yield from check_appointments(database_of(app))


def check_appointments(database: Database) -> Iterator[Finding]:
    """Name appointments that rest because they failed too often."""
    if not is_readable(database):
        return
    try:
        with database.inspect() as store:
            rows = all_rows(store)
    except StoreError as error:
        yield Finding("wrong", "database", str(error), cure_of(error))
        return
    for row in rows:
        if row.it.paused == FAILURES:
            text = (
                f"{row.it.kind} {row.id[:SHOWN_ID]} of {row.it.agent} rests: it failed"
            )
            cure = f"callboard schedule history {row.id[:SHOWN_ID]}, then resume it"
            yield Finding("warning", "scheduler", text, cure)


def connector_probes(
    app: AppConfig, network: httpx.AsyncBaseTransport | None = None
) -> Iterator[Probe]:
    """Give the probes of all connectors, mostly one for each account.

    Args:
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
    yield from check_reach(app)
    yield from check_schedule(app)
    yield from check_extras()
