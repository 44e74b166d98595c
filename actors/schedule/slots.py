"""Prepares the one commit that carries out a slot.

Reads, decides by `conditions.py`, and writes rows; whoever asked commits them.
"""

from __future__ import annotations

from collections.abc import Collection
from datetime import UTC, tzinfo

import msgspec

from actors.journal import commits, notices as telling
from actors.journal.notices import SHOWN_ID
from actors.journal.parts import in_one_part
from actors.messages.deliveries import Delivery
from actors.messages.inbound import Address, Inbound
from actors.schedule import appointments as schedule
from actors.schedule.appointments import Appointment, DueOutcome, Previous, SlotPolicy
from actors.schedule.conditions import ConditionCheck, Conditions, DailyTokensUsed
from actors.schedule.occasions import TimeWords, as_inbound, parts_of
from actors.schedule.rows import SUCCEEDED, as_entry, of_slots, part_at, part_of, read
from actors.services import Services
from runtime.store.rows import Commit, Entry, InboxState, StoredEntry, StoredMessage
from runtime.telemetry.logs import EventLog

LOG = EventLog("schedule")

MOST_CAUGHT_UP = 10
"""Missed slots that are made up for, the newest."""

LATE_WITHIN = 60.0
"""Seconds: a slot that is late by no more than that was not missed."""

TOLD = "told"
"""Kind of the entries that tell on which day something was told last."""

OVERSPENT = (
    "⚠️ {agent} has used {used:,} of its {limit:,} tokens a day for what it does by the"
    " clock. What else is due today is left out; see: callboard schedule list"
)

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


WORST_FIRST: tuple[Previous, ...] = ("open", "failed", "done", "none")
"""Of several messages of one slot, what counts."""


class PreparedRun(msgspec.Struct, frozen=True):
    """The commit of one run, and whom to tell afterwards."""

    name: str
    before: Appointment
    woken: DueOutcome
    inbounds: tuple[Inbound, ...]
    notes: tuple[Delivery, ...]
    commit: Commit


class SlotNotice(msgspec.Struct, frozen=True):
    """A notice to people beside a run."""

    notes: tuple[Delivery, ...] = ()
    entries: tuple[Entry, ...] = ()


def in_parts(woken: DueOutcome, count: int) -> DueOutcome:
    """Note as how many messages the last slot is carried out."""
    if woken.after is None or not woken.slots:
        return woken
    after = msgspec.structs.replace(woken.after, last_parts=count)
    return msgspec.structs.replace(woken, after=after)


def chat_of(services: Services) -> Address | None:
    """Return the chat in which the owners get notices."""
    place = services.scheduler.report_to or services.approvals.approval_chat
    connector, _, chat = place.partition("/")
    return Address(connector, chat) if chat else None


