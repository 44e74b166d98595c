"""The schedule: appointments of agents, and their last runs."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import msgspec

from connectors.admin import schedule
from connectors.admin.schedule import all_rows, find_row, read_runs, shown
from connectors.web.page.views.base import (
    Look,
    View,
    ViewRequest,
    ViewValues,
    change_by_hand,
    names_of,
    place_text,
    reading,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from actors.schedule.appointments import Appointment
    from runtime.store.database import Database, RepairResult

    Change = Callable[[Database, str], RepairResult]

MOST_LISTED = 200
MOST_RUNS = 50


def read_list(look: Look) -> ViewValues:
    """List appointments that fit, the next one first, and the last runs."""
    find, agent = (look.query.get(name, "").strip() for name in ("find", "agent"))
    with look.database.inspect() as rows:
        known = names_of(rows)
        found = [each for each in all_rows(rows) if fits(each.it, find, agent, known)]
        runs = read_runs(rows, "", MOST_RUNS, look.complain, agent=agent or None)
    return {
        "one": None,
        "find": find,
        "agent": agent,
        "agents": list(look.config.agents),
        "rows": [
            {
                **msgspec.structs.asdict(shown(each)),
                "place": place_text(each.it.address.connector, each.it.address.chat),
                "who": known.get(each.it.sender_id, each.it.sender_id),
            }
            for each in found[:MOST_LISTED]
        ],
        "hidden": max(0, len(found) - MOST_LISTED),
        "runs": runs,
    }


def fits(it: Appointment, find: str, agent: str, known: Mapping[str, str]) -> bool:
    """Whether an appointment is of an agent and has these words somewhere."""
    place = place_text(it.address.connector, it.address.chat)
    who = f"{it.sender_id} {known.get(it.sender_id, '')}"
    words = " ".join((it.text, *it.items, it.agent, place, who)).casefold()
    return agent in {"", it.agent} and find.casefold() in words


def read_one(look: Look) -> ViewValues:
    """Read one appointment, and its runs."""
    with look.database.inspect() as rows:
        row = find_row(rows, look.query["id"])
        runs = read_runs(rows, row.id, MOST_RUNS, look.complain)
    return {"one": shown(row), "rows": [], "hidden": 0, "runs": runs}


async def pause(asked: ViewRequest) -> str:
    """Pause an appointment."""
    return await by_hand(asked, schedule.pause, "pause", "paused")


async def resume(asked: ViewRequest) -> str:
    """Resume an appointment."""
    return await by_hand(asked, schedule.resume, "resume", "resumed")


async def run(asked: ViewRequest) -> str:
    """Run an appointment now."""
    return await by_hand(asked, schedule.run_now, "run", "begun")


async def by_hand(asked: ViewRequest, change: Change, verb: str, status: str) -> str:
    """Change an appointment as the command line does."""

    def made(database: Database) -> RepairResult:
        return change(database, asked.form.get("id", ""))

    return await change_by_hand(asked, partial(made), verb, status)


ACTIONS = {"pause": pause, "resume": resume, "run": run}
VIEW = View(
    "schedule", "Schedule", reading(read_list, read_one), every=5.0, actions=ACTIONS
)
