"""`callboard usage`: what the models took, summed up."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from connectors.commands import budgets
from connectors.commands.database import (
    database_options,
    find_database,
    json_option,
    settings_beside,
)
from connectors.commands.printing import complain, say, say_json, table
from connectors.commands.since import since_option
from connectors.office.budgets import standings
from connectors.office.usage import NAMES, PARTS, sum_up
from runtime.clock import SystemClock
from runtime.sqlite_survey import survey

if TYPE_CHECKING:
    from pathlib import Path

    from connectors.office.usage import Sum

WHY = "calls that were cut off, or whose provider told none"


@click.command()
@database_options
@click.option(
    "--by",
    type=click.Choice([*NAMES, *PARTS]),
    default="agent",
    show_default=True,
)
@click.option(
    "--budgets", "shows_budgets", is_flag=True, help="What is left of each budget."
)
@since_option
@json_option
def command(
    config: Path | None,
    db: Path | None,
    by: str,
    since: float,
    *,
    shows_budgets: bool,
    as_json: bool,
) -> None:
    """Sum up tokens, cost and time of all turns, failed ones included.

    Cost is by the price list, or the prices in the settings, at the time; 0 without.
    A turn that asked several models counts as a run of each.
    """
    if shows_budgets:
        settings = settings_beside(config, db)
        if settings is None:
            raise click.UsageError("budgets stand in the settings: give --config FILE")
        with survey(find_database(config, db)) as rows:
            now = SystemClock().wall()
            found = standings(rows, settings.value, now, complain)
        budgets.tell(found, as_json=as_json)
        return
    with survey(find_database(config, db)) as rows:
        sums = sum_up(rows, by, since, complain)
    if as_json:
        say_json(sums[:-1])
    elif not sums[-1].runs:
        say("No model has been asked in that time.")
    else:
        headers = (by.upper(), "RUNS", "TOKENS IN", "TOKENS OUT", "COST $", "SECONDS")
        for line in table(headers, map(cells, sums)):
            say(line)
        if sums[-1].reckoned_tokens:
            say(f"Of these, {sums[-1].reckoned_tokens} tokens are reckoned: {WHY}.")


def cells(found: Sum) -> tuple[object, ...]:
    """Give what the table says of a sum."""
    return (
        found.name,
        found.runs,
        found.input_tokens,
        found.output_tokens,
        f"{found.cost:.4f}",
        f"{found.seconds:.1f}",
    )
