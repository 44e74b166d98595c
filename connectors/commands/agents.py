"""`callboard agents`: which agents there are, and who made them."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import click
import msgspec

from actors.agents import rows as staff_rows
from actors.agents.hired import HiredAgent
from actors.agents.rows import AGENT, CHANGE, Outcome, StaffChange, StaffRows
from actors.config.agents import AgentConfig
from connectors.admin.display import when
from connectors.commands import config_option
from connectors.commands.common.database import (
    DatabaseChoice,
    database_of_store,
    database_options,
)
from connectors.commands.common.output import (
    FAILED,
    complain,
    json_option,
    rows_options,
    say,
    say_json,
    say_rows,
)
from connectors.commands.common.staff import read_rows, write
from runtime.store.database import Database
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
        self._choice = choice
        self.rows = StaffRows()
        """What is stored: nothing as long as there is no database."""

        if settings is None or database_of_store(choice.store).exists():
            self.rows = read_rows(self.database)

    @property
    def database(self) -> Database:
        """The database; see `DatabaseChoice`."""
        return self._choice.database

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
    """Show which agents there are; add, change, disable or remove them."""


@command.command("list")
@database_options
@rows_options
def list_(choice: DatabaseChoice, *, as_json: bool) -> None:
    """List the agents of the settings, and those that conductors made.

    With --db alone, only those that were made.
    """
    staffing = Staffing(choice)
    rows = staffing.listed()
    for name in staffing.rows.unreadable:
        complain(f"the row of {name!r} is of another release and cannot be read")
    headers = ("AGENT", "STATE", "MODEL", "TOOLS", "MADE BY", "FOR", "CHANGED")
    say_rows(rows, headers, cells, "There is no agent.", as_json=as_json)


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
@config_option
@click.argument("agent")
@click.argument("values", nargs=-1, metavar="[KEY=VALUE]...")
@click.option(
    "--template",
    help="The texts that begin its folder agents/AGENT: assistant, analyst or host."
    " [default: assistant, unless a prompt or a persona is given]",
)
@click.option(
    "--colleague-of",
    "above",
    multiple=True,
    metavar="AGENT",
    help="Who may hand work to it; repeatable.",
)
def add(
    config: Path | None,
    agent: str,
    values: tuple[str, ...],
    template: str | None,
    above: tuple[str, ...],
) -> None:
    """Write AGENT into the settings, and a folder with its character beside them.

    KEY=VALUE is a setting as under [agents.NAME], for example description="Does sums"
    'tools=["calculate"]'. Comments stay; nothing is written that would be wrong.
    """
    # Why here: who lists agents needs nothing of this.
    from connectors.commands.common import editing  # noqa: PLC0415

    editing.add_agent(config, agent, values, template, above)


@command.command()
@config_option
@click.argument("agent")
@click.argument("values", nargs=-1, required=True, metavar="KEY=VALUE...")
def edit(config: Path | None, agent: str, values: tuple[str, ...]) -> None:
    """Change settings of AGENT, for example: edit ben model=main 'tools=["clock"]'.

    KEY= without a value takes the setting out; keys are as under [agents.NAME].
    Comments stay; nothing is written that would be wrong.
    """
    from connectors.commands.common import editing  # noqa: PLC0415  as above

    editing.edit_agent(config, agent, values)


@command.command()
@database_options
@click.argument("agent")
def remove(choice: DatabaseChoice, agent: str) -> int:
    """Take AGENT out of the settings, or forget it if a conductor made it.

    Its conversations stay, and so does its folder.
    """
    settings = choice.settings
    if settings is not None and agent in settings.value.agents:
        from connectors.commands.common import editing  # noqa: PLC0415  as above

        editing.remove_agent(choice.config, agent, settings.value)
        return 0
    staffing = Staffing(choice)
    staffing.refuse_unknown(agent)
    stored = staffing.rows.agents.get(agent)
    if stored is None:
        complain(f"no conductor made {agent}")
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
            say(f"{name} is {state} already", id=name, state=state)
            return 0
        entry = staff_rows.as_rest(name, is_active=is_active)
        return write(staffing.database, entry, state, 0)
    if stored.agent.is_active == is_active:
        say(f"{name} is {state} already", id=name, state=state)
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
