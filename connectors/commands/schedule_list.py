"""`callboard schedule list` and `show`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click
import msgspec
from msgspec.structs import asdict as as_dict

from actors.rules.schedule import words_of
from actors.schedule_rows import SHOWN_ID
from connectors.commands import schedule_history
from connectors.commands.database import (
    database_options,
    find_database,
    json_option,
    settings_beside,
)
from connectors.commands.printing import (
    complain,
    first_words,
    indented,
    say,
    say_json,
    table,
)
from connectors.commands.schedule_cost import Costs
from connectors.office.appointments import (
    Row,
    all_rows,
    find_row,
    read_runs,
    shown,
)
from connectors.office.moments import lasting, when
from runtime.clock import SystemClock

if TYPE_CHECKING:
    from pathlib import Path

HEADERS = ("ID", "KIND", "AGENT", "CHAT", "NEXT", "IN", "REPEAT", "STATE", "TEXT")

RUNS_SHOWN = 5
"""Of its times that are over; `schedule history` shows more."""


@click.command("list")
@database_options
@click.option("--agent", help="Only this agent's.")
@json_option
def list_appointments(
    config: Path | None, db: Path | None, agent: str | None, *, as_json: bool
) -> None:
    """List appointments, the next one first."""
    path, settings = find_database(config, db), settings_beside(config, db)
    rows = [row for row in all_rows(path) if agent in {None, row.it.agent}]
    costs = Costs(path, None if settings is None else settings.value)
    if as_json:
        say_json([{**as_dict(shown(row)), **as_dict(costs.of(row))} for row in rows])
    elif not rows:
        say("Nothing is scheduled.")
    else:
        now = SystemClock().wall()
        for line in table(HEADERS, [cells(row, now) for row in rows]):
            say(line)
        for line in costs.told(rows):
            say(line)


@click.command()
@database_options
@click.argument("prefix", metavar="ID")
@json_option
def show(config: Path | None, db: Path | None, prefix: str, *, as_json: bool) -> None:
    """Show one appointment and its last times; of its ID the beginning is enough."""
    path = find_database(config, db)
    found = shown(find_row(path, prefix))
    runs = read_runs(path, found.id, RUNS_SHOWN, complain)
    if as_json:
        say_json({**msgspec.structs.asdict(found), "runs": runs})
        return
    shown_as = {**msgspec.structs.asdict(found), "items": ", ".join(found.items)}
    for name, text in shown_as.items():
        if text not in {None, ""}:
            say(f"{name + ':':<12}{indented(str(text), 12)}")
    if runs:
        say()
        for line in schedule_history.lines(runs):
            say(line)


def cells(row: Row, now: float) -> tuple[object, ...]:
    """Give what the table says of one appointment."""
    it = row.it
    state = f"paused ({it.paused})" if it.paused else "waits"
    if it.failures and not it.paused:
        state = f"failed {it.failures} times"
    return (
        row.id[:SHOWN_ID],
        it.kind,
        it.agent,
        first_words(f"{it.address.connector}/{it.address.chat}", 32),
        when(it.wakes),
        lasting(max(0.0, it.wakes - now)) if it.wakes else "",
        it.repeat or "once",
        state,
        first_words(words_of(it)),
    )
