"""What agents are to do later, and changes of that by hand, beside a server."""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import TYPE_CHECKING

import msgspec

from actors.rules.local_time import in_words
from actors.schedule_rows import KIND, SHOWN_ID, as_entry, part_of, read
from connectors.model_checks import find_zone
from connectors.office.moments import moment
from connectors.office.slot_runs import Reader
from runtime import sqlite_mend
from runtime.clock import SystemClock
from runtime.errors import MisuseError, SequenceConflictError
from runtime.rows import Commit
from runtime.sqlite_browse import browse
from runtime.sqlite_mend import Mended
from runtime.sqlite_survey import survey

if TYPE_CHECKING:
    from pathlib import Path

    from actors.rules.schedule import Appointment
    from connectors.office.record import Complain
    from connectors.office.slot_runs import SlotRun

BY_HAND = "by hand"

LONGEST_NAME = 40
"""Characters of an appointment's text by which it is named."""


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


class Shown(msgspec.Struct, frozen=True):
    """One appointment, for programs."""

    id: str
    kind: str
    agent: str
    connector: str
    chat: str
    thread: str
    sender_id: str
    owner: str
    text: str
    items: tuple[str, ...]
    repeat: str
    zone: str
    next_at: str | None
    created_at: str | None
    paused: str
    fired: int
    skipped: int
    failures: int
    by_settings: str
    """The rule that the settings give it; empty: somebody asked for it."""


def shown(row: Row) -> Shown:
    """Give an appointment as programs get it."""
    it = row.it
    return Shown(
        id=row.id,
        kind=it.kind,
        agent=it.agent,
        connector=it.address.connector,
        chat=it.address.chat,
        thread=it.address.thread,
        sender_id=it.sender_id,
        owner=row.owner,
        text=it.text,
        items=it.items,
        repeat=it.repeat,
        zone=it.zone,
        next_at=moment(it.wakes),
        created_at=moment(it.created_at),
        paused=it.paused,
        fired=it.fired,
        skipped=it.skipped,
        failures=it.failures,
        by_settings=it.by_settings,
    )


def read_runs(
    path: Path,
    prefix: str,
    limit: int,
    complain: Complain,
    *,
    agent: str | None = None,
    since: float = 0.0,
) -> list[SlotRun]:
    """Read the last slots.

    Args:
        path: the database.
        prefix: how the appointment's id begins.
        limit: most slots to give.
        complain: told of rows that cannot be read.
        agent: only this one's; None: all.
        since: Unix seconds before which nothing is wanted.
    """
    with browse(path) as browser, survey(path) as rows:
        runs = Reader(rows, browser, complain).runs(prefix, agent, since)
        return list(itertools.islice(runs, limit))


def find_row(path: Path, prefix: str) -> Row:
    """Find the one appointment whose id begins so.

    Raises:
        MisuseError: there is none, or more than one.
    """
    wanted = prefix.upper()
    found = [row for row in all_rows(path) if row.id.startswith(wanted)]
    exact = [row for row in found if row.id == wanted]
    if len(exact or found) != 1:
        many = f"{len(found)} appointments begin with {prefix!r}; write more of the id"
        none = f"there is no appointment {prefix!r}; see: callboard schedule list"
        raise MisuseError(many if found else none)
    return (exact or found)[0]


def write(path: Path, row: Row, it: Appointment | None) -> Mended | None:
    """Store what an appointment is from now on; None: that was done.

    Args:
        path: the database.
        row: the appointment as it was read; version 0: it is new.
        it: what it is to be; None: it is to go.
    """
    entry = as_entry(row.id, row.owner, it, part_of(row.it), row.version)
    try:
        sqlite_mend.write(path, Commit(at=SystemClock().wall(), entries=(entry,)))
    except SequenceConflictError:
        text = f"{row.id[:SHOWN_ID]} was changed at the same moment; try again"
        return Mended(has_changed=False, text=text)
    return None


def pause(path: Path, prefix: str) -> Mended:
    """Let an appointment rest until it is resumed; see `find_row` for errors."""
    row = find_row(path, prefix)
    changed = msgspec.structs.replace(row.it, paused=BY_HAND, run_at=0.0)
    return changed_to(path, row, changed, "rests")


def resume(path: Path, prefix: str) -> Mended:
    """Take up an appointment again, from its next time on; see `find_row`."""
    row = find_row(path, prefix)
    it, now = row.it, SystemClock().wall()
    zone = find_zone(it.zone)
    if zone is None:
        text = f"time zone {it.zone!r} is not known on this machine"
        return Mended(has_changed=False, text=text)
    due = it.next_due
    if it.repeat and due and due < now:  # what passed meanwhile was not wanted
        due = it.rule(zone).next_after(now) or 0.0
    changed = msgspec.structs.replace(it, paused="", failures=0, next_due=due)
    when = f"goes on: {in_words(due, zone, it.zone)}" if due else "goes on"
    return changed_to(path, row, changed, when)


def run_now(path: Path, prefix: str) -> Mended:
    """Have an appointment carried out now, beside its times; see `find_row`."""
    row = find_row(path, prefix)
    now = float(int(SystemClock().wall()))
    # A slot is named by its second: carried out in this one, it would be the same.
    at = now + 1 if now == row.it.last_due else now
    changed = msgspec.structs.replace(row.it, run_at=at)
    text = "is carried out as soon as callboard runs, within seconds if it does"
    return changed_to(path, row, changed, text)


def changed_to(path: Path, row: Row, it: Appointment | None, text: str) -> Mended:
    """Store what an appointment is from now on, and say so."""
    refused = write(path, row, it)
    return refused or Mended(has_changed=True, text=f"{described(row)} {text}")


def described(row: Row) -> str:
    """Name an appointment for people."""
    what = " ".join((row.it.text or "; ".join(row.it.items)).split())
    shown = what if len(what) <= LONGEST_NAME else f"{what[: LONGEST_NAME - 1]}…"
    return f"{row.id[:SHOWN_ID]} ({row.it.kind}: {shown})"
