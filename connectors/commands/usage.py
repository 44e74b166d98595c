"""`callboard usage`: what the models took, summed up.

`callboard usage --budgets`: what was spent of each budget, and what is left.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from connectors.admin.usage import NAMES, PARTS, budget_statuses, sum_up
from connectors.commands.common.database import DatabaseChoice, database_options
from connectors.commands.common.options import since_option
from connectors.commands.common.output import (
    complain,
    rows_options,
    say,
    say_json,
    say_rows,
)
from runtime.clock import SystemClock

if TYPE_CHECKING:
    from connectors.admin.usage import BudgetStatus, UsageSum


HEADERS = ("BUDGET", "WHO", "PERIOD", "SPENT $", "LEFT $", "TOKENS", "LEFT TOKENS")


def budget_cells(each: BudgetStatus) -> tuple[object, ...]:
    """Give the columns of one budget."""
    left = None if each.left_usd is None else f"{each.left_usd:.4f}"
    return (
        each.scope,
        each.who,
        each.period,
        f"{each.spent_usd:.4f}",
        left,
        each.spent_tokens,
        each.left_tokens,
    )


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
@rows_options
def command(
    choice: DatabaseChoice,
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
        say_budgets(choice, as_json=as_json)
        return
    with choice.database.inspect() as rows:
        sums = sum_up(rows, by, since, complain)
    if as_json:
        say_json(sums[:-1])
        return
    headers = (by.upper(), "RUNS", "TOKENS IN", "TOKENS OUT", "COST $", "SECONDS")
    shown = sums if sums[-1].runs else []
    say_rows(shown, headers, cells, "No model has been asked in that time.")
    if sums[-1].reckoned_tokens:
        say(f"Of these, {sums[-1].reckoned_tokens} tokens are reckoned: {WHY}.")


def say_budgets(choice: DatabaseChoice, *, as_json: bool) -> None:
    """Say what is left of each budget."""
    if choice.settings is None:
        raise click.UsageError("budgets stand in the settings: give --config FILE")
    with choice.database.inspect() as rows:
        now = SystemClock().wall()
        found = budget_statuses(rows, choice.settings.value, now, complain)
    if as_json:
        say_json(found)
    else:
        none = "The settings name no budget: add [[budgets]]."
        say_rows(found, HEADERS, budget_cells, none)


def cells(found: UsageSum) -> tuple[object, ...]:
    """Give the columns of a sum."""
    return (
        found.name,
        found.runs,
        found.input_tokens,
        found.output_tokens,
        f"{found.cost:.4f}",
        f"{found.seconds:.1f}",
    )
