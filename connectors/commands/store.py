"""`callboard store copy`: all rows of a database into a new one of either kind."""

from __future__ import annotations

import click

from connectors.commands.common.database import database_named
from connectors.commands.common.output import say
from runtime.store.copying import copy_rows


@click.group()
def command() -> None:
    """Move everything that is kept to another database."""


@command.command()
@click.argument("source", metavar="SRC")
@click.argument("target", metavar="DST")
def copy(source: str, target: str) -> None:
    """Copy the database SRC into the new one DST; no server may be using either.

    Each is the path of a SQLite file, an address postgresql://user@host/database
    without a password, or env:NAME for a variable that holds an address. DST must be a
    file that does not exist, or a database without rows. What arrived is compared row
    by row; if anything is not as it was, DST stays empty. SRC is not changed.

    Files beside the database, such as the key of receipts, are not copied: leave
    [store] path as it is.
    """
    old, new = database_named(source), database_named(target)
    total = 0
    with old.read_whole() as rows, new.fill_new() as filler:

        def tell(name: str, count: int) -> None:
            nonlocal total
            total += count
            say(f"{name:<12} {count:>12,}", table=name, rows=count)

        copy_rows(rows, filler, tell)
    say(f"{total:,} rows of {old.name} are in {new.name}, each as it was")
