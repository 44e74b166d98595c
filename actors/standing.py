"""Stores the appointments that the settings want kept; at the scheduler's start."""

from __future__ import annotations

from datetime import UTC
from typing import TYPE_CHECKING

from actors.rules import standing
from actors.schedule_rows import KIND, PAGE, as_entry, part_of, read
from runtime.errors import SequenceConflictError
from runtime.logs import EventLog
from runtime.rows import Commit

if TYPE_CHECKING:
    from datetime import tzinfo

    from actors.rules.schedule import Appointment
    from actors.services import Services
    from runtime.entries import StoredEntry

LOG = EventLog("schedule")

TRIES = 3
"""How often rows are read again that another program changed at the same moment."""


async def settle(services: Services) -> None:
    """Make, change and end what the settings say of things done again and again.

    Raises:
        StoreError: the rows cannot be read or written.
    """

    def zone_of(it: Appointment) -> tzinfo:
        return services.find_zone(it.zone) or UTC

    for _ in range(TRIES):
        rows = await _rows(services)
        kept = {name: it for name, row in rows.items() if (it := read(row)) is not None}
        now = services.clock.wall()
        changes = standing.settle(kept, services.standing, now, zone_of)
        if not changes:
            return
        entries = tuple(
            as_entry(
                name,
                standing.OWNER,
                it,
                part_of(it or kept[name]),
                rows[name].version if name in rows else 0,
            )
            for name, it in changes.items()
        )
        try:
            await services.store.commit(Commit(at=now, entries=entries))
        except SequenceConflictError:
            continue
        LOG.info("appointments of the settings stored", count=len(changes))
        return
    LOG.warning("appointments of the settings changed meanwhile; left as they are")


async def _rows(services: Services) -> dict[str, StoredEntry]:
    found: dict[str, StoredEntry] = {}
    after = ""
    while True:
        page = await services.store.entries(KIND, standing.OWNER, after, PAGE)
        for row in page:
            after = row.id
            found[row.id] = row
        if len(page) < PAGE:
            return found
