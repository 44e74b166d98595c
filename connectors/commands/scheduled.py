"""Appointments as `callboard schedule` reads and writes them, beside a server."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import click

from actors.schedule_rows import KIND, SHOWN_ID, as_entry, part_of, read
from connectors.commands.printing import complain
from runtime import sqlite_mend
from runtime.clock import SystemClock
from runtime.errors import SequenceConflictError
from runtime.rows import Commit
from runtime.sqlite_survey import survey

if TYPE_CHECKING:
    from pathlib import Path

    from actors.rules.schedule import Appointment

FAILED = 1


@dataclass(frozen=True)
class Row:
    """One appointment, and where it stands."""

    id: str
    owner: str
    version: int
    it: Appointment


def all_rows(path: Path) -> list[Row]:
    """Read all appointments, the next one first; what is paused last."""
    with survey(path) as rows:
        found = [(row, read(row)) for row in rows.entries(KIND)]
    kept = [Row(r.id, r.owner, r.version, it) for r, it in found if it is not None]
    return sorted(kept, key=lambda row: (row.it.wakes or float("inf"), row.id))


def find_row(path: Path, prefix: str) -> Row:
    """Find the one appointment whose id begins so.

    Raises:
        click.ClickException: there is none, or more than one.
    """
    wanted = prefix.upper()
    found = [row for row in all_rows(path) if row.id.startswith(wanted)]
    exact = [row for row in found if row.id == wanted]
    if len(exact or found) != 1:
        many = f"{len(found)} appointments begin with {prefix!r}; write more of the id"
        none = f"there is no appointment {prefix!r}; see: callboard schedule list"
        raise click.ClickException(many if found else none)
    return (exact or found)[0]


def write(path: Path, row: Row, it: Appointment | None) -> bool:
    """Store what an appointment is from now on; tell whether that was done.

    Args:
        path: the database.
        row: the appointment as it was read; version 0: it is new.
        it: what it is to be; None: it is to go.
    """
    entry = as_entry(row.id, row.owner, it, part_of(row.it), row.version)
    try:
        sqlite_mend.write(path, Commit(at=SystemClock().wall(), entries=(entry,)))
    except SequenceConflictError:
        complain(f"{row.id[:SHOWN_ID]} was changed at the same moment; try again")
        return False
    return True
