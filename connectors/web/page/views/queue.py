"""The queue: messages that wait or failed, with retry and drop by hand."""

from __future__ import annotations

from datetime import UTC, datetime
from functools import partial
from typing import TYPE_CHECKING

from connectors.admin.job import STATES, QueueJob
from connectors.admin.overview import read_waiting
from connectors.admin.queue import (
    USUAL,
    collect,
    drop_one,
    read_jobs,
    read_unsent,
    retry_one,
)
from connectors.web.page.views.base import View, change_by_hand, number_of, read_view

if TYPE_CHECKING:
    from connectors.web.page.views.base import Look, ViewRequest, ViewValues
    from runtime.store.database import Database, RepairResult

MOST_LISTED = 50


async def load(asked: ViewRequest) -> ViewValues:
    """List messages, or show one with its deliveries."""
    return await read_view(asked, read_one if asked.query.get("id") else read_list)


def read_list(look: Look) -> ViewValues:
    """List messages, the newest first, and unsent deliveries."""
    state = look.query.get("state", "")
    wanted = (state,) if state in STATES else USUAL
    past = number_of(look.query.get("past", ""))
    with look.database.inspect() as store:
        found = read_jobs(store, wanted, MOST_LISTED, look.complain, past)
        waiting = read_waiting(store)
        unsent = read_unsent(store, MOST_LISTED)
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
        "unsent": unsent,
    }


def read_one(look: Look) -> ViewValues:
    """Read one message with its deliveries."""
    name = look.query["id"].partition(":")[0]
    key = look.inside.services.receipt_key
    with look.database.inspect() as rows:
        whole = collect(rows, name, key, look.complain)
    due_at = whole.message.due_at
    is_put_off = due_at is not None and datetime.fromisoformat(due_at) > now_of(look)
    return {
        "id": name,
        "whole": whole,
        "gone": [each.id for each in whole.deliveries if each.is_gone],
        **may(whole.message, is_put_off=is_put_off),
    }


def may(job: QueueJob, *, is_put_off: bool) -> dict[str, bool]:
    """Say what can be done about a message, as `runtime.store.database` decides it."""
    waits = job.status == "pending"
    has_failed = job.state == "dead"  # its writer was not told to ask anew
    return {
        "may_retry": has_failed or (waits and is_put_off),
        "may_drop": has_failed or waits,
    }


def now_of(look: Look) -> datetime:
    """Give the time of a reading."""
    return datetime.fromtimestamp(look.now, UTC)


async def retry(asked: ViewRequest) -> str:
    """Retry a message or a delivery."""
    return await change_by_hand(asked, partial(retried, asked), "retry", "retried")


async def drop(asked: ViewRequest) -> str:
    """Drop a message or a delivery."""
    return await change_by_hand(asked, partial(dropped, asked), "drop", "dropped")


def retried(asked: ViewRequest, database: Database) -> RepairResult:
    """Retry it, as `callboard queue retry` does."""
    now = asked.inside.services.clock.wall()
    return retry_one(database, asked.form.get("id", ""), now)


def dropped(asked: ViewRequest, database: Database) -> RepairResult:
    """Drop it, as `callboard queue drop` does."""
    now = asked.inside.services.clock.wall()
    return drop_one(database, asked.form.get("id", ""), now)


VIEW = View("queue", "Queue", load, every=3.0, actions={"retry": retry, "drop": drop})
