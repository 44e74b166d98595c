"""`callboard queue list`: messages as jobs, the newest first."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from connectors.commands.database import database_options, find_database, json_option
from connectors.commands.job import STATES, Job, job_of
from connectors.commands.printing import first_words, lasting, say, say_json, table
from runtime.clock import SystemClock
from runtime.errors import MisuseError
from runtime.rows import MAX_ROWS
from runtime.sqlite_browse import browse
from runtime.sqlite_survey import survey

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from runtime.rows import InboxState, StoredMessage
    from runtime.sqlite_browse import Browser

USUAL = ("pending", "running", "failed")
"""What is listed unless somebody asks for something else."""

HEADERS = (
    "ID", "STATUS", "PRIO", "TRIES", "CHAT", "AGENT", "AGE", "DUE IN", "REASON", "TEXT"
)  # fmt: skip

# Chosen: time to the millisecond and 15 random bits; what was made in the same
# millisecond is told apart by the whole id.
SHORT = 13


@click.command("list")
@database_options
@click.option(
    "--state",
    "statuses",
    type=click.Choice(list(STATES)),
    multiple=True,
    help=f"Only these; may be repeated. Without it: {', '.join(USUAL)}.",
)
@click.option(
    "--limit", type=click.IntRange(1, MAX_ROWS - 1), default=100, show_default=True
)
@json_option
def list_jobs(
    config: Path | None,
    db: Path | None,
    statuses: tuple[str, ...],
    limit: int,
    *,
    as_json: bool,
) -> None:
    """List messages, the newest first."""
    path = find_database(config, db)
    wanted = statuses or USUAL
    states: list[InboxState] = [each for status in wanted for each in STATES[status]]
    with browse(path) as browser, survey(path) as rows:
        found = browser.messages(states, limit=limit + 1)
        jobs = [job_of(row, rows) for row in found[:limit]]
        short = {job.id: shortened(browser, job.id) for job in jobs}
    if as_json:
        say_json(jobs)
        return
    if not jobs:
        say(f"No message is {' or '.join(wanted)}.")
        return
    for line in table(HEADERS, cells(jobs, found, short)):
        say(line)
    if len(found) > limit:
        say(f"There are more than these {limit}; see --limit.")


def shortened(browser: Browser, name: str) -> str:
    """Give the beginning of a message's id, if that means no other one."""
    try:
        browser.message(name[:SHORT])
    except MisuseError:
        return name
    return name[:SHORT]


def cells(
    jobs: list[Job], rows: tuple[StoredMessage, ...], short: dict[str, str]
) -> Iterator[tuple[object, ...]]:
    """Give what the table says of each job."""
    now = SystemClock().wall()
    for job, row in zip(jobs, rows, strict=False):
        waits = row.due_at - now if job.status == "pending" else 0.0
        yield (
            short[job.id],
            job.status,
            job.priority,
            job.attempts,
            first_words(f"{job.connector}/{job.chat}", 32),
            job.agent,
            lasting(now - row.at),
            lasting(waits) if waits > 0 else "",
            job.reason,
            first_words(job.text),
        )
