"""Reads the agents, and stores changes of them beside a running server."""

from __future__ import annotations

from functools import partial

from actors.agents import rows as staff_rows
from actors.agents.hired import HiredAgent
from actors.agents.persona import Persona
from actors.agents.roster import ConfiguredStaff, HiringParts, Team, make_team
from actors.agents.rows import AGENT, AT_REST, Outcome, StaffChange, StaffRows
from actors.collaboration.questions import COLLABORATE_SPEC, CONSULT_SPEC
from actors.collaboration.tools import has_any
from actors.messages.inbound import ToolSpec
from actors.rules.groups.routes import binding_of, routing_table
from actors.turn.tools import DELEGATE_SPEC
from connectors.commands.common.database import database_of, is_stored
from connectors.commands.common.output import FAILED, say
from connectors.config.app import AppConfig
from connectors.settings.checks.access import configured_persona, make_persona, terms_of
from connectors.tools.registry import TOOLS
from runtime.clock import SystemClock
from runtime.ids import IdSource
from runtime.store.database import Database
from runtime.store.rows import Entry

BY = "the command line"


def read_rows(database: Database) -> StaffRows:
    """Read all rows of agents, as of one moment."""
    with database.inspect() as rows:
        made, at_rest = list(rows.entries(AGENT)), list(rows.entries(AT_REST))
    return staff_rows.rows_of(made, at_rest)


def team_of(config: AppConfig) -> Team:
    """Give the team of agents, as a server that starts now would."""
    database = database_of(config)
    rows = read_rows(database) if database.exists() else StaffRows()
    personas = tuple(configured_persona(config, {}, name) for name in config.agents)
    hiring = HiringParts(terms_of(config, TOOLS), partial(make_persona, config, {}))
    routes = map(binding_of, config.routes)
    table = routing_table(config.agents, routes, config.default_agent)
    return make_team(ConfiguredStaff(personas, table, hiring), rows, {})


def colleague_tools(config: AppConfig, persona: Persona) -> tuple[ToolSpec, ...]:
    """Describe the tools by which an agent reaches others, if there are any."""
    if not persona.colleagues:
        return ()
    may_ask = has_any(persona, config.collaboration) and config.limits.max_hops
    asking = (COLLABORATE_SPEC, CONSULT_SPEC) if may_ask else ()
    return (*asking, DELEGATE_SPEC)


def write(
    database: Database,
    entry: Entry,
    outcome: Outcome,
    version: int,
    row: HiredAgent | None = None,
) -> int:
    """Store a change and its audit record; a running server sees it within seconds.

    Args:
        outcome: what that is called.
        version: of the entry from then on; 0 if it is gone.
        row: what it says then.

    Returns:
        The exit code.
    """
    clock = SystemClock()
    change = StaffChange(
        kind=entry.kind, outcome=outcome, version=version, by=BY, row=row
    )
    record = staff_rows.as_record(IdSource(clock).new(), entry.id, change)
    commit = staff_rows.as_commit(clock.wall(), entry, record)
    conflict = f"somebody changed {entry.id} at the same moment; try again"
    if not is_stored(database, commit, conflict):
        return FAILED
    say(f"{entry.id} is {outcome}", id=entry.id, state=outcome)
    return 0
