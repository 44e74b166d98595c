"""`callboard tasks`: what agents do now, what they are to do later, what they did."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING

import click
import msgspec

from actors.schedule_rows import SHOWN_ID
from connectors.commands.database import database_options, find_database, json_option
from connectors.commands.printing import complain, first_words, say, say_json, table
from connectors.commands.schedule_history import said, seconds
from connectors.commands.since import since_option
from connectors.office.appointments import Shown, all_rows, shown
from connectors.office.job import STATUSES, read_inbound
from connectors.office.moments import moment
from connectors.office.slot_runs import Reader, SlotRun, is_open
from runtime.rows import MAX_ROWS
from runtime.sqlite_browse import browse
from runtime.sqlite_survey import survey

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from runtime.sqlite_browse import Browser

HEADERS = ("STATUS", "WHEN", "ID", "KIND", "AGENT", "CHAT", "TEXT")


class Running(msgspec.Struct, frozen=True, kw_only=True):
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


class Tasks(msgspec.Struct, frozen=True):
    """All there is; the next one first, of what is over the last one."""

    running: list[Running]
    """What is due and begun, or waits for its agent."""

    to_do: list[Shown]
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
@json_option
def command(
    config: Path | None,
    db: Path | None,
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
    path = find_database(config, db)
    to_do = [shown(row) for row in all_rows(path) if agent in {None, row.it.agent}]
    with browse(path) as browser, survey(path) as rows:
        runs = Reader(rows, browser, complain).runs("", agent, since)
        over = (each for each in runs if not is_open(each.status))
        found = Tasks(
            running=list(running(browser, agent)),
            to_do=to_do,
            done=list(itertools.islice(over, limit)),
        )
    if as_json:
        say_json(found)
    elif not (found.running or found.to_do or found.done):
        say("There is nothing to do, and nothing was done.")
    else:
        for line in table(HEADERS, cells(found)):
            say(line)


def running(browser: Browser, agent: str | None) -> Iterator[Running]:
    """Give slots whose messages are not settled, the longest waiting first."""
    rows = browser.messages(["running", "accepted"], newest_first=False, limit=MAX_ROWS)
    for row in rows:
        inbound = read_inbound(row)
        if inbound is not None and inbound.occasion and agent in {None, inbound.agent}:
            yield Running(
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


def cells(found: Tasks) -> Iterator[tuple[object, ...]]:
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
