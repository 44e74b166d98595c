"""`callboard schedule pause`, `resume`, `run` and `remove`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click
import msgspec

from actors.rules.local_time import in_words
from actors.schedule_rows import SHOWN_ID
from connectors.commands.asking import is_wanted, yes_option
from connectors.commands.database import database_options, find_database
from connectors.commands.printing import complain, first_words, say
from connectors.commands.scheduled import FAILED, Row, find_row, write
from connectors.model_checks import find_zone
from runtime.clock import SystemClock

if TYPE_CHECKING:
    from pathlib import Path

BY_HAND = "by hand"

id_argument = click.argument("prefix", metavar="ID")


@click.command()
@database_options
@id_argument
def pause(config: Path | None, db: Path | None, prefix: str) -> int:
    """Let an appointment rest until it is resumed; its times pass by."""
    path = find_database(config, db)
    row = find_row(path, prefix)
    changed = msgspec.structs.replace(row.it, paused=BY_HAND, run_at=0.0)
    return tell(row, "rests", is_done=write(path, row, changed))


@click.command()
@database_options
@id_argument
def resume(config: Path | None, db: Path | None, prefix: str) -> int:
    """Take up an appointment again, from its next time on."""
    path = find_database(config, db)
    row = find_row(path, prefix)
    it, now = row.it, SystemClock().wall()
    zone = find_zone(it.zone)
    if zone is None:
        complain(f"time zone {it.zone!r} is not known on this machine")
        return FAILED
    due = it.next_due
    if it.repeat and due and due < now:  # what passed meanwhile was not wanted
        due = it.rule(zone).next_after(now) or 0.0
    changed = msgspec.structs.replace(it, paused="", failures=0, next_due=due)
    when = f"goes on: {in_words(due, zone, it.zone)}" if due else "goes on"
    return tell(row, when, is_done=write(path, row, changed))


@click.command()
@database_options
@id_argument
def run(config: Path | None, db: Path | None, prefix: str) -> int:
    """Have an appointment carried out now, beside its times; also a paused one."""
    path = find_database(config, db)
    row = find_row(path, prefix)
    now = float(int(SystemClock().wall()))
    # A slot is named by its second: carried out in this one, it would be the same.
    at = now + 1 if now == row.it.last_due else now
    changed = msgspec.structs.replace(row.it, run_at=at)
    text = "is carried out as soon as callboard runs, within seconds if it does"
    return tell(row, text, is_done=write(path, row, changed))


@click.command()
@database_options
@id_argument
@yes_option
def remove(config: Path | None, db: Path | None, prefix: str, *, yes: bool) -> int:
    """Forget an appointment."""
    path = find_database(config, db)
    row = find_row(path, prefix)
    if not is_wanted(f"Remove {described(row)}?", yes=yes):
        return FAILED
    return tell(row, "is removed", is_done=write(path, row, None))


def tell(row: Row, text: str, *, is_done: bool) -> int:
    """Say what was done; give the exit code."""
    if is_done:
        say(f"{described(row)} {text}")
    return 0 if is_done else FAILED


def described(row: Row) -> str:
    """Name an appointment for people."""
    what = first_words(row.it.text or "; ".join(row.it.items), 40)
    return f"{row.id[:SHOWN_ID]} ({row.it.kind}: {what})"
