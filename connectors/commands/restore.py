"""`callboard restore`: put a copy in the place of the database."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import click

from connectors.commands.backup import count_rows, in_words, told, unfinished_in
from connectors.commands.common.database import (
    DatabaseChoice,
    database_at,
    database_of_store,
    database_options,
)
from connectors.commands.common.options import is_wanted, yes_option
from connectors.commands.common.output import FAILED, say
from connectors.commands.common.whole_backup import put_back
from connectors.files.archive import ArchiveError, Manifest, is_archive
from runtime.clock import SystemClock
from runtime.errors import StoreUnavailableError


@click.command()
@database_options
@click.argument("copy", type=click.Path(path_type=Path))
@yes_option
def command(choice: DatabaseChoice, copy: Path, *, yes: bool) -> int:
    """Put COPY in the place of the database; no server may be using it.

    COPY is a database, or an archive of `backup --all`, whose folders are put back,
    too. What was there is kept beside it under another name. COPY is not changed. What
    it had still to answer, to send and to begin, the next start does, perhaps for a
    second time; how much that is, is said first.
    """
    # It need not be there yet: on a new machine nothing is.
    database, path = database_of_store(choice.store), choice.path
    if not copy.is_file():
        what = "is no file" if copy.exists() else "does not exist"
        raise StoreUnavailableError(f"{copy} {what}; give the path of a copy")
    if is_archive(copy):
        return restore_whole(choice, copy, yes=yes)
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


def restore_whole(choice: DatabaseChoice, archive: Path, *, yes: bool) -> int:
    """Put back all that an archive holds.

    Raises:
        click.ClickException: it is damaged; nothing has been changed.
    """
    settings = choice.settings
    if settings is None:
        raise click.UsageError(
            "an archive of `backup --all` needs the settings, which say where all of it"
            f" belongs: give --config. Its own are in it: tar -xf {archive} settings"
        )

    choice.refuse_server("restore of an archive")

    def is_agreed(manifest: Manifest) -> bool:
        at = datetime.fromtimestamp(manifest.made_at, UTC)
        count, release = len(manifest.files), manifest.release
        say(f"{archive}: whole; {count:,} files, {at:%Y-%m-%d %H:%M} UTC, {release}")
        return is_wanted("Put all of it in the place of what is there?", yes=yes)

    try:
        done = put_back(choice, settings.value, archive, is_agreed)
    except ArchiveError as error:
        raise click.ClickException(str(error)) from error
    if done is None:
        return FAILED
    for place, kept in done:
        say(f"{place} is put back" + (f"; what was there is {kept}" if kept else ""))
    say(in_words(count_rows(database_of_store(choice.store))))
    say("Your settings were left alone; the archive's are in it under settings/")
    return 0
