"""`callboard queue list`: messages as jobs, the newest first."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from connectors.commands.database import database_options, find_database, json_option
from connectors.commands.printing import complain, first_words, say, say_json, table
from connectors.office.job import STATES
from connectors.office.moments import lasting
from connectors.office.queue import USUAL, read_jobs
from runtime.clock import SystemClock
from runtime.rows import MAX_ROWS

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from connectors.office.queue import Jobs

HEADERS = (
    "ID", "STATUS", "PRIO", "TRIES", "CHAT", "AGENT", "AGE", "DUE IN", "REASON", "TEXT"
)  # fmt: skip


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
    found = read_jobs(path, wanted, limit, complain)
    if as_json:
        say_json(found.jobs)
        return
    if not found.jobs:
        say(f"No message is {' or '.join(wanted)}.")
        return
    for line in table(HEADERS, cells(found)):
        say(line)
    if found.next:
        say(f"There are more than these {limit}; see --limit.")


def cells(found: Jobs) -> Iterator[tuple[object, ...]]:
    """Give what the table says of each job."""
    now = SystemClock().wall()
    for job, row in zip(found.jobs, found.rows, strict=True):
        waits = row.due_at - now if job.status == "pending" else 0.0
        yield (
            found.short[job.id],
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
