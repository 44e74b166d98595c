"""Appointments and what became of their times; changes of them by hand.

The scheduler's row of a slot says when it was due and begun. How its message ended
stands in the inbox, later in the audit; what its calls took stands in the ledger.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

import msgspec

from actors.journal.notices import SHOWN_ID
from actors.journal.records import AUDIT, USAGE, AuditRecord, UsageRecord
from actors.rules.text.durations import in_words
from actors.schedule.appointments import Appointment
from actors.schedule.rows import (
    KIND,
    SLOT,
    SUCCEEDED,
    SlotRecord,
    as_entry,
    part_of,
    read,
)
from connectors.admin.display import STATUSES, Complain, moment, read_record
from connectors.config.checks import find_zone
from runtime.clock import SystemClock
from runtime.errors import MisuseError, SequenceConflictError
from runtime.store.database import Database, Inspection, RepairResult
from runtime.store.rows import Commit, InboxState, StoredRecord

BY_HAND = "by hand"

LONGEST_NAME = 40
"""Characters of an appointment's text by which it is named."""


@dataclass(frozen=True)
class StoredAppointment:
    """One appointment, and the row in which it is stored."""

    id: str
    owner: str
    version: int
    it: Appointment


def all_rows(rows: Inspection) -> list[StoredAppointment]:
    """Read all appointments, the next one first; what is paused last."""
    found = [(row, read(row)) for row in rows.entries(KIND)]
    kept = [
        StoredAppointment(r.id, r.owner, r.version, it)
        for r, it in found
        if it is not None
    ]
    return sorted(kept, key=lambda row: (row.it.wakes or float("inf"), row.id))


class ShownAppointment(msgspec.Struct, frozen=True):
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


def shown(row: StoredAppointment) -> ShownAppointment:
    """Give an appointment as programs get it."""
    it = row.it
    return ShownAppointment(
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
    rows: Inspection,
    prefix: str,
    limit: int,
    complain: Complain,
    *,
    agent: str | None = None,
    since: float = 0.0,
) -> list[SlotRun]:
    """Read the last slots.

    Args:
        prefix: how the appointment's id begins.
        limit: most slots to give.
        agent: only this one's; None: all.
        since: Unix seconds before which nothing is wanted.
    """
    runs = SlotRunReader(rows, complain).runs(prefix, agent, since)
    return list(itertools.islice(runs, limit))


def find_row(rows: Inspection, prefix: str) -> StoredAppointment:
    """Find the one appointment whose id begins so.

    Raises:
        MisuseError: there is none, or more than one.
    """
    wanted = prefix.upper()
    found = [row for row in all_rows(rows) if row.id.startswith(wanted)]
    exact = [row for row in found if row.id == wanted]
    if len(exact or found) != 1:
        many = f"{len(found)} appointments begin with {prefix!r}; write more of the id"
        none = f"there is no appointment {prefix!r}; see: callboard schedule list"
        raise MisuseError(many if found else none)
    return (exact or found)[0]


def find_in(database: Database, prefix: str) -> StoredAppointment:
    """Find the one appointment whose id begins so; see `find_row`."""
    with database.inspect() as rows:
        return find_row(rows, prefix)


def write(
    database: Database, row: StoredAppointment, it: Appointment | None
) -> RepairResult | None:
    """Store an appointment as it is now; None: stored, else why not.

    Args:
        row: the appointment as it was read; version 0: it is new.
        it: what it is to be; None: it is to go.
    """
    entry = as_entry(row.id, row.owner, it, part_of(row.it), row.version)
    try:
        database.write((Commit(at=SystemClock().wall(), entries=(entry,)),))
    except SequenceConflictError:
        text = f"{row.id[:SHOWN_ID]} was changed at the same moment; try again"
        return RepairResult(has_changed=False, text=text)
    return None


def pause(database: Database, prefix: str) -> RepairResult:
    """Pause an appointment until it is resumed; see `find_row` for errors."""
    row = find_in(database, prefix)
    changed = msgspec.structs.replace(row.it, paused=BY_HAND, run_at=0.0)
    return changed_to(database, row, changed, "rests")


def resume(database: Database, prefix: str) -> RepairResult:
    """Resume a paused appointment, from its next time on; see `find_row`."""
    row = find_in(database, prefix)
    it, now = row.it, SystemClock().wall()
    zone = find_zone(it.zone)
    if zone is None:
        text = f"time zone {it.zone!r} is not known on this machine"
        return RepairResult(has_changed=False, text=text)
    due = it.next_due
    if it.repeat and due and due < now:  # what passed meanwhile was not wanted
        due = it.rule(zone).next_after(now) or 0.0
    changed = msgspec.structs.replace(it, paused="", failures=0, next_due=due)
    when = f"goes on: {in_words(due, zone, it.zone)}" if due else "goes on"
    return changed_to(database, row, changed, when)


def run_now(database: Database, prefix: str) -> RepairResult:
    """Run an appointment now, in addition to its times; see `find_row`."""
    row = find_in(database, prefix)
    now = float(int(SystemClock().wall()))
    # A slot is named by its second: carried out in this one, it would be the same.
    at = now + 1 if now == row.it.last_due else now
    changed = msgspec.structs.replace(row.it, run_at=at)
    text = "is carried out as soon as callboard runs, within seconds if it does"
    return changed_to(database, row, changed, text)


