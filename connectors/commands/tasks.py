"""`callboard tasks`: what agents do now, what they are to do later, what they did."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import click
import msgspec

from actors.journal.notices import SHOWN_ID
from connectors.admin.display import STATUSES, moment, read_inbound
from connectors.admin.schedule import (
    ShownAppointment,
    SlotRun,
    SlotRunReader,
    all_rows,
    is_open,
    shown,
)
from connectors.commands.common.database import DatabaseChoice, database_options
from connectors.commands.common.options import since_option
from connectors.commands.common.output import (
    complain,
    first_words,
    rows_options,
    say_json,
    say_rows,
)
from connectors.commands.schedule import said, seconds
from runtime.store.database import Inspection
from runtime.store.rows import MAX_ROWS, InboxState

HEADERS = ("STATUS", "WHEN", "ID", "KIND", "AGENT", "CHAT", "TEXT")


class RunningTask(msgspec.Struct, frozen=True, kw_only=True):
    """One slot that is begun, or waits for its agent; times in ISO 8601, local."""

    appointment: str
    kind: str
    agent: str
    connector: str
    chat: str
    text: str
    status: str
    """`running`, or `pending`: as in `queue list`."""

    since: str | None
    message: str
    """Its id; `queue show` tells the rest."""

    attempts: int


class TaskReport(msgspec.Struct, frozen=True):
    """All there is; the next one first, of what is over the last one."""

    running: list[RunningTask]
    """What is due and begun, or waits for its agent."""

    to_do: list[ShownAppointment]
    done: list[SlotRun]
    """What was carried out, and what was left out with a reason."""


@click.command()
@database_options
@click.option("--agent", help="Only this agent's.")
@since_option
@click.option(
    "--limit",
    type=click.IntRange(1, 1_000_000),
    default=20,
    show_default=True,
    help="Most of what is over.",
)
@rows_options
def command(
    choice: DatabaseChoice,
    agent: str | None,
    since: float,
    limit: int,
    *,
    as_json: bool,
) -> None:
    """Show what agents do of themselves: running, to be done, done.

    That is reminders, tasks, cron and heartbeats; messages of people are shown by
    `callboard queue list`. With --since only what was begun from then on is shown of
    what is over.
    """
    with choice.database.inspect() as rows:
        runs = SlotRunReader(rows, complain).runs("", agent, since)
        over = (each for each in runs if not is_open(each.status))
        found = TaskReport(
            running=list(running(rows, agent)),
            to_do=[
                shown(row) for row in all_rows(rows) if agent in {None, row.it.agent}
            ],
            done=list(itertools.islice(over, limit)),
        )
    if as_json:
        say_json(found)
    else:
        none = "There is nothing to do, and nothing was done."
        say_rows(list(cells(found)), HEADERS, tuple, none)


def running(rows: Inspection, agent: str | None) -> Iterator[RunningTask]:
    """Give slots whose messages are not settled, the longest waiting first."""
    states: list[InboxState] = ["running", "accepted"]
    for row in rows.messages(states, newest_first=False, limit=MAX_ROWS):
        inbound = read_inbound(row)
        if inbound is not None and inbound.occasion and agent in {None, inbound.agent}:
            yield RunningTask(
                appointment=inbound.platform_id.partition("@")[0],
                kind="reminder" if inbound.occasion == "said" else inbound.occasion,
                agent=inbound.agent,
                connector=row.connector,
                chat=inbound.address.chat,
                text=inbound.text,
                status=STATUSES[row.state],
                since=moment(row.started_at or row.at),
                message=row.id,
                attempts=row.attempts,
            )


def cells(found: TaskReport) -> Iterator[tuple[object, ...]]:
    """Give what the table says."""
    for now in found.running:
        chat = first_words(f"{now.connector}/{now.chat}", 32)
        name = now.appointment[:SHOWN_ID]
        since, text = seconds(now.since), first_words(now.text)
        yield (now.status, since, name, now.kind, now.agent, chat, text)
    for it in found.to_do:
        status = f"paused:{it.paused}" if it.paused else "to do"
        chat = first_words(f"{it.connector}/{it.chat}", 32)
        what = first_words(it.text or "; ".join(it.items))
        due = seconds(it.next_at)
        yield (status, due, it.id[:SHOWN_ID], it.kind, it.agent, chat, what)
    for run in found.done:
        chat = first_words(f"{run.connector}/{run.chat}", 32)
        ended = seconds(run.ended_at)
        name = run.appointment[:SHOWN_ID]
        text = first_words(run.text)
        yield (said(run), ended, name, run.kind, run.agent, chat, text)
