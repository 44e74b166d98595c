"""What the models took and cost, and what is left of the budgets."""

from __future__ import annotations

from typing import TYPE_CHECKING

from connectors.office.budgets import standings
from connectors.office.usage import NAMES, PARTS, sum_up
from connectors.web.page.looking import chosen, looked
from connectors.web.page.views import View
from runtime.sqlite_survey import survey

if TYPE_CHECKING:
    from connectors.web.page.looking import Look
    from connectors.web.page.views import Asked, Shown

DAY = 86_400.0
PERIODS = {"1 day": DAY, "7 days": 7 * DAY, "30 days": 30 * DAY}
USUAL = "7 days"
KEYS = {each: each for each in ("day", *NAMES, *PARTS)}

MOST_LISTED = 200


async def load(asked: Asked) -> Shown:
    """Show the sums."""
    return await looked(asked, read)


def read(look: Look) -> Shown:
    """Sum up a period, by what is chosen."""
    period, seconds = chosen(look.query.get("period", ""), PERIODS, USUAL)
    by, _ = chosen(look.query.get("by", ""), KEYS, "day")
    with survey(look.path) as rows:
        *sums, total = sum_up(rows, by, look.now - seconds, look.complain)
        budgets = standings(rows, look.config, look.now, look.complain)
    if by == "day":
        sums.reverse()
    else:
        sums.sort(key=lambda each: (-each.cost, -each.input_tokens, each.name))
    return {
        "period": period,
        "periods": list(PERIODS),
        "by": by,
        "keys": list(KEYS),
        "sums": sums[:MOST_LISTED],
        "hidden": max(0, len(sums) - MOST_LISTED),
        "total": total,
        "budgets": budgets[:MOST_LISTED],
    }


VIEW = View("usage", "Usage", load, every=15.0)
