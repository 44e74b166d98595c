"""`callboard restore`: put a copy in the place of the database."""

from __future__ import annotations

from pathlib import Path

import click

from connectors.commands.backup import count_rows, in_words, told, unfinished_in
from connectors.commands.common.database import (
    DatabaseChoice,
    database_at,
    database_options,
)
from connectors.commands.common.options import is_wanted, yes_option
from connectors.commands.common.output import FAILED, say
from runtime.clock import SystemClock
from runtime.errors import StoreUnavailableError


@click.command()
@database_options
@click.argument("copy", type=click.Path(path_type=Path))
@yes_option
def command(choice: DatabaseChoice, copy: Path, *, yes: bool) -> int:
    """Put COPY in the place of the database; no server may be using it.

    What was there is kept beside it under another name. COPY is not changed. What it
    had still to answer, to send and to begin, the next start does, perhaps for a second
    time; how much that is, is said first.
    """
    database, path = choice.database, choice.path
    if not copy.is_file():
        what = "is no file" if copy.exists() else "does not exist"
        raise StoreUnavailableError(f"{copy} {what}; give the path of a copy")
    database.refuse_replacing()
    for line in told(unfinished_in(database_at(copy), SystemClock().wall())):
        say(line)
    if path.exists() and not is_wanted(f"Replace {path} by {copy}?", yes=yes):
        return FAILED
    kept = database.restore(copy)
    say(f"{path} is now what {copy} was")
    say(in_words(count_rows(database)))
    if kept is not None:
        say(f"What was there before is {kept}")
    return 0
