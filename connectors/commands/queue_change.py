"""`callboard queue retry` and `drop`: decide by hand what becomes of messages."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from connectors.commands.asking import is_wanted, yes_option
from connectors.commands.database import database_options, find_database
from connectors.commands.printing import complain, say
from runtime import sqlite_mend
from runtime.clock import SystemClock
from runtime.errors import MisuseError
from runtime.rows import MAX_ROWS
from runtime.sqlite_browse import browse

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from runtime.rows import InboxState
    from runtime.sqlite_mend import Mended

    Change = Callable[[Path, str, float], Mended]

FAILED = 1


def named_or_all(command: Callable[..., object]) -> Callable[..., object]:
    """Give a command the parameters `ids`, `all_failed` and `yes`."""
    command = click.argument("ids", nargs=-1, metavar="ID...")(command)
    command = click.option(
        "--all-failed", is_flag=True, help="All failed messages, instead of IDs."
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

    An ID is a message's, or its beginning; one with a colon is a delivery's.
    """
    path = find_database(config, db)
    chosen = choose(path, ids, "Try again", all_failed=all_failed, yes=yes)
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
    """Give up messages that failed or wait, or deliveries that wait.

    An ID is a message's, or its beginning; one with a colon is a delivery's.
    """
    path = find_database(config, db)
    chosen = choose(path, ids, "Drop", all_failed=all_failed, yes=yes)
    return change_all(path, chosen, drop_one)


def choose(
    path: Path, ids: tuple[str, ...], verb: str, *, all_failed: bool, yes: bool
) -> Sequence[str] | None:
    """Decide which rows are meant; None: the operator thought better of it.

    Raises:
        click.UsageError: none is named, or both ways are used.
    """
    if all_failed == bool(ids):
        raise click.UsageError("give IDs, or --all-failed for all failed messages")
    if ids:
        return ids
    dead: list[InboxState] = ["dead"]
    with browse(path) as browser:
        failed = browser.messages(dead, newest_first=False, limit=MAX_ROWS)
    question = f"{verb} {len(failed)} failed message{'' if len(failed) == 1 else 's'}?"
    if failed and not is_wanted(question, yes=yes):
        return None
    return [row.id for row in failed]


def change_all(path: Path, ids: Sequence[str] | None, change: Change) -> int:
    """Change one row after the other; say what came of each; give the exit code."""
    if ids is None:
        return FAILED
    if not ids:
        say("No message is failed.")
    refused = 0
    for name in ids:
        try:
            mended = change(path, name, SystemClock().wall())
        except MisuseError as error:
            mended = sqlite_mend.Mended(has_changed=False, text=str(error))
        refused += not mended.has_changed
        (say if mended.has_changed else complain)(mended.text)
    return FAILED if refused else 0


def retry_one(path: Path, name: str, now: float) -> Mended:
    """Try one message, or one delivery, again."""
    if ":" in name:
        return sqlite_mend.retry_delivery(path, name)
    return sqlite_mend.retry(path, name, now)


def drop_one(path: Path, name: str, now: float) -> Mended:
    """Give up one message, or one delivery."""
    if ":" in name:
        return sqlite_mend.drop_delivery(path, name, now)
    return sqlite_mend.drop(path, name, now)
