"""`callboard agents`: which agents there are, and who made them."""

from __future__ import annotations

from collections.abc import Mapping

import click
import msgspec

from actors.agents import rows as staff_rows
from actors.agents.hired import HiredAgent
from actors.agents.rows import AGENT, CHANGE, Outcome, StaffChange, StaffRows
from actors.config.agents import AgentConfig
from connectors.admin.display import when
from connectors.commands.common.database import DatabaseChoice, database_options
from connectors.commands.common.output import (
    FAILED,
    complain,
    json_option,
    say,
    say_json,
    say_rows,
)
from connectors.commands.common.staff import read_rows, write
from runtime.store.rows import Entry

SETTINGS = "the settings"


class AgentRow(msgspec.Struct, frozen=True):
    """One agent, as listed."""

    name: str
    state: str
    """`active`, or `at rest`; `shadowed` if the settings have one of the same name."""

    model: str
    tools: tuple[str, ...]
    made_by: str
    """A conductor, or `the settings`."""

    description: str
    updated_at: float
    """Unix seconds; 0 for those of the settings."""


class AgentChange(msgspec.Struct, frozen=True):
    """One change of an agent, as shown."""

    at: float
    """Unix seconds."""

    change: StaffChange


class AgentDetails(msgspec.Struct, frozen=True):
    """One agent that a conductor made, with its changes."""

    agent: HiredAgent
    version: int
    changes: tuple[AgentChange, ...]
    """The newest first, as long as the audit is kept."""


class Staffing:
    """All agents as they stood at one moment."""

    def __init__(self, choice: DatabaseChoice) -> None:
        settings = choice.settings
        self.settled: Mapping[str, AgentConfig] = (
            settings.value.agents if settings is not None else {}
        )
        self.database = choice.database
        self.rows: StaffRows = read_rows(self.database)

    def listed(self) -> list[AgentRow]:
        """List all: those of the settings first."""
        found = [
            AgentRow(
                name,
                "at rest" if name in self.rows.at_rest else "active",
                agent.model,
                agent.tools,
                SETTINGS,
                agent.description,
                0.0,
            )
            for name, agent in self.settled.items()
        ]
        for name, stored in self.rows.agents.items():
            agent = stored.agent
            state = "active" if agent.is_active else "at rest"
            found.append(
                AgentRow(
                    name,
                    "shadowed" if name in self.settled else state,
                    agent.model,
                    agent.tools,
                    agent.made_by,
                    agent.description,
                    agent.updated_at,
                )
            )
        return found

    def refuse_unknown(self, name: str) -> None:
        """Check that there is such an agent.

        Raises:
            click.BadParameter: there is none.
        """
        known = {*self.settled, *self.rows.agents}
        if name not in known:
            text = f"there is no agent {name!r}; known: {', '.join(sorted(known))}"
            raise click.BadParameter(text, param_hint="AGENT")


@click.group()
def command() -> None:
    """Show which agents there are; let them rest, or remove those that were made."""


@command.command("list")
@database_options
@json_option
def list_(choice: DatabaseChoice, *, as_json: bool) -> None:
    """List the agents of the settings, and those that conductors made.

    With --db alone, only those that were made.
    """
    staffing = Staffing(choice)
    rows = staffing.listed()
    for name in staffing.rows.unreadable:
        complain(f"the row of {name!r} is of another release and cannot be read")
    if as_json:
        say_json(rows)
    else:
        headers = ("AGENT", "STATE", "MODEL", "TOOLS", "MADE BY", "FOR", "CHANGED")
        say_rows(rows, headers, cells, "There is no agent.")


@command.command()
@database_options
@click.argument("agent")
@json_option
def show(choice: DatabaseChoice, agent: str, *, as_json: bool) -> int:
    """Show what a conductor wrote of AGENT, and who changed it when."""
    staffing = Staffing(choice)
    staffing.refuse_unknown(agent)
    stored = staffing.rows.agents.get(agent)
    if stored is None:
        complain(f"{agent} is in the settings: callboard config show")
        return FAILED
    with staffing.database.inspect() as rows:
        changes = tuple(
            AgentChange(row.at, msgspec.json.decode(row.body, type=StaffChange))
            for row in rows.records(CHANGE)
            if row.owner == agent
        )
    if as_json:
        say_json(AgentDetails(stored.agent, stored.version, changes))
        return 0
    for line in told(stored.agent, changes):
        say(line)
    return 0


@command.command()
@database_options
@click.argument("agent")
def disable(choice: DatabaseChoice, agent: str) -> int:
    """Have AGENT hear nothing more; a running server lets it finish what it began."""
    return rest(choice, agent, is_active=False)


@command.command()
@database_options
@click.argument("agent")
def enable(choice: DatabaseChoice, agent: str) -> int:
    """Have AGENT answer again."""
    return rest(choice, agent, is_active=True)


@command.command()
@database_options
@click.argument("agent")
def remove(choice: DatabaseChoice, agent: str) -> int:
    """Forget AGENT, which a conductor made; its conversations stay."""
    staffing = Staffing(choice)
    staffing.refuse_unknown(agent)
    stored = staffing.rows.agents.get(agent)
    if stored is None:
        complain(f"{agent} is in the settings: take its table out, or disable it")
        return FAILED
    entry = staff_rows.as_entry(AGENT, agent, None, stored.version)
    return write(staffing.database, entry, "removed", 0)


def rest(choice: DatabaseChoice, name: str, *, is_active: bool) -> int:
    """Disable or enable an agent; give the exit code."""
    staffing = Staffing(choice)
    staffing.refuse_unknown(name)
    state: Outcome = "enabled" if is_active else "disabled"
    stored = staffing.rows.agents.get(name)
    entry: Entry
    if name in staffing.settled or stored is None:
        if is_active != (name in staffing.rows.at_rest):
            say(f"{name} is {state} already")
            return 0
        entry = staff_rows.as_rest(name, is_active=is_active)
        return write(staffing.database, entry, state, 0)
    if stored.agent.is_active == is_active:
        say(f"{name} is {state} already")
        return 0
    agent = msgspec.structs.replace(stored.agent, is_active=is_active)
    entry = staff_rows.as_entry(AGENT, name, agent, stored.version)
    return write(staffing.database, entry, state, stored.version + 1, agent)


def cells(row: AgentRow) -> tuple[object, ...]:
    """Give the columns of one agent."""
    changed = when(row.updated_at) if row.updated_at else ""
    tools = ", ".join(row.tools)
    return (
        row.name,
        row.state,
        row.model,
        tools,
        row.made_by,
        row.description,
        changed,
    )


def told(agent: HiredAgent, changes: tuple[AgentChange, ...]) -> list[str]:
    """Describe an agent for people."""
    title = f" ({agent.title})" if agent.title else ""
    state = "active" if agent.is_active else "at rest"
    since = when(agent.created_at)
    lines = [
        f"{agent.name}{title}, {state}",
        f"  for         {agent.description}",
        f"  model       {agent.model}",
        f"  tools       {', '.join(agent.tools) or 'none'}",
        f"  delegates   {', '.join(agent.delegates) or 'none'}",
        f"  made by     {agent.made_by}, for {agent.asked_by}, {since}",
        "",
        *(agent.role.splitlines()),
        *(agent.prompt.splitlines()),
        "",
    ]
    for each in changes:
        change = each.change
        words = f", for {change.asked_by}" if change.asked_by else ""
        lines.append(
            f"{when(each.at)}  version {change.version} {change.outcome}"
            f" by {change.by}{words}"
        )
    return lines
