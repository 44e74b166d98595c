"""Messages as jobs: what waits, what failed, and what is done about that by hand."""

from __future__ import annotations

from datetime import UTC, datetime
from functools import partial
from typing import TYPE_CHECKING

from connectors.office.job import STATES
from connectors.office.overview import read_waiting
from connectors.office.queue import (
    USUAL,
    collect,
    drop_one,
    read_jobs,
    read_unsent,
    retry_one,
)
from connectors.web.page.looking import changed, looked, number_of
from connectors.web.page.views import View

if TYPE_CHECKING:
    from pathlib import Path

    from connectors.office.job import Job
    from connectors.web.page.looking import Look
    from connectors.web.page.views import Asked, Shown
    from runtime.sqlite_mend import Mended

MOST_LISTED = 50


async def load(asked: Asked) -> Shown:
    """List messages, or show one with all that belongs to it."""
    return await looked(asked, read_one if asked.query.get("id") else read_list)


def read_list(look: Look) -> Shown:
    """List messages, the newest first, and deliveries that were not sent."""
    state = look.query.get("state", "")
    wanted = (state,) if state in STATES else USUAL
    past = number_of(look.query.get("past", ""))
    found = read_jobs(look.path, wanted, MOST_LISTED, look.complain, past)
    waiting = read_waiting(look.path)
    rows = [
        {
            "job": job,
            "age": look.now - row.at,
            "due_in": row.due_at - look.now,
            **may(job, is_put_off=row.due_at > look.now),
        }
        for job, row in zip(found.jobs, found.rows, strict=True)
    ]
    return {
        "id": "",
        "rows": rows,
        "short": found.short,
        "next": found.next,
        "past": past,
        "state": state if state in STATES else "",
        "states": list(STATES),
        "inbox": waiting.inbox,
        "outbox": waiting.outbox,
        "unsent": read_unsent(look.path, MOST_LISTED),
    }


def read_one(look: Look) -> Shown:
    """Show everything of one message."""
    name = look.query["id"].partition(":")[0]
    whole = collect(look.path, name, look.complain)
    due_at = whole.message.due_at
    is_put_off = due_at is not None and datetime.fromisoformat(due_at) > now_of(look)
    return {
        "id": name,
        "whole": whole,
        "gone": [each.id for each in whole.deliveries if each.is_gone],
        **may(whole.message, is_put_off=is_put_off),
    }


def may(job: Job, *, is_put_off: bool) -> dict[str, bool]:
    """Say what can be done about a message, as `runtime.sqlite_mend` lets one."""
    waits = job.status == "pending"
    has_failed = job.status == "failed"
    return {
        "may_retry": has_failed or (waits and is_put_off),
        "may_drop": has_failed or waits,
    }


def now_of(look: Look) -> datetime:
    """Give the time of a look."""
    return datetime.fromtimestamp(look.now, UTC)


async def retry(asked: Asked) -> str:
    """Try a message, or a delivery, again."""
    return await changed(asked, partial(retried, asked), "retry", "retried")


async def drop(asked: Asked) -> str:
    """Give a message, or a delivery, up."""
    return await changed(asked, partial(dropped, asked), "drop", "dropped")


def retried(asked: Asked, path: Path) -> Mended:
    """Do it, as `callboard queue retry` does."""
    now = asked.inside.services.clock.wall()
    return retry_one(path, asked.form.get("id", ""), now)


def dropped(asked: Asked, path: Path) -> Mended:
    """Do it, as `callboard queue drop` does."""
    now = asked.inside.services.clock.wall()
    return drop_one(path, asked.form.get("id", ""), now)


VIEW = View("queue", "Queue", load, every=3.0, actions={"retry": retry, "drop": drop})
