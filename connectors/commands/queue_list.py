"""`callboard queue list`: messages as jobs, or unsent deliveries; the newest first."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from connectors.commands.database import database_options, find_database, json_option
from connectors.commands.printing import complain, first_words, say, say_json, table
from connectors.commands.queue_show import HEADERS as UNSENT_HEADERS
from connectors.commands.queue_show import cells_of
from connectors.office.job import STATES
from connectors.office.moments import lasting
from connectors.office.queue import USUAL, count_unsent, read_jobs, read_unsent
from runtime.clock import SystemClock
from runtime.rows import MAX_ROWS

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
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
    "--unsent",
    is_flag=True,
    help="Instead, deliveries that were given up or may not have been sent.",
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
    unsent: bool,
    as_json: bool,
) -> None:
    """List messages, the newest first.

    A delivery is one message to people. One that was dropped by hand, or whose client
    has gone (over HTTP), has not failed and is not among the unsent ones.
    """
    path = find_database(config, db)
    if unsent:
        if statuses:
            raise click.UsageError("give --state for messages, or --unsent")
        list_unsent(path, limit, as_json=as_json)
        return
    wanted = statuses or USUAL
    list_messages(path, wanted, limit, as_json=as_json)
    if "failed" in wanted and not as_json and (count := count_unsent(path)):
        what = "delivery was" if count == 1 else "deliveries were"
        say(f"{count:,} {what} not sent: callboard queue list --unsent")


def list_unsent(path: Path, limit: int, *, as_json: bool) -> None:
    """List the deliveries that `queue retry --all-failed` would send again."""
    found = read_unsent(path, limit + 1)
    shown = found[:limit]
    if as_json:
        say_json(shown)
        return
    if not found:
        say("Every delivery was sent, is still to be sent, or is wanted by nobody.")
        return
    for line in table(UNSENT_HEADERS, cells_of(shown)):
        say(line)
    if len(found) > limit:
        say(f"There are more than these {limit}; see --limit.")


def list_messages(
    path: Path, wanted: Sequence[str], limit: int, *, as_json: bool
) -> None:
    """List messages with any of these statuses."""
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
