"""Events as `callboard webhooks` reads and writes them, beside a server."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import click

from actors.notices import DEAD, DUE, Notice, as_entry, read
from connectors.commands.printing import complain
from runtime import sqlite_mend
from runtime.clock import SystemClock
from runtime.errors import SequenceConflictError
from runtime.rows import Commit
from runtime.sqlite_survey import survey

if TYPE_CHECKING:
    from pathlib import Path

    from runtime.entries import Entry

FAILED = 1


@dataclass(frozen=True)
class Row:
    """One event that is not sent."""

    kind: str
    """`DUE` or `DEAD`."""

    id: str
    webhook: str
    version: int
    notice: Notice

    @property
    def is_dead(self) -> bool:
        """Whether it was given up."""
        return self.kind == DEAD


def all_rows(path: Path) -> list[Row]:
    """Read all events, the oldest first."""
    with survey(path) as rows:
        found = [(row, read(row)) for kind in (DUE, DEAD) for row in rows.entries(kind)]
    kept = [
        Row(row.kind, row.id, row.owner, row.version, notice)
        for row, notice in found
        if notice is not None
    ]
    return sorted(kept, key=lambda row: (row.notice.made_at, row.id))


def find_rows(path: Path, ids: tuple[str, ...], *, all_failed: bool) -> list[Row]:
    """Find the events that are meant.

    Raises:
        click.UsageError: none is named, or both ways are used.
        click.ClickException: an id fits none, or more than one.
    """
    if all_failed == bool(ids):
        raise click.UsageError("give IDs, or --all-failed for all that were given up")
    rows = all_rows(path)
    if all_failed:
        return [row for row in rows if row.is_dead]
    return [one_of(rows, name) for name in ids]


def one_of(rows: list[Row], name: str) -> Row:
    """Find the one event whose id begins so.

    Raises:
        click.ClickException: there is none, or more than one.
    """
    found = [row for row in rows if row.id.startswith(name.upper())]
    if len(found) == 1:
        return found[0]
    many = f"{len(found)} events begin with {name!r}; write more of the id"
    none = f"there is no event {name!r} that is not sent; see: callboard webhooks list"
    raise click.ClickException(many if found else none)


def send_again(path: Path, row: Row) -> bool:
    """Have an event sent at once; tell whether that was stored.

    One that was given up gets all its tries anew.
    """
    now = SystemClock().wall()
    notice = row.notice
    # Why the time: an event of long ago would be given up at its first failure.
    again = Notice(event=notice.event, made_at=now, body=notice.body, why=notice.why)
    if not row.is_dead:
        return write(path, row, as_entry(DUE, row.id, row.webhook, again, row.version))
    gone = as_entry(DEAD, row.id, row.webhook, None, row.version)
    return write(path, row, gone, as_entry(DUE, row.id, row.webhook, again, 0))


def forget(path: Path, row: Row) -> bool:
    """Have an event not sent any more; tell whether that was stored."""
    return write(path, row, as_entry(row.kind, row.id, row.webhook, None, row.version))


def write(path: Path, row: Row, *entries: Entry) -> bool:
    """Store a change, unless somebody else was first."""
    try:
        sqlite_mend.write(path, Commit(at=SystemClock().wall(), entries=entries))
    except SequenceConflictError:
        complain(f"{row.id} was sent or changed at the same moment; look again")
        return False
    return True
