"""What `callboard doctor` looks at; changes nothing but files of its own trial."""

from __future__ import annotations

import importlib.metadata
import re
import shutil
from typing import TYPE_CHECKING, Literal

import msgspec

from connectors.model_config import CliModelConfig
from connectors.sandbox.choice import FEATURES, open_sandbox
from connectors.sandbox.kept import territory
from connectors.sandbox.plan import SandboxError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

    from actors.config import AgentConfig
    from connectors.config import AppConfig
    from connectors.sandbox.plan import Standing
    from runtime.errors import SettingsError

State = Literal["ok", "unknown", "warning", "wrong"]
"""`unknown`: nobody could look, or has looked."""

PACKAGE = "callboard"
FOR_DEVELOPERS = frozenset({"dev", "peers"})
REQUIREMENT = re.compile(r"\s*([A-Za-z0-9._-]+).*;.*extra\s*==\s*['\"]([^'\"]+)['\"]")
RUNS_PROGRAMS = frozenset({"run_shell"})


class Finding(msgspec.Struct, frozen=True):
    """One thing that was looked at."""

    state: State
    about: str
    """`settings`, `database`, ...: the first word of its line."""

    text: str
    cure: str = ""
    """What to do about it."""


def told(finding: Finding) -> str:
    """Write a finding for people."""
    line = f"{finding.state:<8} {finding.about:<10} {finding.text}"
    return f"{line}\n{'':<20}to do: {finding.cure}" if finding.cure else line


def refused(error: SettingsError, state: State) -> Iterator[Finding]:
    """Say what is wrong with the settings."""
    for problem in error.problems:
        yield Finding(state, "settings", str(problem), problem.hint or "")


def check_programs(app: AppConfig) -> Iterator[Finding]:
    """Check that the programs are there that models are."""
    for name, model in app.models.items():
        if isinstance(model, CliModelConfig):
            program = model.command[0]
            found = shutil.which(program)
            if found is None:
                text = f"models.{name}: there is no program {program!r}"
                cure = "install it, or give its whole path in command"
                yield Finding("wrong", "program", text, cure)
            else:
                yield Finding("ok", "program", f"models.{name}: {found}")


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
        return [Finding(state, "sandbox", f"none ({needed})", str(error))]
    return [*in_force(sandbox.standing, needed)]


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
