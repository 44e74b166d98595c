"""`callboard webhooks retry` and `drop`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from connectors.commands.asking import is_wanted, yes_option
from connectors.commands.database import database_options, find_database
from connectors.commands.noticed import FAILED, Row, find_rows, forget, send_again
from connectors.commands.printing import say

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


def named_or_all(command: Callable[..., object]) -> Callable[..., object]:
    """Give a command the parameters `ids`, `all_failed` and `yes`."""
    command = click.argument("ids", nargs=-1, metavar="ID...")(command)
    command = click.option(
        "--all-failed", is_flag=True, help="All that were given up, instead of IDs."
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
    """Send events at once that wait or were given up, with all their tries anew.

    A receiver that had taken one may get it twice, under the same id.
    """
    path = find_database(config, db)
    rows = find_rows(path, ids, all_failed=all_failed)
    return change(path, rows, send_again, ("Send", "is sent at once"), yes=yes or ids)


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
    """Give events up for good: they are told to nobody."""
    path = find_database(config, db)
    rows = find_rows(path, ids, all_failed=all_failed)
    return change(path, rows, forget, ("Drop", "is dropped"), yes=yes or ids)


def change(
    path: Path,
    rows: list[Row],
    do: Callable[[Path, Row], bool],
    words: tuple[str, str],
    *,
    yes: object,
) -> int:
    """Change events after asking; give the exit code.

    Args:
        path: the database.
        rows: the events.
        do: changes one.
        words: what is done, and what is said of each.
        yes: whether not to ask.
    """
    if not rows:
        say("There is none.")
        return 0
    count = "1 event" if len(rows) == 1 else f"{len(rows)} events"
    if not is_wanted(f"{words[0]} {count}?", yes=bool(yes)):
        return FAILED
    is_done = True
    for row in rows:
        if do(path, row):
            say(f"{row.id} ({row.webhook}: {row.notice.event}) {words[1]}")
        else:
            is_done = False
    return 0 if is_done else FAILED
