"""How appointments and runs are stored and read.

How the appointments of a person or a group are listed: `/tasks`, and for models.

What became of each slot of an appointment, for people who read it later; pure.

Written in the one commit that carries a slot out, or leaves it out. How the work on it
ended stands in the inbox, then in the audit, and what it took in the ledger: said once
there, it is looked up and not written down again. No event tells of a slot, so
`callboard records` leaves these rows alone; they are kept for
`scheduler.history_days`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import tzinfo
from typing import Literal

import msgspec

from actors.journal.notices import SHOWN_ID
from actors.messages.inbound import Address, Inbound
from actors.messages.keys import chat_partition
from actors.rules.text.durations import in_words
from actors.schedule.appointments import (
    PLAN,
    Appointment,
    DueOutcome,
    slot_name,
    words_of,
)
from actors.schedule.decisions import steps_of
from actors.schedule.recurrence import repeat_shown
from runtime.store.port import Entries
from runtime.store.rows import Entry, Record, StoredEntry
from runtime.telemetry.logs import EventLog

LOG = EventLog("schedule")

KIND = "appointment"
PAGE = 1000


def as_entry(
    name: str, owner: str, it: Appointment | None, part: int, expected: int | None
) -> Entry:
    """Write an appointment down; None: it is to go."""
    return Entry(
        kind=KIND,
        id=name,
        owner=owner,
        part=part,
        body=None if it is None else msgspec.json.encode(it),
        expected=expected,
    )


def part_of(it: Appointment) -> int:
    """Give the partition of an appointment: that of its chat."""
    return part_at(it.address)


def part_at(address: Address) -> int:
    """Give the partition of what is said in a chat."""
    return chat_partition(address.connector, address.chat)


def read(row: StoredEntry) -> Appointment | None:
    """Read an appointment; None if that cannot be done."""
    try:
        return msgspec.json.decode(row.body, type=Appointment)
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        # Left as it is: a later release may read it.
        LOG.fault("appointment cannot be read", error, appointment=row.id)
        return None


async def of_owner(store: Entries, owner: str) -> dict[str, Appointment]:
    """Read the appointments of a person or a group, by id.

    Raises:
        StoreUnavailableError: the disk fails.
    """
    found: dict[str, Appointment] = {}
    after = ""
    while True:
        rows = await store.entries(KIND, owner, after, PAGE)
        for row in rows:
            after = row.id
            if (it := read(row)) is not None:
                found[row.id] = it
        if len(rows) < PAGE:
            return found


MOST_SHOWN = 20
SHOWN = 80
"""Characters shown of each text."""


async def listed(
    store: Entries,
    scope: str,
    find_zone: Callable[[str], tzinfo | None],
    most: int = MOST_SHOWN,
) -> tuple[str, ...]:
    """Give a line for each appointment of a scope, the next one first.

    Args:
        scope: whose; see `rules/appointing.Origin`.
        find_zone: gives a time zone by its name.

    Raises:
        StoreUnavailableError: the disk fails.
    """
    found = await of_owner(store, scope)
    inf = float("inf")
    order = sorted(found.items(), key=lambda each: (each[1].wakes or inf, each[0]))
    return tuple(line(name, it, find_zone(it.zone)) for name, it in order[:most])


def line(name: str, it: Appointment, zone: tzinfo | None) -> str:
    """Show one: `A1B2C3 task · Mon 2026-11-23 09:00 UTC · daily · water the roses`."""
    when = "paused" if it.paused else "nothing to do"
    if it.wakes and zone is not None:
        when = in_words(it.wakes, zone, it.zone)
    what = " ".join(words_of(it).split())
    what = what if len(what) <= SHOWN else f"{what[: SHOWN - 1]}…"
    parts = (f"{name[:SHOWN_ID]} {it.kind}", when, repeat_shown(it.repeat), what)
    return " · ".join(each for each in parts if each)


SLOT = "slot"

LONGEST = 120
"""Characters that are kept of what was to be said or done."""

SUCCEEDED = frozenset(
    {"ok", "silent", "reminder", "merged", "steered", "idle", "decided"}
)
"""Reasons for which a message was answered with what was wanted. All others go with an
excuse, and that is a failure: what nobody can pay for, or may do, is to be paused."""

Outcome = Literal["fired", "skipped", "put_off", "paused"]
"""It was carried out; it was not; it comes later; the appointment rests from now on,
since it fails."""


class SlotRecord(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One run, or several slots that were skipped for the same reason."""

    appointment: str
    kind: str
    agent: str
    connector: str
    chat: str
    text: str
    outcome: Outcome
    reason: str = ""
    """Why it was skipped, or put off: one word of `rules/schedule.Skip`."""

    due: float
    """Unix seconds; of several the first."""

    count: int = 1
    message: str = ""
    """Id of the message that stands for it in the inbox."""


def of_slots(
    row: StoredEntry, it: Appointment, woken: DueOutcome, inbounds: tuple[Inbound, ...]
) -> tuple[Record, ...]:
    """Write down what is done about an appointment that woke."""
    return tuple(
        Record(
            kind=SLOT,
            id=name,
            owner=row.id,
            part=row.part,
            body=msgspec.json.encode(body),
        )
        for name, body in _bodies(row.id, it, woken, inbounds)
    )


def of_plan(inbound: Inbound) -> Record:
    """Write down that an agent does something by itself, in a slot of its own runs."""
    slot = inbound.platform_id
    name, _, due = slot.rpartition(PLAN)[0].rpartition("@")
    body = SlotRecord(
        appointment=name,
        kind="plan",
        agent=inbound.agent,
        connector=inbound.address.connector,
        chat=inbound.address.chat,
        text=_cut(steps_of(inbound.text)),
        outcome="fired",
        due=float(due),
        message=inbound.id,
    )
    part = chat_partition(inbound.address.connector, inbound.address.chat)
    row = msgspec.json.encode(body)
    return Record(kind=SLOT, id=slot, owner=name, part=part, body=row)


def _cut(text: str) -> str:
    return text if len(text) <= LONGEST else f"{text[: LONGEST - 1]}…"


def _bodies(
    name: str, it: Appointment, woken: DueOutcome, inbounds: tuple[Inbound, ...]
) -> Iterator[tuple[str, SlotRecord]]:
    what = " ".join(words_of(it).split())
    body = SlotRecord(
        appointment=name,
        kind=it.kind,
        agent=it.agent,
        connector=it.address.connector,
        chat=it.address.chat,
        text=_cut(what),
        outcome="fired",
        due=it.next_due or it.run_at,
    )
    change = msgspec.structs.replace
    parts = len(inbounds) // len(woken.slots) if woken.slots else 0
    times = [due for due in woken.slots for _ in range(parts)]
    for due, inbound in zip(times, inbounds, strict=True):
        yield inbound.platform_id, change(body, due=due, message=inbound.id)
    skipped = change(body, outcome="skipped")
    for reason, count in woken.skipped:
        # Why the reason: slots of one wake may be skipped for two of them.
        record_id = f"{slot_name(name, body.due)}:{reason}"
        yield record_id, change(skipped, reason=reason, count=count)
    if woken.put_off is not None:
        record_id = f"{slot_name(name, body.due)}:put_off"
        yield record_id, change(body, outcome="put_off", reason=woken.put_off)
    if woken.is_given_up:
        record_id = f"{slot_name(name, body.due)}:paused"
        yield record_id, change(body, outcome="paused", reason="failures")
