"""`callboard backup`: copy the database, also while a server is using it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click
import msgspec

from connectors.admin.unfinished import told, unfinished_in
from connectors.commands.common.database import (
    DatabaseChoice,
    database_at,
    database_options,
)
from connectors.commands.common.output import json_option, say, say_json
from runtime.clock import SystemClock
from runtime.errors import StoreRefusedError

if TYPE_CHECKING:
    from runtime.store.database import Database, Totals


@click.command()
@database_options
@click.argument("target", type=click.Path(path_type=Path))
@click.option("--force", is_flag=True, help="Replace TARGET if it exists.")
@json_option
def command(
    choice: DatabaseChoice, target: Path, *, force: bool, as_json: bool
) -> None:
    """Copy the database to the file TARGET, whole as of one moment.

    The copy is checked, and has its name only when it is complete. It holds what
    people wrote: keep it as safe as the database.
    """
    size = choice.database.back_up(target, replace=force)
    copy = database_at(target)
    counted = count_rows(copy)
    left = unfinished_in(copy, SystemClock().wall())
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


def count_rows(copy: Database) -> Totals | None:
    """Count the rows of a copy; None: an older release wrote it."""
    try:
        with copy.inspect() as rows:
            return rows.totals()
    except StoreRefusedError:
        return None


def in_words(counted: Totals | None) -> str:
    """Say how many rows a copy has."""
    if counted is None:
        return "An older release wrote it; its rows are not counted."
    return (
        f"{counted.messages:,} messages, {counted.deliveries:,} deliveries,"
        f" {counted.events:,} events, {sum(counted.records.values()):,} records"
    )