def changed_to(
    database: Database, row: StoredAppointment, it: Appointment | None, text: str
) -> RepairResult:
    """Store an appointment as it is now, and say so."""
    refused = write(database, row, it)
    return refused or RepairResult(has_changed=True, text=f"{described(row)} {text}")


def described(row: StoredAppointment) -> str:
    """Name an appointment for people."""
    what = " ".join((row.it.text or "; ".join(row.it.items)).split())
    shown = what if len(what) <= LONGEST_NAME else f"{what[: LONGEST_NAME - 1]}…"
    named = f"{row.it.kind}: {shown}" if shown else row.it.kind
    return f"{row.id[:SHOWN_ID]} ({named})"


FORGOTTEN = "forgotten"
"""Status of what was carried out so long ago that nothing tells how it ended."""

MOST_ATTEMPTS = 20
"""Attempts of one message whose calls are added up."""


class SlotRun(msgspec.Struct, frozen=True, kw_only=True):
    """One slot; times in ISO 8601, local with offset, null if there is none."""

    appointment: str
    kind: str
    agent: str
    connector: str
    chat: str
    text: str
    due_at: str | None
    began_at: str | None
    """When it was given to the agent, or left out."""

    ended_at: str | None
    status: str
    """Of a message as in `queue list`; `skipped`, `put_off`, `paused`, `forgotten`."""

    reason: str
    count: int
    """Slots that were left out together."""

    late: float
    """Seconds from its time until it was begun."""

    message: str
    attempts: int
    input_tokens: int
    output_tokens: int
    cost: float
    """US dollars."""


class SlotEnd(NamedTuple):
    """How a message ended, if it has."""

    status: str
    reason: str
    at: float
    attempts: int


class SlotRunReader:
    """Reads slots with their results and costs."""

    def __init__(self, rows: Inspection, complain: Complain) -> None:
        self._rows = rows
        self._complain = complain

    def runs(
        self, appointment: str = "", agent: str | None = None, since: float = 0.0
    ) -> Iterator[SlotRun]:
        """Give slots, those last begun first.

        Args:
            appointment: how its id begins; empty: of all, also of those long over.
            agent: only this one's; None: all.
            since: Unix seconds before which nothing is wanted.
        """
        wanted = appointment.upper()
        for row in self._rows.records(SLOT, since):
            if not row.owner.startswith(wanted):
                continue
            body = read_record(row, SlotRecord, self._complain)
            if body is not None and agent in {None, body.agent}:
                yield self._run(row, body)

    def _run(self, row: StoredRecord, body: SlotRecord) -> SlotRun:
        end = SlotEnd(body.outcome, body.reason, row.at, 0)
        if body.message:
            end = self._end(body.message)
        took = self._took(body.message, end.attempts)
        return SlotRun(
            appointment=body.appointment,
            kind=body.kind,
            agent=body.agent,
            connector=body.connector,
            chat=body.chat,
            text=body.text,
            due_at=moment(body.due),
            began_at=moment(row.at),
            ended_at=moment(end.at),
            status=end.status,
            reason="" if end.reason in SUCCEEDED else end.reason,
            count=body.count,
            late=round(max(0.0, row.at - body.due), 3),
            message=body.message,
            attempts=end.attempts,
            input_tokens=sum(each.input_tokens for each in took),
            output_tokens=sum(each.output_tokens for each in took),
            cost=sum(each.cost for each in took),
        )

    def _end(self, message: str) -> SlotEnd:
        try:
            row = self._rows.message(message)
        except MisuseError:  # forgotten; the audit is kept for longer
            return self._end_on_record(message)
        status = status_of(row.state, row.reason)
        return SlotEnd(status, row.reason, row.settled_at, row.attempts)

    def _end_on_record(self, message: str) -> SlotEnd:
        names = [message, *(f"{message}#{n}" for n in range(MOST_ATTEMPTS, 0, -1))]
        for name in names:
            row = self._rows.record(AUDIT, name)
            body = None if row is None else self._audited(row)
            if row is not None and body is not None:
                return SlotEnd(
                    status_of(body.status, body.reason),
                    body.reason,
                    row.at,
                    body.attempt,
                )
        return SlotEnd(FORGOTTEN, "", 0.0, MOST_ATTEMPTS)

    def _audited(self, row: StoredRecord) -> AuditRecord | None:
        return read_record(row, AuditRecord, self._complain)

    def _spent(self, row: StoredRecord) -> UsageRecord | None:
        return read_record(row, UsageRecord, self._complain)

    def _took(self, message: str, attempts: int) -> list[UsageRecord]:
        """Read what each attempt's calls took."""
        found: list[UsageRecord] = []
        for number in range(1, min(attempts, MOST_ATTEMPTS) + 1):
            row = self._rows.record(USAGE, f"{message}#{number}")
            body = None if row is None else self._spent(row)
            if body is not None:
                found.append(body)
        return found


def status_of(state: str, reason: str) -> str:
    """Give a message's end as `queue list` names it; here an apology is a failure."""
    if state == "replied" and reason not in SUCCEEDED:
        return STATUSES["dead"]
    return next((STATUSES[each] for each in STATUSES if each == state), state)


def is_open(status: str) -> bool:
    """Whether it waits for an agent, or one works on it."""
    open_states: tuple[InboxState, ...] = ("accepted", "running")
    return status in {STATUSES[state] for state in open_states}
