"""`callboard schedule pause`, `resume`, `run` and `remove`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from connectors.commands.asking import is_wanted, yes_option
from connectors.commands.database import database_options, find_database
from connectors.commands.printing import complain, first_words, say
from connectors.office import appointments

if TYPE_CHECKING:
    from pathlib import Path

    from runtime.sqlite_mend import Mended

FAILED = 1

LONGEST = 300
"""Characters of what is said of a change."""

id_argument = click.argument("prefix", metavar="ID")


@click.command()
@database_options
@id_argument
def pause(config: Path | None, db: Path | None, prefix: str) -> int:
    """Let an appointment rest until it is resumed; its times pass by."""
    return tell(appointments.pause(find_database(config, db), prefix))


@click.command()
@database_options
@id_argument
def resume(config: Path | None, db: Path | None, prefix: str) -> int:
    """Take up an appointment again, from its next time on."""
    return tell(appointments.resume(find_database(config, db), prefix))


@click.command()
@database_options
@id_argument
def run(config: Path | None, db: Path | None, prefix: str) -> int:
    """Have an appointment carried out now, beside its times; also a paused one."""
    return tell(appointments.run_now(find_database(config, db), prefix))


@click.command()
@database_options
@id_argument
@yes_option
def remove(config: Path | None, db: Path | None, prefix: str, *, yes: bool) -> int:
    """Forget an appointment."""
    path = find_database(config, db)
    row = appointments.find_row(path, prefix)
    if not is_wanted(f"Remove {appointments.described(row)}?", yes=yes):
        return FAILED
    return tell(appointments.changed_to(path, row, None, "is removed"))


def tell(mended: Mended) -> int:
    """Say what was done, or why not; give the exit code."""
    (say if mended.has_changed else complain)(first_words(mended.text, LONGEST))
    return 0 if mended.has_changed else FAILED
