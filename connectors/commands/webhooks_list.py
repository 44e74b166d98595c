"""`callboard webhooks list`: the events that are not sent."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click
import msgspec

from connectors.commands.database import database_options, find_database, json_option
from connectors.commands.noticed import Row, all_rows
from connectors.commands.printing import first_words, say, say_json, table
from connectors.office.moments import lasting, moment, when
from runtime.clock import SystemClock

if TYPE_CHECKING:
    from pathlib import Path

HEADERS = ("ID", "WEBHOOK", "EVENT", "AGE", "STATE", "TRIES", "NEXT", "WHY")


class Shown(msgspec.Struct, frozen=True):
    """One event, for programs."""

    id: str
    webhook: str
    event: str
    state: str
    made_at: str | None
    tries: int
    next_at: str | None
    why: str
    body: str


@click.command("list")
@database_options
@click.option("--webhook", metavar="NAME", help="Only this one's.")
@click.option("--failed", is_flag=True, help="Only those that were given up.")
@json_option
def list_events(
    config: Path | None,
    db: Path | None,
    webhook: str | None,
    *,
    failed: bool,
    as_json: bool,
) -> None:
    """List the events that are not sent, the oldest first."""
    rows = all_rows(find_database(config, db))
    rows = [row for row in rows if webhook in {None, row.webhook}]
    rows = [row for row in rows if row.is_dead or not failed]
    if as_json:
        say_json([shown(row) for row in rows])
    elif not rows:
        say("No event waits to be sent.")
    else:
        now = SystemClock().wall()
        for line in table(HEADERS, [cells(row, now) for row in rows]):
            say(line)


def shown(row: Row) -> Shown:
    """Give an event as programs get it."""
    notice = row.notice
    return Shown(
        id=row.id,
        webhook=row.webhook,
        event=notice.event,
        state=state_of(row),
        made_at=moment(notice.made_at),
        tries=notice.attempts,
        next_at=moment(notice.due_at),
        why=notice.why,
        body=notice.body,
    )


def cells(row: Row, now: float) -> tuple[object, ...]:
    """Give what the table says of one event."""
    notice = row.notice
    return (
        row.id,
        row.webhook,
        notice.event,
        lasting(max(0.0, now - notice.made_at)),
        state_of(row),
        notice.attempts,
        when(notice.due_at),
        first_words(notice.why),
    )


def state_of(row: Row) -> str:
    """Say how an event stands."""
    return "given up" if row.is_dead else "waits"
