"""How appointments are written down, and read."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from actors.rules.keys import chat_partition
from actors.rules.schedule import Appointment
from runtime.entries import Entry
from runtime.logs import EventLog

if TYPE_CHECKING:
    from actors.messages import Address
    from runtime.entries import StoredEntry
    from runtime.store import Entries

LOG = EventLog("schedule")

KIND = "appointment"
PAGE = 1000

SHOWN_ID = 6
"""Characters of an id that people see; a longer beginning is needed very rarely."""


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