class SlotPreparer:
    """Prepares the runs that are due.

    Args:
        barring: looks what stands in the way; None: nothing does.
    """

    def __init__(self, services: Services, barring: Conditions | None = None) -> None:
        self._barring = barring
        self._services = services

    @property
    def policy(self) -> SlotPolicy:
        """How late is too late, by the settings of now."""
        config = self._services.scheduler
        return SlotPolicy(
            catch_up=config.catch_up,
            catch_up_most=MOST_CAUGHT_UP,
            late_within=LATE_WITHIN,
            most_failures=config.most_failures,
        )

    def zone(self, it: Appointment) -> tzinfo:
        """Give an appointment's time zone, or UTC if it is gone."""
        zone = self._services.find_zone(it.zone)
        if zone is None:
            LOG.warning("time zone not known here; UTC is taken", zone=it.zone)
            return UTC
        return zone

    async def prepare(self, row: StoredEntry) -> PreparedRun | None:
        """Decide what is to be done; None: it cannot be read.

        A slot that was accepted before is left out: whoever changed the appointment
        meanwhile may have written it back.

        Raises:
            StoreUnavailableError: the disk fails.
        """
        it = read(row)
        if it is None:
            return None
        services, now = self._services, self._services.clock.wall()
        zone = self.zone(it)
        previous = await self._previous(row.id, it)
        outlook = ConditionCheck()
        if self._barring is not None:
            outlook = await self._barring.look(it, zone)
        woken = schedule.wake(it, now, zone, self.policy, previous, outlook.bar)
        woken = await self._without_known(row.id, it, woken)
        parts = parts_of(outlook.groups)
        woken = in_parts(woken, len(parts))
        is_plain = services.scheduler.reminders == "plain"
        times = TimeWords(now, zone, self.policy.late_within, is_plain=is_plain)
        inbounds = tuple(
            as_inbound(row.id, it, due, services.ids.new(), times, part)
            for due in woken.slots
            for part in parts
        )
        if self._barring is not None:
            self._barring.begin(inbounds)
        notes = (self._given_up(row.id, it, woken),) if woken.is_given_up else ()
        told = await self._overspent(it, outlook.overspent)
        after = as_entry(row.id, row.owner, woken.after, row.part, row.version)
        commit = Commit(
            at=now,
            accepts=tuple(commits.as_accept(each, now) for each in inbounds),
            deliveries=tuple(
                commits.as_enqueue(each, part_at(each.address))
                for each in (*notes, *told.notes)
            ),
            records=of_slots(row, it, woken, inbounds),
            entries=(
                after,
                *told.entries,
                *telling.of_slots(row.id, it, woken, services),
            ),
        )
        if commit.deliveries or len(commit.entries) > 1:
            commit = in_one_part(commit, part_of(it), f"{row.id}@{row.version}")
        return PreparedRun(row.id, it, woken, inbounds, (*notes, *told.notes), commit)

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
        parts = range(1, it.last_parts + 1)
        ends: set[Previous] = {
            await self._ended(it, schedule.part_name(slot, n)) for n in parts
        }
        how = worst(ends)
        if it.kind == "autonomous" and how == "done":
            # What was decided in it may still be carried out: never two at once.
            return await self._ended(it, schedule.plan_name(slot))
        return how

    async def _ended(self, it: Appointment, name: str) -> Previous:
        found = await self._services.store.answered(it.address.connector, name)
        return "done" if found is None else ended(found.message)

    async def _without_known(
        self, name: str, it: Appointment, woken: DueOutcome
    ) -> DueOutcome:
        """Leave out the slots that were accepted before."""
        known: set[float] = set()
        for due in woken.slots:
            slot = schedule.slot_name(name, due)
            if await self._services.store.answered(it.address.connector, slot):
                known.add(due)
        return schedule.without(woken, frozenset(known))

    async def _overspent(
        self, it: Appointment, spent: DailyTokensUsed | None
    ) -> SlotNotice:
        """Say once a day that an agent's tokens are used up."""
        if spent is None:
            return SlotNotice()
        store, name = self._services.store, f"tokens/{spent.agent}"
        known = await store.entry(TOLD, name)
        if known is not None and known.body == msgspec.json.encode(spent.day):
            return SlotNotice()
        unique = self._services.ids.new()
        where = chat_of(self._services) or it.address
        note = Delivery(
            id=f"{name}:{spent.day}:{unique}",
            correlation_id=unique,
            address=where,
            agent="",
            text=OVERSPENT.format(
                agent=spent.agent, used=spent.used, limit=spent.limit
            ),
            kind="notice",
            is_root=False,
        )
        entry = Entry(
            kind=TOLD,
            id=name,
            owner="",
            part=part_at(where),
            body=msgspec.json.encode(spent.day),
            expected=0 if known is None else known.version,
        )
        return SlotNotice((note,), (entry,))

    def _given_up(self, name: str, it: Appointment, woken: DueOutcome) -> Delivery:
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


def worst(ends: Collection[Previous]) -> Previous:
    """Say how a slot ended whose messages ended so."""
    for each in WORST_FIRST:
        if each in ends:
            return each
    return "none"


def ended(message: StoredMessage) -> Previous:
    """Tell how the work on a slot ended."""
    if message.state != "replied" or message.reason in SUCCEEDED:
        return ENDED[message.state]
    return "none" if message.reason in NOBODYS_FAULT else "failed"


def count(prepared: PreparedRun, services: Services) -> None:
    """Count and log what became of the slots that are stored."""
    metrics, woken = services.metrics, prepared.woken
    kind = prepared.before.kind
    now = services.clock.wall()
    for due in woken.slots:
        metrics.slots.add(1, kind, "fired")
        metrics.late(now - due)
        LOG.info(
            "appointment is due",
            appointment=prepared.name,
            kind=kind,
            late=round(now - due, 3),
        )
    for reason, count in woken.skipped:
        metrics.slots.add(count, kind, reason)
        LOG.info(
            "appointment skipped",
            appointment=prepared.name,
            kind=kind,
            reason=reason,
            count=count,
        )
    if woken.put_off and woken.after is not None:
        metrics.slots.add(1, kind, "put_off")
        later = round(woken.after.next_due - now)
        LOG.info("appointment put off", appointment=prepared.name, seconds=later)
    if woken.is_given_up:
        metrics.slots.add(1, kind, "paused")
        LOG.warning("appointment paused: it fails", appointment=prepared.name)
