"""`callboard tools`: what agents can do, and where each tool comes from."""

from __future__ import annotations

from contextlib import AsyncExitStack
from pathlib import Path

import click
import msgspec

from actors import names
from actors.messages.inbound import Address, ToolContext, ToolSpec
from actors.ports import Tool
from actors.rules.prompt.tools import server_of
from connectors.app.kit import described_tools
from connectors.app.tool_sources import ToolSources, make_sources
from connectors.commands import config_option
from connectors.commands.common.database import load_settings
from connectors.commands.common.output import (
    rows_options,
    say,
    say_json,
    say_rows,
)
from connectors.commands.common.running import (
    private_files,
    redacting,
    run_interruptible,
)
from connectors.commands.common.staff import colleague_tools
from connectors.config.app import AppConfig
from connectors.mcp.source import McpSource, McpTool, shelf_of
from connectors.mcp.tree import SERVERS, actor_of
from connectors.sandbox.runner import sandbox_of
from connectors.settings.checks.access import configured_persona
from connectors.skills.source import UsedTool, UseSkillTool
from runtime.config.loader import Settings
from runtime.supervision.supervisor import Supervisor
from runtime.system import open_system
from runtime.telemetry.logs import writing
from runtime.telemetry.metrics import Metrics

ROUNDS = 8
"""How often servers are asked that are still being started; each waits a moment."""


class ToolRow(msgspec.Struct):
    """One tool of one agent."""

    agent: str
    tool: str
    effect: str
    source: str
    description: str


class ListedTools(msgspec.Struct):
    """All there is to tell."""

    tools: list[ToolRow]
    notes: list[str]


HEADERS = ("AGENT", "TOOL", "EFFECT", "FROM", "DESCRIPTION")


@click.group()
def command() -> None:
    """List what agents can do."""


@command.command(name="list")
@config_option
@click.option("--agent", default="", help="Only this one's tools.")
@rows_options
def list_tools(config: Path | None, agent: str, *, as_json: bool) -> None:
    """Start the servers of tools, ask each what it offers, and show it.

    EFFECT is the worst that a call can do: read, write or run.
    """
    settings = load_settings(config, may_fall_back=True)
    agents = list(settings.value.agents)
    if agent and agent not in agents:
        text = f"there is no agent {agent!r}; known: {', '.join(agents)}"
        raise click.BadParameter(text, param_hint="--agent")
    # What servers complain of would stand between the lines.
    with writing(level="error", shape="text", redactor=redacting(settings)):
        found = run_interruptible(gathered, settings, [agent] if agent else agents)
    if as_json:
        say_json(found)
        return
    say_rows(found.tools, HEADERS, msgspec.structs.astuple, "No agent has a tool.")
    for note in found.notes:
        say(note)


async def gathered(settings: Settings[AppConfig], agents: list[str]) -> ListedTools:
    """Start what has to be started, and ask everybody."""
    config = settings.value
    sandbox = sandbox_of(config, private_files(settings))
    async with AsyncExitStack() as stack:
        own = described_tools(config, sandbox, stack)
        system = await stack.enter_async_context(open_system())
        further = make_sources(config, sandbox, Metrics(), system.find)
        await system.start_root(Supervisor([further.spec]), names.ROOT)
        found = ListedTools([], [])
        for agent in agents:
            tools = [own[name] for name in config.agents[agent].tools if name in own]
            await ask(further, agent, found)
            found.tools += [row(agent, tool.spec) for tool in tools]
            persona = configured_persona(config, {}, agent)
            asking = colleague_tools(config, persona)
            found.tools += [row(agent, spec, "delegates") for spec in asking]
        used = {server_of(t) for name in agents for t in config.agents[name].tools}
        for name in config.mcp_servers:
            shelf = await shelf_of(system.find(actor_of(SERVERS, name)))
            if name in used and shelf is not None and shelf.said:
                found.notes.append(f"{name} complained: {shelf.said}")
        return found


async def ask(further: ToolSources, agent: str, found: ListedTools) -> None:
    """Add the tools that an agent has of servers and skills."""
    context = ToolContext(
        agent=agent, correlation_id="", address=Address("", ""), sender_id=""
    )
    for source in further.sources:
        offer = await source.offer(context, "")
        for _ in range(ROUNDS):
            if not any("still being started" in note for note in offer.notes):
                break
            offer = await source.offer(context, "")
        found.tools += [row(agent, tool.spec, origin(tool)) for tool in offer.tools]
        if isinstance(source, McpSource):
            found.notes += [f"{agent}: {note}" for note in offer.notes]


def row(agent: str, spec: ToolSpec, source: str = "built in") -> ToolRow:
    """Describe one tool of an agent."""
    words = " ".join(spec.description.split())
    return ToolRow(agent, spec.name, spec.effect, source, words)


def origin(tool: Tool) -> str:
    """Say where a tool comes from."""
    match tool:
        case McpTool(server=server):
            return f"mcp:{server}"
        case UsedTool() | UseSkillTool():
            return "skills"
        case _:
            return "built in"
