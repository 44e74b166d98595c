"""`callboard backup`: copy the database, also while a server is using it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import click
import msgspec

from actors.schedule.rows import KIND, read
from connectors.commands.common.database import (
    DatabaseChoice,
    database_at,
    database_options,
)
from connectors.commands.common.output import counted, json_option, say, say_json
from connectors.commands.common.whole_backup import (
    DATABASE_END,
    WHOLE_END,
    named_by_time,
    superseded,
    write_whole,
)
from connectors.files.archive import ArchiveError
from runtime.clock import SystemClock
from runtime.errors import StoreRefusedError
from runtime.store.database import Database, Totals


@click.command()
@database_options
@click.argument("target", type=click.Path(path_type=Path))
@click.option("--force", is_flag=True, help="Replace TARGET if it exists.")
@click.option(
    "--all",
    "is_whole",
    is_flag=True,
    help="Everything that the company keeps, in one archive.",
)
@click.option(
    "--keep",
    type=click.IntRange(1, 10_000),
    help="TARGET is a folder; remove all but this many of the newest copies in it.",
)
@json_option
def command(
    choice: DatabaseChoice,
    target: Path,
    *,
    force: bool,
    is_whole: bool,
    keep: int | None,
    as_json: bool,
) -> None:
    """Copy the database to the file TARGET, whole as of one moment.

    In a folder the copy is named by the time. It is checked, and has its name only when
    it is complete. It holds what people wrote: keep it as safe as the database. --all
    adds the key of receipts, settings, personas, workspace, files and daily logs; files
    of secrets are left out: keep them elsewhere.
    """
    end = WHOLE_END if is_whole else DATABASE_END
    if keep is not None and not target.exists():
        target.mkdir(parents=True, mode=0o700)
    if keep is not None and not target.is_dir():
        raise click.BadParameter(f"{target} is no folder", param_hint="TARGET")
    folder = target if target.is_dir() else None
    place = target if folder is None else named_by_time(folder, end)
    if is_whole:
        back_up_whole(choice, place, force=force, as_json=as_json)
    else:
        back_up_database(choice, place, force=force, as_json=as_json)
    if folder is not None and keep is not None:
        for old in superseded(folder, end, keep, place):
            old.unlink(missing_ok=True)
            click.echo(f"{old}: removed", err=True)


def back_up_whole(
    choice: DatabaseChoice, target: Path, *, force: bool, as_json: bool
) -> None:
    """Write all that the company keeps to one archive.

    Raises:
        click.ClickException: it cannot be written, or not read again.
    """
    settings = choice.settings
    if settings is None:
        raise click.UsageError(
            "--all needs the settings: give --config, not --db alone"
        )
    choice.refuse_server("backup --all")
    if target.exists() and not force:
        raise click.UsageError(f"{target} exists; give another name, or --force")
    try:
        made = write_whole(choice, settings, target)
    except ArchiveError as error:
        raise click.ClickException(str(error)) from error
    size = target.stat().st_size
    if as_json:
        say_json({"archive": str(target), "bytes": size, "holds": made})
        return
    say(f"{target}: {size:,} bytes, read again and found whole")
    count = Counter(name.partition("/")[0] for name in made.files)
    say(", ".join(f"{name} ({n:,})" if n > 1 else name for name, n in count.items()))
    for each in made.left_out:
        say(f"left out, because it cannot be read or is no plain file: {each}")


def back_up_database(
    choice: DatabaseChoice, target: Path, *, force: bool, as_json: bool
) -> None:
    """Copy the database alone."""
    size = choice.database.back_up(target, replace=force)
    copy = database_at(target)
    totals = count_rows(copy)
    left = unfinished_in(copy, SystemClock().wall())
    if as_json:
        rows = None if totals is None else msgspec.to_builtins(totals)
        undone = None if left is None else msgspec.to_builtins(left)
        told_rows = {"rows": rows, "unfinished": undone}
        say_json({"copy": str(target), "bytes": size, **told_rows})
    else:
        say(f"{target}: {size:,} bytes, found whole")
        say(in_words(totals))
        for line in told(left):
            say(line)


def count_rows(copy: Database) -> Totals | None:
    """Count the rows of a copy; None: an older release wrote it."""
    try:
        with copy.inspect() as rows:
            return rows.totals()
    except StoreRefusedError:
        return None


def in_words(totals: Totals | None) -> str:
    """Say how many rows a copy has."""
    if totals is None:
        return "An older release wrote it; its rows are not counted."
    return ", ".join(
        (
            counted(totals.messages, "message"),
            counted(totals.deliveries, "delivery"),
            counted(totals.events, "event"),
            counted(sum(totals.records.values()), "record"),
        )
    )


ADVICE = (
    (
        "The next start on this copy does that, for a second time if it was done after"
        " the copy was made."
    ),
    (
        "To leave something out, between restore and that start: callboard queue list,"
        " then queue drop ID; callboard schedule list, then schedule pause ID."
    ),
)


class Unfinished(msgspec.Struct, frozen=True):
    """How much work is open in a copy."""

    messages: int
    """Not answered."""

    deliveries: int
    """Not sent."""

    appointments: int
    """Due."""


def unfinished_in(copy: Database, now: float) -> Unfinished | None:
    """Count the open work in a copy.

    Args:
        copy: a database that nobody changes.
        now: Unix seconds; what was to happen until then is due.

    Returns:
        None for one that an older release wrote, or another program.

    Raises:
        runtime.errors.StoreError: it cannot be read.
    """
    try:
        with copy.inspect() as rows:
            counts = rows.counts()
            read_rows = [read(row) for row in rows.entries(KIND)]
    except StoreRefusedError:
        return None
    due = [it for it in read_rows if it is not None and it.wakes and it.wakes <= now]
    inbox, outbox = counts.inbox, counts.outbox
    return Unfinished(
        messages=inbox.get("accepted", 0) + inbox.get("running", 0),
        deliveries=outbox.get("pending", 0) + outbox.get("sending", 0),
        appointments=len(due),
    )


def told(found: Unfinished | None) -> Iterator[str]:
    """Say which work is open, and what restoring does; nothing if none is."""
    if found is None:
        return
    parts = [
        f"{number:,} {one if number == 1 else many}"
        for number, one, many in (
            (found.messages, "message not answered", "messages not answered"),
            (found.deliveries, "delivery not sent", "deliveries not sent"),
            (found.appointments, "appointment due", "appointments due"),
        )
        if number
    ]
    if parts:
        yield f"Not done in it: {', '.join(parts)}."
        yield from ADVICE
