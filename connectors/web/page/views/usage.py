"""Tokens and cost of models, and the state of budgets."""

from __future__ import annotations

import msgspec

from connectors.admin.usage import NAMES, PARTS, BudgetStatus
from connectors.web.page.views.base import (
    Look,
    View,
    ViewValues,
    budgets_of,
    chosen,
    reading,
)
from connectors.web.page.views.settings import may_change_of
from runtime.config.messages import dotted

DAY = 86_400.0
PERIODS = {"1 day": DAY, "7 days": 7 * DAY, "30 days": 30 * DAY}
USUAL = "7 days"
KEYS = {each: each for each in ("day", *NAMES, *PARTS)}

MOST_LISTED = 200
MOST_LIMITS = 50

LIMITS = {
    "soft_usd": "Soft limit",
    "hard_usd": "Hard limit",
    "soft_tokens": "Soft limit in tokens",
    "hard_tokens": "Hard limit in tokens",
}

FIRST_BUDGET = '[{scope = "all", period = "day", hard_usd = 5.0}]'
"""What is proposed where the settings name no budget."""


def read(look: Look) -> ViewValues:
    """Sum up a period by a chosen key."""
    inside = look.inside
    period, seconds = chosen(look.query.get("period", ""), PERIODS, USUAL)
    by, _ = chosen(look.query.get("by", ""), KEYS, "day")
    with look.database.inspect() as rows:
        found = inside.usage.sum_up(
            rows,
            by,
            (look.now - seconds, look.now),
            inside.services.clock,
            look.complain,
        )
        budgets = budgets_of(look, rows)
    *sums, total = found.sums
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
        "most": max((each.cost for each in sums), default=0.0),
        "hidden": max(0, len(sums) - MOST_LISTED),
        "total": total,
        "unread": found.unread,
        "budgets": [shown(each) for each in budgets[:MOST_LISTED]],
        "limits": limits_of(look),
        "first_budget": FIRST_BUDGET if may_change_of(look)(("budgets",)) else "",
    }


def limits_of(look: Look) -> list[dict[str, object]]:
    """Give the limits of each budget of the settings, with their settings' names."""
    may_change = may_change_of(look)
    return [
        {
            "scope": each.scope,
            "who": each.who,
            "period": each.period,
            "limits": [
                {
                    "label": label,
                    "value": getattr(each, key),
                    "is_money": key.endswith("usd"),
                    "setting": dotted(("budgets", number, key)),
                    "may_change": may_change(("budgets", number, key)),
                }
                for key, label in LIMITS.items()
            ],
        }
        for number, each in enumerate(look.config.budgets[:MOST_LIMITS])
    ]


def shown(it: BudgetStatus) -> dict[str, object]:
    """Add what part of a budget is spent, of 100; None: it has no limit."""
    parts = [
        100 * spent / (spent + left)
        for spent, left in (
            (it.spent_usd, it.left_usd),
            (it.spent_tokens, it.left_tokens),
        )
        if left is not None and spent + left > 0
    ]
    return {**msgspec.structs.asdict(it), "part": max(parts) if parts else None}


VIEW = View("usage", "Usage", reading(read), every=5.0)
