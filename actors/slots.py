"""What carrying out a slot comes to: the one commit that does it.

Reads, decides by `rules/schedule.py`, and writes rows; whoever asked commits them.
"""

from __future__ import annotations

from datetime import UTC
from typing import TYPE_CHECKING

import msgspec

from actors import commits, telling
from actors.deliveries import Delivery
from actors.messages import Inbound
from actors.occasions import Times, as_inbound
from actors.rules import schedule
from actors.rules.schedule import Appointment, Policy, Previous, Woken
from actors.schedule_rows import SHOWN_ID, as_entry, part_of, read
from actors.slot_records import SUCCEEDED, of_slots
from runtime.logs import EventLog
from runtime.rows import Commit

if TYPE_CHECKING:
    from datetime import tzinfo

    from actors.services import Services
    from runtime.entries import StoredEntry
    from runtime.rows import InboxState, StoredMessage

LOG = EventLog("schedule")

GIVEN_UP = (
    "⚠️ I have paused this, since it failed {count} times in a row: {what}\n"
    "Ask me to change it, or: callboard schedule resume {name}"
)

ENDED: dict[InboxState, Previous] = {
    "accepted": "open",
    "running": "open",
    "replied": "done",
    "cancelled": "done",
    "dropped": "failed",
    "dead": "failed",
}

NOBODYS_FAULT = frozenset({"budget"})
"""Tomorrow there may be money again: no failure, and no success either."""


class Prepared(msgspec.Struct, frozen=True):
    """What is to be stored about an appointment that woke, and told afterwards."""

    name: str
    before: Appointment
    woken: Woken
    inbounds: tuple[Inbound, ...]
    notes: tuple[Delivery, ...]
    commit: Commit


class Slots:
    """Prepares what is due.

    Args:
        services: store, clock, ids, settings.
    """

    def __init__(self, services: Services) -> None:
        config = services.scheduler
        self._services = services
        self.policy = Policy(
            catch_up=config.catch_up,
            catch_up_most=config.catch_up_most,
            late_within=config.late_within,
            most_failures=config.most_failures,
        )

    def zone(self, it: Appointment) -> tzinfo:
        """Give an appointment's time zone, or UTC if it is gone."""
        zone = self._services.find_zone(it.zone)
        if zone is None:
            LOG.warning("time zone not known here; UTC is taken", zone=it.zone)
            return UTC
        return zone

    async def prepare(self, row: StoredEntry, *, looks: bool) -> Prepared | None:
        """Decide what is to be done; None: it cannot be read.

        Args:
            row: the appointment as it stands.
            looks: whether to look for slots that were accepted before.

        Raises:
            StoreUnavailableError: the disk fails.
        """
        it = read(row)
        if it is None:
            return None
        services, now = self._services, self._services.clock.wall()
        zone = self.zone(it)
        previous = await self._previous(row.id, it)
        woken = schedule.wake(it, now, zone, self.policy, previous)
        if looks:
            woken = await self._without_known(row.id, it, woken)
        is_plain = services.scheduler.reminders == "plain"
        times = Times(now, zone, self.policy.late_within, is_plain=is_plain)
        inbounds = tuple(
            as_inbound(row.id, it, due, services.ids.new(), times)
            for due in woken.slots
        )
        notes = (self._given_up(row.id, it, woken),) if woken.is_given_up else ()
        after = as_entry(row.id, row.owner, woken.after, row.part, row.version)
        commit = Commit(
            at=now,
            accepts=tuple(commits.as_accept(each, now) for each in inbounds),
            deliveries=tuple(commits.as_enqueue(each, row.part) for each in notes),
            records=of_slots(row, it, woken, inbounds),
            entries=(after, *telling.of_slots(row.id, it, woken, services)),
        )
        return Prepared(row.id, it, woken, inbounds, notes, commit)

    def turned_back(self, row: StoredEntry) -> Commit | None:
        """Reckon a row anew that was written at a time yet to come; None: as it is."""
        now = self._services.clock.wall()
        it = read(row) if row.at > now + schedule.WENT_BACK else None
        if it is None:
            return None
        changed = schedule.turned_back(it, now, self.zone(it))
        if changed == it:
            return None
        entry = as_entry(row.id, row.owner, changed, part_of(it), row.version)
        return Commit(at=now, entries=(entry,))

    async def _previous(self, name: str, it: Appointment) -> Previous:
        """Tell what became of the slot before, if that matters."""
        if not (it.last_due and it.repeat):
            return "none"
        slot = schedule.slot_name(name, it.last_due)
        how = await self._ended(it, slot)
        if it.kind == "autonomous" and how == "done":
            # What was decided in it may still be carried out: never two at once.
            return await self._ended(it, schedule.plan_name(slot))
        return how

    async def _ended(self, it: Appointment, name: str) -> Previous:
        found = await self._services.store.answered(it.address.connector, name)
        return "done" if found is None else ended(found.message)

    async def _without_known(self, name: str, it: Appointment, woken: Woken) -> Woken:
        """Leave out the slots that were accepted before."""
        known: set[float] = set()
        for due in woken.slots:
            slot = schedule.slot_name(name, due)
            if await self._services.store.answered(it.address.connector, slot):
                known.add(due)
        return schedule.without(woken, frozenset(known))

    def _given_up(self, name: str, it: Appointment, woken: Woken) -> Delivery:
        count = it.failures + 1 if woken.after is None else woken.after.failures
        what = it.text or "; ".join(it.items)
        text = GIVEN_UP.format(count=count, what=what[:200], name=name[:SHOWN_ID])
        unique = self._services.ids.new()
        return Delivery(
            id=f"{name}:paused:{unique}",
            correlation_id=unique,
            address=it.address,
            agent="",
            text=text,
            kind="notice",
            is_root=False,
        )


def ended(message: StoredMessage) -> Previous:
    """Tell how the work on a slot ended."""
    if message.state != "replied" or message.reason in SUCCEEDED:
        return ENDED[message.state]
    return "none" if message.reason in NOBODYS_FAULT else "failed"
