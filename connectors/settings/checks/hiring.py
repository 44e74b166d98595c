"""Says what the agents that conductors make may have, and checks those settings."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import replace
from datetime import UTC
from fnmatch import fnmatchcase
from functools import partial

from actors.agents.hired import HiringTerms
from actors.agents.persona import Persona
from actors.agents.roster import HiringParts
from actors.config.agents import AgentConfig
from actors.ports import Tool
from actors.rules.prompt.tools import SERVER
from connectors.chat.platforms import reply_styles
from connectors.config.app import AppConfig
from connectors.config.checks import find_zone, unknown
from runtime.config.loader import Complaint, close_to


def terms_of(config: AppConfig, tools: Collection[str]) -> HiringTerms:
    """Say what the settings grant the agents that are made."""
    return HiringTerms(
        hiring=config.hiring,
        defaults=config.agent_defaults,
        settled={name: agent.model for name, agent in config.agents.items()},
        models=frozenset(config.models),
        tools=frozenset(tools),
    )


def hiring_of(config: AppConfig, tools: Mapping[str, Tool]) -> HiringParts:
    """Say what agents are made from that conductors make."""
    return HiringParts(terms_of(config, tools), partial(make_persona, config, tools))


def make_persona(
    config: AppConfig, tools: Mapping[str, Tool], name: str, agent: AgentConfig
) -> Persona:
    """Look up what such an agent may have: tools of this program, no servers."""
    return Persona(
        name=name,
        config=agent,
        zone=find_zone(agent.context.time_zone) or UTC,
        tools={tool: tools[tool] for tool in agent.tools if tool in tools},
        remembers=config.memory.enabled,
        has_projects=config.projects.folder is not None,
        reply_styles=reply_styles(),
        program_seconds=config.program_seconds,
    )


def configured_persona(
    config: AppConfig, tools: Mapping[str, Tool], name: str
) -> Persona:
    """Look up what an agent of the settings has: all but its files and servers.

    Who else is here, the team tells it (`make_team`).
    """
    agent = config.agents[name]
    return replace(
        make_persona(config, tools, name, agent),
        colleagues={each: config.agents[each].description for each in agent.delegates},
    )


def check_hiring(config: AppConfig, tools: Collection[str]) -> Iterator[Complaint]:
    """Check what is granted."""
    hiring = config.hiring
    for index, tool in enumerate(hiring.tools):
        place = ("hiring", "tools", index)
        if tool.startswith(SERVER):
            text = "tools of servers are for agents of the settings only"
            yield Complaint(place, text, "take it out of the list")
        else:
            yield from unknown(place, "tool", tool, tools)
            if tool == "web_search" and config.web_search.kind == "off":
                text = "there is no search engine for the tool 'web_search'"
                hint = 'set kind under [web_search], as in "searxng"'
                yield Complaint(place, text, hint)
    for index, pattern in enumerate(hiring.models):
        if not any(fnmatchcase(name, pattern) for name in config.models):
            text = f"no model fits {pattern!r}"
            hint = close_to(pattern, config.models)
            yield Complaint(("hiring", "models", index), text, hint)
    if hiring.who == "nobody":
        return
    if not any(agent.is_conductor for agent in config.agents.values()):
        text = "no agent is a conductor, so nobody makes others"
        hint = "set is_conductor = true for the one that is to"
        yield Complaint(("hiring", "who"), text, hint, is_warning=True)
