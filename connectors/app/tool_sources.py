"""Puts servers of tools and skills together: their actors, and what agents have.

Imported only for settings that have some: who has none is spared their libraries.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import msgspec

from actors.ports import ToolSource
from actors.rules.prompt import tools as tool_names
from connectors.config.app import AppConfig
from connectors.config.mcp import McpServerConfig
from connectors.mcp.session import McpFigures
from connectors.mcp.source import Known, McpSource, prefix_of
from connectors.mcp.tree import (
    SERVERS,
    SKILLS,
    TOOLS,
    ServerSurroundings,
    actor_of,
    connecting,
    home_of,
    server_spec,
)
from connectors.sandbox.runner import Sandbox
from connectors.skills.checks import read_all
from connectors.skills.folder import SkillFolder, read_folders
from connectors.skills.lessons import Lessons
from connectors.skills.source import Brought, SkillSource, Starter, Using
from runtime.actor.ref import ActorRef
from runtime.supervision.child import ChildSpec
from runtime.supervision.restarts import Backoff
from runtime.supervision.supervisor import Supervisor, SupervisorConfig
from runtime.telemetry.logs import EventLog
from runtime.telemetry.metrics import Metrics

LOG = EventLog("skills")

PATIENT = SupervisorConfig(intensity=12, period=60.0, backoff=Backoff())


@dataclass
class Roll:
    """Which servers of the settings there are now: for their supervisor's next start.

    Written when others are in use, by whoever starts those.
    """

    specs: Mapping[str, ChildSpec]


@dataclass(frozen=True)
class ToolSources:
    """Servers and skills, ready to be started."""

    sources: tuple[ToolSource, ...]
    skills: Mapping[str, tuple[str, ...]]
    """By agent, the names of its skills."""

    lessons: Lessons
    """What agents learn about these skills."""

    spec: ChildSpec
    """The supervisor of their actors, to be started before agents."""

    described: Callable[[], dict[str, tuple[tuple[str, str], ...]]]
    """Reads the skills' names, and what each is for, by agent, as they are now."""

    servers: Mapping[str, ChildSpec]
    """By server of the settings, how its actors are started."""

    roll: Roll

    settings: Mapping[str, object]
    """By server of the settings, all that it is started with."""

    of_skills: ChildSpec
    """The supervisor of servers that skills bring along; none runs at first."""

    starter: ChildSpec
    """Who starts the servers of skills."""

    brought: Mapping[str, Brought]
    figures: McpFigures
    using: Using


def make_sources(
    config: AppConfig,
    sandbox: Sandbox,
    metrics: Metrics,
    find: Callable[[str], ActorRef | None],
    before: ToolSources | None = None,
) -> ToolSources:
    """Read the skills, and say how the servers are started.

    Args:
        find: gives a living actor by its name.
        before: those of earlier settings, whose figures and uses go on.
    """
    figures = before.figures if before else McpFigures(metrics)
    servers = {n: each for n, each in config.mcp_servers.items() if not each.disabled}
    skills = skills_of(config)
    brought = brought_by(config, skills, servers)
    workspace = Path(config.workspace.path).absolute()
    using = before.using if before else Using(config.skills.idle_after)
    using.idle_after = config.skills.idle_after
    specs = {
        name: server_spec(
            name,
            each,
            connecting(
                name, each, ServerSurroundings(sandbox, home_of(workspace, name))
            ),
            figures,
        )
        for name, each in servers.items()
    }
    roll = before.roll if before else Roll(specs)
    starter = ChildSpec(
        name="starter", start=lambda: Starter(brought, using, sandbox, figures)
    )

    of_skills = ChildSpec(name=own_name(SKILLS), start=lambda: Supervisor((), PATIENT))

    def tree() -> Supervisor:
        above = ChildSpec(
            name=own_name(SERVERS),
            start=lambda: Supervisor(roll.specs.values(), PATIENT),
        )
        return Supervisor((above, of_skills, starter), PATIENT)

    known = [
        Known(name, each, actor_of(SERVERS, name)) for name, each in servers.items()
    ]
    wanted = {name: agent.tools for name, agent in config.agents.items()}
    most = config.skills.most_triggered
    own = allotted(config, skills)
    return ToolSources(
        (
            McpSource(known, wanted, find),
            SkillSource(own, brought, using, most, config.program_agents, find),
        ),
        {agent: tuple(folders) for agent, folders in own.items()},
        Lessons(own, config.skills),
        ChildSpec(name=own_name(TOOLS), start=tree, shutdown=30.0),
        partial(described, config),
        servers=specs,
        roll=roll,
        settings={name: (each, workspace) for name, each in servers.items()},
        of_skills=of_skills,
        starter=starter,
        brought=brought,
        figures=figures,
        using=using,
    )


def described(config: AppConfig) -> dict[str, tuple[tuple[str, str], ...]]:
    """Read what each agent's skills are for; it blocks."""
    return {
        agent: tuple((name, x.skill.description) for name, x in folders.items())
        for agent, folders in allotted(config, skills_of(config)).items()
    }


def own_name(name: str) -> str:
    """Give the last part of an actor's name."""
    return name.rpartition("/")[2]


def skills_of(config: AppConfig) -> dict[str, SkillFolder]:
    """Read all skills; say which folders hold none that can be used."""
    found = read_folders(config.skills.folders, config.skills.max_body_chars)
    for problem in found.problems:
        LOG.warning("skill left out", why=str(problem))
    return found.skills


def allotted(
    config: AppConfig, skills: Mapping[str, SkillFolder]
) -> dict[str, dict[str, SkillFolder]]:
    """Give each agent its skills."""
    return {
        name: {
            skill: folder
            for skill, folder in skills.items()
            if any(tool_names.fits(pattern, skill) for pattern in agent.skills)
        }
        for name, agent in config.agents.items()
    }


def brought_by(
    config: AppConfig,
    skills: Mapping[str, SkillFolder],
    servers: Mapping[str, McpServerConfig],
) -> dict[str, Brought]:
    """Read the servers of those skills that may have theirs started.

    Args:
        servers: those of the settings, whose prefixes are taken.
    """
    may = {
        name: folder
        for name, folder in skills.items()
        if any(tool_names.fits(pattern, name) for pattern in config.skills.servers)
    }
    found, problems = read_all(may, os.environ)
    for problem in problems:
        LOG.warning("servers of a skill left out", why=str(problem))
    taken = {each.prefix or prefix_of(name) for name, each in servers.items()}
    brought: dict[str, Brought] = {}
    for skill, brings in found.items():
        own: dict[str, McpServerConfig] = {}
        for name, each in brings.servers.items():
            prefix = free_prefix(name, taken)
            taken.add(prefix)
            own[name] = msgspec.structs.replace(each, prefix=prefix)
        brought[skill] = Brought(may[skill].path.absolute(), own)
    return brought


def free_prefix(name: str, taken: set[str]) -> str:
    """Make a prefix that no other server has."""
    prefix = prefix_of(name)
    number = 2
    while prefix in taken:
        prefix = (
            f"{prefix_of(name)[: tool_names.LONGEST_PREFIX - 4].strip('_-')}-{number}"
        )
        number += 1
    return prefix
