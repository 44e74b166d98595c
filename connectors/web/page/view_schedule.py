"""What agents are to do later, and what became of the times that are over."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from connectors.office import appointments
from connectors.office.appointments import all_rows, find_row, read_runs, shown
from connectors.web.page.looking import changed, looked
from connectors.web.page.views import View

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from connectors.web.page.looking import Look
    from connectors.web.page.views import Asked, Shown
    from runtime.sqlite_mend import Mended

    Change = Callable[[Path, str], Mended]

MOST_LISTED = 200
MOST_RUNS = 50


async def load(asked: Asked) -> Shown:
    """List appointments and their last times, or show one."""
    return await looked(asked, read_one if asked.query.get("id") else read_list)


def read_list(look: Look) -> Shown:
    """List appointments, the next one first, and what was due last."""
    rows = all_rows(look.path)
    return {
        "one": None,
        "rows": [shown(each) for each in rows[:MOST_LISTED]],
        "hidden": max(0, len(rows) - MOST_LISTED),
        "runs": read_runs(look.path, "", MOST_RUNS, look.complain),
    }


def read_one(look: Look) -> Shown:
    """Show one appointment, and what became of its times."""
    row = find_row(look.path, look.query["id"])
    runs = read_runs(look.path, row.id, MOST_RUNS, look.complain)
    return {"one": shown(row), "rows": [], "hidden": 0, "runs": runs}


async def pause(asked: Asked) -> str:
    """Let an appointment rest."""
    return await by_hand(asked, appointments.pause, "pause", "paused")


async def resume(asked: Asked) -> str:
    """Take an appointment up again."""
    return await by_hand(asked, appointments.resume, "resume", "resumed")


async def run(asked: Asked) -> str:
    """Have an appointment carried out now."""
    return await by_hand(asked, appointments.run_now, "run", "begun")


async def by_hand(asked: Asked, change: Change, verb: str, status: str) -> str:
    """Change an appointment as the command line does."""

    def made(path: Path) -> Mended:
        return change(path, asked.form.get("id", ""))

    return await changed(asked, partial(made), verb, status)


ACTIONS = {"pause": pause, "resume": resume, "run": run}
VIEW = View("schedule", "Schedule", load, every=5.0, actions=ACTIONS)
