"""`callboard backup`: copy the database, also while a server is using it."""

from __future__ import annotations

from pathlib import Path

import click
import msgspec

from connectors.commands.database import database_options, find_database, json_option
from connectors.commands.printing import say, say_json
from connectors.office.unfinished import told, unfinished_in
from runtime.clock import SystemClock
from runtime.errors import StoreRefusedError
from runtime.sqlite_copy import backup
from runtime.sqlite_survey import Totals, survey


@click.command()
@database_options
@click.argument("target", type=click.Path(path_type=Path))
@click.option("--force", is_flag=True, help="Replace TARGET if it exists.")
@json_option
def command(
    config: Path | None, db: Path | None, target: Path, *, force: bool, as_json: bool
) -> None:
    """Copy the database to the file TARGET, whole as of one moment.

    The copy is checked, and has its name only when it is complete. It holds what
    people wrote: keep it as safe as the database.
    """
    size = backup(find_database(config, db), target, replace=force)
    counted = count_rows(target)
    left = unfinished_in(target, SystemClock().wall())
    if as_json:
        rows = None if counted is None else msgspec.to_builtins(counted)
        undone = None if left is None else msgspec.to_builtins(left)
        told_rows = {"rows": rows, "unfinished": undone}
        say_json({"copy": str(target), "bytes": size, **told_rows})
    else:
        say(f"{target}: {size:,} bytes, found whole")
        say(in_words(counted))
        for line in told(left):
            say(line)


def count_rows(path: Path) -> Totals | None:
    """Count what is in a copy; None: an older release wrote it."""
    try:
        with survey(path) as rows:
            return rows.totals()
    except StoreRefusedError:
        return None


def in_words(counted: Totals | None) -> str:
    """Say how much is in a copy."""
    if counted is None:
        return "An older release wrote it; its rows are not counted."
    return (
        f"{counted.messages:,} messages, {counted.deliveries:,} deliveries,"
        f" {counted.events:,} events, {sum(counted.records.values()):,} records"
    )
