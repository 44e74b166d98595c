"""`callboard usage --budgets`: what was spent of each budget, and what is left."""

from __future__ import annotations

from typing import TYPE_CHECKING

from connectors.commands.printing import say, say_json, table

if TYPE_CHECKING:
    from connectors.office.budgets import Standing

HEADERS = ("BUDGET", "WHO", "PERIOD", "SPENT $", "LEFT $", "TOKENS", "LEFT TOKENS")


def tell(found: list[Standing], *, as_json: bool) -> None:
    """Write the standings to standard output."""
    if as_json:
        say_json(found)
    elif not found:
        say("The settings name no budget: add [[budgets]].")
    else:
        for line in table(HEADERS, map(cells, found)):
            say(line)


def cells(each: Standing) -> tuple[object, ...]:
    """Give what the table says of one."""
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
