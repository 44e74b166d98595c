"""Reads who works here, and writes changes of that beside a running server."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from actors import staff_rows
from actors.persona import Persona
from actors.roster import Hiring, Settled, make_team
from actors.rules.routes import binding_of, routing_table
from actors.staff_rows import AGENT, AT_REST, Rows, StaffChange
from connectors.commands.printing import complain, say
from connectors.hiring import make_persona, terms_of
from connectors.settings import TOOL_NAMES
from runtime import sqlite_mend
from runtime.clock import SystemClock
from runtime.errors import SequenceConflictError
from runtime.ids import IdSource
from runtime.sqlite_survey import survey

if TYPE_CHECKING:
    from actors.roster import Team
    from actors.rules.hired import HiredAgent
    from actors.staff_rows import Outcome
    from connectors.config import AppConfig
    from runtime.entries import Entry

FAILED = 1
BY = "the command line"


def read_rows(path: Path) -> Rows:
    """Read all rows of agents, as of one moment."""
    with survey(path) as rows:
        made, at_rest = list(rows.entries(AGENT)), list(rows.entries(AT_REST))
    return staff_rows.rows_of(made, at_rest)


def team_of(config: AppConfig) -> Team:
    """Say who works here, as a server would that is started now."""
    path = Path(config.store.path)
    rows = read_rows(path) if path.is_file() else Rows()
    personas = tuple(
        Persona(
            name,
            agent,
            remembers=config.memory.enabled,
            has_projects=config.projects.folder is not None,
        )
        for name, agent in config.agents.items()
    )
    hiring = Hiring(terms_of(config, TOOL_NAMES), partial(make_persona, config, {}))
    routes = map(binding_of, config.routes)
    table = routing_table(config.agents, routes, config.default_agent)
    return make_team(Settled(personas, table, hiring), rows, {})


def write(
    path: Path,
    entry: Entry,
    outcome: Outcome,
    version: int,
    row: HiredAgent | None = None,
) -> int:
    """Store a change, and put it on record; a running server sees it within seconds.

    Args:
        path: the database.
        entry: what is changed.
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
    try:
        sqlite_mend.write(path, staff_rows.as_commit(clock.wall(), entry, record))
    except SequenceConflictError:
        complain(f"somebody changed {entry.id} at the same moment; try again")
        return FAILED
    say(f"{entry.id} is {outcome}")
    return 0
