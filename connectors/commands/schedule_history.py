"""`callboard schedule history`: what became of each time of an appointment."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from actors.schedule_rows import SHOWN_ID
from connectors.commands.database import database_options, find_database, json_option
from connectors.commands.printing import (
    complain,
    first_words,
    say,
    say_json,
    table,
)
from connectors.commands.since import since_option
from connectors.office.appointments import read_runs

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

    from connectors.office.slot_runs import SlotRun

HEADERS = (
    "ID", "KIND", "AGENT", "DUE", "LATE S", "ENDED", "STATUS", "TOKENS IN",
    "TOKENS OUT", "COST $", "TEXT",
)  # fmt: skip


@click.command()
@database_options
@click.argument("prefix", metavar="[ID]", default="")
@click.option("--agent", help="Only this agent's.")
@since_option
@click.option(
    "--limit", type=click.IntRange(1, 1_000_000), default=50, show_default=True
)
@json_option
def history(  # noqa: PLR0913  one for each option
    config: Path | None,
    db: Path | None,
    prefix: str,
    agent: str | None,
    since: float,
    limit: int,
    *,
    as_json: bool,
) -> None:
    """Show what was carried out or left out, and why, the last one first.

    Of ID the beginning is enough; appointments that are over are shown, too. How long
    this is kept, `scheduler.history_days` says.
    """
    path = find_database(config, db)
    found = read_runs(path, prefix, limit, complain, agent=agent, since=since)
    if as_json:
        for each in found:
            say_json(each, is_line=True)
    elif not found:
        say("Nothing was due that fits.")
    else:
        for line in lines(found):
            say(line)


def lines(found: Iterable[SlotRun]) -> Iterator[str]:
    """Write slots as a table."""
    yield from table(HEADERS, map(cells, found))


def cells(run: SlotRun) -> tuple[object, ...]:
    """Give what the table says of one slot."""
    took = bool(run.input_tokens or run.output_tokens or run.cost)
    return (
        run.appointment[:SHOWN_ID],
        run.kind,
        run.agent,
        seconds(run.due_at),
        f"{run.late:.1f}",
        seconds(run.ended_at),
        said(run),
        run.input_tokens if took else "",
        run.output_tokens if took else "",
        f"{run.cost:.4f}" if took else "",
        first_words(run.text),
    )


def said(run: SlotRun) -> str:
    """Say in a few words how it ended."""
    words = f"{run.status}:{run.reason}" if run.reason else run.status
    return f"{words} x{run.count}" if run.count > 1 else words


def seconds(moment: str | None) -> str:
    """Leave the milliseconds out of a time in ISO 8601."""
    return "" if moment is None else moment[:19] + moment[23:]
