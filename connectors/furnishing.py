"""What the domain is told of the settings: limits, accounts, who works here.

Made at the start and again whenever settings change, by the same functions.
"""

from __future__ import annotations

from datetime import UTC
from typing import TYPE_CHECKING

from actors import noting
from actors.account import Account
from actors.persona import Persona
from actors.roster import Settled
from actors.rules.admission import policy
from actors.rules.agent_access import agent_access
from actors.rules.message_state import RetryPolicy
from actors.rules.routes import binding_of, routing_table
from actors.services import Furnishing
from connectors.access_checks import access_of, approvers, owners
from connectors.config import TerminalConfig
from connectors.hiring import hiring_of
from connectors.locale import load_voices
from connectors.model_checks import find_zone
from connectors.notebook import make_notebook
from connectors.platform_checks import on_unknown_of
from connectors.posting import announcer_of
from connectors.standing import standing_of

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from actors.transport import Transport
    from connectors.config import AppConfig
    from connectors.kit import Kit
    from connectors.personas import Personas


def models_of(config: AppConfig) -> dict[str, str]:
    """Say which model each agent of the settings asks."""
    return {name: agent.model for name, agent in config.agents.items()}


def furnished(
    before: Furnishing | None,
    config: AppConfig,
    kit: Kit,
    transports: Mapping[str, Transport],
) -> Furnishing:
    """Say what these settings come to for the domain.

    Args:
        before: what is in force; None: nothing yet.
        config: checked settings.
        kit: what agents work with.
        transports: the connectors that run.
    """
    lessons = None if kit.further is None else kit.further.lessons
    language = config.people.language
    is_same = before is not None and before.people.language == language
    voices = before.voices if before and is_same else load_voices(language)
    return Furnishing(
        limits=config.limits,
        sessions=config.sessions,
        compaction=config.compaction,
        buffering=config.buffering,
        busy_policies=config.busy_policies,
        watchdog=config.watchdog,
        zone=find_zone(config.sessions.time_zone) or UTC,  # checked before
        audit=config.audit,
        accounts=accounts_of(config, transports),
        owners=owners(config),
        approvers=approvers(config),
        agent_access=agent_access(config.access, approvers(config)),
        tool_calls=config.tool_calls,
        approvals=config.approvals,
        collaboration=config.collaboration,
        presence=config.presence,
        permissions=config.permissions,
        scheduler=config.scheduler,
        standing=standing_of(config),
        enclosures=kit.enclosures,
        media=kit.media,
        notebook=make_notebook(config, lessons),
        people=config.people,
        commands=config.commands,
        agent_models=models_of(config),
        voices=voices,
        memory=kit.memory,
        announcer=announcer_of(config),
        remember=noting.remember if config.memory.enabled else None,
    )


def accounts_of(
    config: AppConfig, transports: Mapping[str, Transport]
) -> dict[str, Account]:
    """Say what the domain must know of each connector."""
    accounts: dict[str, Account] = {}
    for name, transport in transports.items():
        settings = config.connectors.get(name, TerminalConfig())
        retries = RetryPolicy(
            attempts=config.retries.attempts,
            retries_failures=settings.retry_failures,
            first_wait=config.retries.first_wait,
            longest_wait=config.retries.longest_wait,
            stuck_after=config.retries.stuck_after,
        )
        access = access_of(settings)
        accounts[name] = Account(
            transport.abilities,
            retries,
            on_unknown_of(settings),
            None if access is None else policy(access, owners(config)),
            transport.presence is not None,
        )
    return accounts


def settled(config: AppConfig, kit: Kit, personas: Personas) -> Settled:
    """Say who works here by the settings, and who is routed to whom."""
    return Settled(
        tuple(persona_of(name, config, kit, personas) for name in config.agents),
        routing_table(
            config.agents, map(binding_of, config.routes), config.default_agent
        ),
        hiring_of(config, kit.tools),
    )


def persona_of(name: str, config: AppConfig, kit: Kit, personas: Personas) -> Persona:
    """Look up all that an agent of the settings works with."""
    agent = config.agents[name]
    return Persona(
        name=name,
        config=agent,
        read_files=personas.reading(name),
        zone=find_zone(agent.context.time_zone) or UTC,  # checked with the settings
        tools={tool: kit.tools[tool] for tool in agent.tools if tool in kit.tools},
        sources=() if kit.further is None else kit.further.sources,
        skills=() if kit.further is None else kit.further.skills[name],
        colleagues={each: config.agents[each].description for each in agent.delegates},
        everybody=tuple(config.agents),
        remembers=config.memory.enabled,
        has_projects=config.projects.folder is not None,
    )


def persona_folders(config: AppConfig) -> dict[str, Path]:
    """Say which agents have a folder of their own."""
    return {
        name: agent.persona
        for name, agent in config.agents.items()
        if agent.persona is not None
    }
