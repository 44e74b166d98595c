"""`callboard queue`: looks at messages; retries or drops them by hand."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click
import msgspec

from connectors.admin.display import NONE, OVER, STATES, QueueJob, lasting
from connectors.admin.queue import (
    RETRIED,
    USUAL,
    ShownDelivery,
    WholeMessage,
    collect,
    count_unsent,
    drop_one,
    read_jobs,
    read_unsent,
    retry_one,
)
from connectors.commands.common.database import DatabaseChoice, database_options
from connectors.commands.common.output import (
    FAILED,
    complain,
    indented,
    is_wanted,
    named_or_all,
    refuse_unclear,
    rows_options,
    say,
    say_json,
    say_rows,
    table,
)
from connectors.commands.replay import lines_of
from runtime.clock import SystemClock
from runtime.errors import MisuseError
from runtime.store.database import Database, Inspection, RepairResult
from runtime.store.rows import MAX_ROWS, DeliveryState, StoredMessage

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    Change = Callable[[Database, str, float], RepairResult]

JOB_HEADERS = (
    "ID", "STATUS", "PRIO", "TRIES", "CHAT", "AGENT", "AGE", "DUE IN", "REASON", "TEXT"
)  # fmt: skip
DELIVERY_HEADERS = (
    "DELIVERY", "STATE", "TRIES", "ENQUEUED", "SETTLED", "RECEIPT", "TEXT"
)  # fmt: skip
WIDEST = 14

# Why a drop takes fewer: a dead delivery is not sent any more as it is.
DROPPABLE: tuple[DeliveryState, ...] = ("unknown",)


@click.group()
def command() -> None:
    """Look at messages that wait, run or failed; try them again or drop them.

    May be used while `callboard serve` is running: it takes changes up within
    seconds.
    """


@command.command("list")
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
@rows_options
def list_(
    choice: DatabaseChoice,
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
    if unsent and statuses:
        raise click.UsageError("give --state for messages, or --unsent")
    wanted = statuses or USUAL
    with choice.database.inspect() as rows:
        if unsent:
            list_unsent(rows, limit, as_json=as_json)
            return
        list_jobs(rows, wanted, limit, as_json=as_json)
        count = count_unsent(rows) if "failed" in wanted and not as_json else 0
    if count:
        what = "delivery was" if count == 1 else "deliveries were"
        say(f"{count:,} {what} not sent: callboard queue list --unsent")


def list_unsent(rows: Inspection, limit: int, *, as_json: bool) -> None:
    """List the deliveries that `queue retry --all-failed` would send again."""
    found = read_unsent(rows, limit + 1)
    none = "Every delivery was sent, is still to be sent, or is wanted by nobody."
    say_rows(found[:limit], DELIVERY_HEADERS, delivery_cells, none, as_json=as_json)
    if len(found) > limit and not as_json:
        say(f"There are more than these {limit}; see --limit.")


def list_jobs(
    rows: Inspection, wanted: Sequence[str], limit: int, *, as_json: bool
) -> None:
    """List messages with any of these statuses."""
    found = read_jobs(rows, wanted, limit, complain)
    if as_json:
        say_json(found.jobs)
        return
    now, pairs = SystemClock().wall(), zip(found.jobs, found.rows, strict=True)
    shown = [job_cells(job, row, found.short[job.id], now) for job, row in pairs]
    say_rows(shown, JOB_HEADERS, tuple, f"No message is {' or '.join(wanted)}.")
    if found.next:
        say(f"There are more than these {limit}; see --limit.")


def job_cells(
    job: QueueJob, row: StoredMessage, name: str, now: float
) -> tuple[object, ...]:
    """Give the columns of one message.

    Args:
        now: Unix seconds.
    """
    waits = row.due_at - now if job.status == "pending" else 0.0
    return (
        name,
        job.status,
        job.priority,
        job.attempts,
        f"{job.connector}/{job.chat}",
        job.agent,
        lasting(now - row.at),
        lasting(waits) if waits > 0 else "",
        job.reason,
        job.text,
    )


def delivery_cells(each: ShownDelivery) -> tuple[object, ...]:
    """Give the columns of one delivery."""
    return msgspec.structs.astuple(each)


@command.command()
@database_options
@click.argument("name", metavar="ID")
@rows_options
def show(choice: DatabaseChoice, name: str, *, as_json: bool) -> None:
    """Show everything of one message: states, times, words, deliveries, steps.

    ID is the message's, or its beginning; a delivery's id means its message, too.
    """
    message = name.partition(":")[0]
    with choice.database.inspect() as rows:
        whole = collect(rows, message, choice.receipt_key(), complain)
    if as_json:
        say_json(whole)
    else:
        for line in lines(whole):
            say(line)


def lines(whole: WholeMessage) -> Iterator[str]:
    """Write everything of a message for people."""
    fields = msgspec.structs.asdict(whole.message)
    fields["conversation"] = whole.conversation
    for name, value in fields.items():
        text = indented(str(value), WIDEST) if value not in {None, ""} else NONE
        yield f"{name.replace('_', ' '):<{WIDEST}}{text}"
    if whole.deliveries:
        yield ""
        yield from table(DELIVERY_HEADERS, map(delivery_cells, whole.deliveries))
    if whole.steps:
        yield ""
        for scene in whole.steps:
            yield from lines_of(scene)


@command.command()
@database_options
@named_or_all("All failed messages and unsent deliveries, instead of IDs.")
def retry(
    choice: DatabaseChoice, ids: tuple[str, ...], *, all_failed: bool, yes: bool
) -> int:
    """Try failed messages again; waiting ones at once; unsent deliveries anew.

    An ID is a message's, or its beginning; one with a colon is a delivery's. Unsent
    is what `queue list --unsent` shows; what may have been sent (unknown), people may
    read twice.
    """
    database = choice.database
    refuse_unclear(ids, "failed", all_failed=all_failed)
    chosen = ids or choose_all(database, "Try again", RETRIED, yes=yes)
    return change_all(database, chosen, retry_one)


@command.command()
@database_options
@named_or_all("All failed messages and unsent deliveries, instead of IDs.")
def drop(
    choice: DatabaseChoice, ids: tuple[str, ...], *, all_failed: bool, yes: bool
) -> int:
    """Give up messages that failed or wait, or deliveries that wait or may be sent.

    An ID is a message's, or its beginning; one with a colon is a delivery's.
    """
    database = choice.database
    refuse_unclear(ids, "failed", all_failed=all_failed)
    chosen = ids or choose_all(database, "Drop", DROPPABLE, yes=yes)
    return change_all(database, chosen, drop_one)


def choose_all(
    database: Database, verb: str, states: tuple[DeliveryState, ...], *, yes: bool
) -> Sequence[str] | None:
    """Give the ids of all that failed; None: the operator said no."""
    with database.inspect() as rows:
        messages = rows.messages(["dead"], newest_first=False, limit=MAX_ROWS)
        unsent = rows.deliveries(
            states, newest_first=False, besides=OVER, limit=MAX_ROWS
        )
    numbers = (
        counted(len(messages), "failed message", "failed messages"),
        counted(len(unsent), "unsent delivery", "unsent deliveries"),
    )
    question = f"{verb} {' and '.join(each for each in numbers if each)}?"
    if (messages or unsent) and not is_wanted(question, yes=yes):
        return None
    return [*(row.id for row in messages), *(row.id for row in unsent)]


def counted(number: int, one: str, many: str) -> str:
    """Say how many there are; nothing if there are none."""
    return f"{number} {one if number == 1 else many}" if number else ""


def change_all(database: Database, ids: Sequence[str] | None, change: Change) -> int:
    """Change one row after the other; say what came of each; give the exit code."""
    if ids is None:
        return FAILED
    if not ids:
        say("Nothing has failed.")
    is_refused = False
    for name in ids:
        try:
            result = change(database, name, SystemClock().wall())
        except MisuseError as error:
            result = RepairResult(has_changed=False, text=str(error))
        is_refused |= not result.has_changed
        (say if result.has_changed else complain)(result.text, id=name)
    return FAILED if is_refused else 0
