"""`callboard queue retry` and `drop`: decide by hand what becomes of messages."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from connectors.commands.asking import is_wanted, yes_option
from connectors.commands.database import database_options, find_database
from connectors.commands.printing import complain, say
from connectors.office.queue import OVER, RETRIED, drop_one, retry_one
from runtime.clock import SystemClock
from runtime.errors import MisuseError
from runtime.rows import MAX_ROWS
from runtime.sqlite_browse import browse
from runtime.sqlite_mend import Mended

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from runtime.rows import DeliveryState, InboxState

    Change = Callable[[Path, str, float], Mended]

FAILED = 1

# Why the drop has fewer: what is dead is not sent any more as it is.
DROPPABLE: tuple[DeliveryState, ...] = ("unknown",)


def named_or_all(command: Callable[..., object]) -> Callable[..., object]:
    """Give a command the parameters `ids`, `all_failed` and `yes`."""
    command = click.argument("ids", nargs=-1, metavar="ID...")(command)
    command = click.option(
        "--all-failed",
        is_flag=True,
        help="All failed messages and unsent deliveries, instead of IDs.",
    )(command)
    return yes_option(command)


@click.command()
@database_options
@named_or_all
def retry(
    config: Path | None,
    db: Path | None,
    ids: tuple[str, ...],
    *,
    all_failed: bool,
    yes: bool,
) -> int:
    """Try failed messages again; waiting ones at once; unsent deliveries anew.

    An ID is a message's, or its beginning; one with a colon is a delivery's. Unsent
    is what `queue list --unsent` shows; what may have been sent (unknown), people may
    read twice.
    """
    path = find_database(config, db)
    refuse_unclear(ids, all_failed=all_failed)
    chosen = ids or choose_all(path, "Try again", RETRIED, yes=yes)
    return change_all(path, chosen, retry_one)


@click.command()
@database_options
@named_or_all
def drop(
    config: Path | None,
    db: Path | None,
    ids: tuple[str, ...],
    *,
    all_failed: bool,
    yes: bool,
) -> int:
    """Give up messages that failed or wait, or deliveries that wait or may be sent.

    An ID is a message's, or its beginning; one with a colon is a delivery's.
    """
    path = find_database(config, db)
    refuse_unclear(ids, all_failed=all_failed)
    chosen = ids or choose_all(path, "Drop", DROPPABLE, yes=yes)
    return change_all(path, chosen, drop_one)


def refuse_unclear(ids: tuple[str, ...], *, all_failed: bool) -> None:
    """Refuse a command that does not say which rows it means.

    Raises:
        click.UsageError: none is named, or both ways are used.
    """
    if all_failed == bool(ids):
        raise click.UsageError("give IDs, or --all-failed for all that failed")


def choose_all(
    path: Path, verb: str, states: tuple[DeliveryState, ...], *, yes: bool
) -> Sequence[str] | None:
    """Name all that failed; None: the operator thought better of it.

    Args:
        path: the database.
        verb: what is to be done, for the question.
        states: deliveries in these states have failed.
        yes: do not ask.
    """
    dead: list[InboxState] = ["dead"]
    with browse(path) as browser:
        messages = browser.messages(dead, newest_first=False, limit=MAX_ROWS)
        unsent = browser.deliveries(
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


def change_all(path: Path, ids: Sequence[str] | None, change: Change) -> int:
    """Change one row after the other; say what came of each; give the exit code."""
    if ids is None:
        return FAILED
    if not ids:
        say("Nothing has failed.")
    refused = 0
    for name in ids:
        try:
            mended = change(path, name, SystemClock().wall())
        except MisuseError as error:
            mended = Mended(has_changed=False, text=str(error))
        refused += not mended.has_changed
        (say if mended.has_changed else complain)(mended.text)
    return FAILED if refused else 0
