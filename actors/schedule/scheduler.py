"""The actor that carries out each due slot once.

The rules are in `slots.py` and `booking.py`. It sleeps until the next
appointment and asks nobody in between. The clock on the wall may jump and a machine
may be suspended, which no timer tells, so it never sleeps longer than `LOOK_EVERY`.

Which appointments there are, and which is to be looked at next, is a pure part. It
holds a few words of each, never its text: of a hundred thousand, too.

Appointments that the settings want kept are stored at the scheduler's start. Configured
heartbeats are among them, so they are listed, paused, run and counted as those that
somebody asked for. A row of the settings is known by its `by_settings`: the rule that
they gave it last. What people change about it since then stays until the settings say
something else.
"""

from __future__ import annotations

import contextlib
import heapq
from collections import Counter
from datetime import UTC, tzinfo
from hashlib import sha256
from typing import TYPE_CHECKING, ClassVar

import msgspec

from actors import names
from actors.journal.notices import wake_notifiers
from actors.journal.parts import entries_of, in_one_part
from actors.memory import scopes
from actors.messages.inbound import Address
from actors.messages.keys import chat_partition
from actors.protocol import Deliver, Route, StopAccepting
from actors.schedule import appointments as standing, recurrence
from actors.schedule.appointments import WENT_BACK, Appointment
from actors.schedule.booking import AppointmentBook, AppointmentCounts
from actors.schedule.conditions import Conditions
from actors.schedule.messages import (
    AppointmentsChanged,
    AppointmentsStored,
    Arrange,
    Arranged,
    all_refused,
)
from actors.schedule.requests import carry_out
from actors.schedule.rows import KIND, PAGE, as_entry, of_owner, part_at, part_of, read
from actors.schedule.slots import PreparedRun, SlotPreparer, count
from runtime.actor.actor import Actor
from runtime.actor.mailbox import MailboxConfig
from runtime.errors import DuplicateError, SequenceConflictError, StoreError
from runtime.store.rows import Commit, Committed, Entry, StoredEntry
from runtime.telemetry.logs import EventLog

if TYPE_CHECKING:
    from collections.abc import Iterable, Set as AbstractSet

    from actors.agents.persona import Persona
    from actors.agents.roster import Roster
    from actors.config.agents import AgentConfig
    from actors.rules.markers.outcomes import ActionOutcome
    from actors.services import Services
    from runtime.actor.timers import Timer


LOG = EventLog("schedule")

ID_LENGTH = 26
"""Characters of an id, as of all others."""


class ConfiguredHeartbeat(msgspec.Struct, frozen=True):
    """One heartbeat of the settings."""

    id: str
    owner: str
    it: Appointment


class HeartbeatRow(msgspec.Struct, frozen=True):
    """A heartbeat as stored in its row."""

    row: StoredEntry
    it: Appointment


def changes(
    beats: Iterable[HeartbeatRow], roster: Roster, services: Services
) -> Commit | None:
    """Say what is to be stored for rows that are as the settings say; None: nothing."""
    now = services.clock.wall()
    wanted = {
        (each.it.agent, each.it.address): each
        for name in roster.team.names
        if (each := settled(roster.persona(name), services, now)) is not None
    }
    entries: list[Entry] = []
    for row, it in ((each.row, each.it) for each in beats):
        known = wanted.pop((it.agent, it.address), None)
        changed = without_settings(it) if known is None else brought_up(it, known.it)
        if changed != it:
            part = part_of(it)
            entries.append(as_entry(row.id, row.owner, changed, part, row.version))
    entries += [
        as_entry(each.id, each.owner, each.it, part_of(each.it), 0)
        for each in wanted.values()
    ]
    if not entries:
        return None
    LOG.info("heartbeats are as the settings say", changed=len(entries))
    commit = Commit(at=now, entries=tuple(entries))
    return in_one_part(commit, entries[0].part, services.ids.new())


def settled(
    persona: Persona, services: Services, now: float
) -> ConfiguredHeartbeat | None:
    """Give the heartbeat that an agent has by the settings; None: it has none."""
    config = persona.config.heartbeat
    connector, _, chat = config.chat.partition("/")
    zone = services.find_zone(persona.config.context.time_zone)
    if not chat or zone is None:
        return None
    address = Address(connector, chat, config.thread)
    sender = config.sender or (chat if config.is_direct else "")
    person = f"{connector}/{sender}" if sender else ""
    rule = recurrence.beat(config.every)
    anchor = now // 1
    it = Appointment(
        kind="heartbeat",
        agent=persona.name,
        address=address,
        is_direct=config.is_direct,
        sender_id=sender,
        person=person,
        repeat=rule,
        zone=persona.config.context.time_zone,
        anchor=anchor,
        next_due=recurrence.RecurrenceRule(rule, anchor, zone).next_after(now) or 0.0,
        created_at=now,
        by_settings=rule,
    )
    owner = scopes.writing(address, person, is_direct=config.is_direct)
    return ConfiguredHeartbeat(id_of(persona.name, address), owner, it)


def id_of(agent: str, address: Address) -> str:
    """Name an agent's heartbeat in a chat; each process gives it the same name."""
    told = "\n".join(("heartbeat", agent, *msgspec.structs.astuple(address)))
    return sha256(told.encode()).hexdigest()[:ID_LENGTH].upper()


def brought_up(it: Appointment, wanted: Appointment) -> Appointment:
    """Give a row as the settings say, and as people changed it since they did."""
    changed = msgspec.structs.replace(
        it,
        is_direct=wanted.is_direct,
        sender_id=wanted.sender_id,
        person=wanted.person,
        by_settings=wanted.by_settings,
    )
    is_same = it.by_settings == wanted.by_settings and it.zone == wanted.zone
    if is_same and it.next_due:
        return changed
    repeat = it.repeat if is_same else wanted.repeat
    return msgspec.structs.replace(
        changed, repeat=repeat, zone=wanted.zone, next_due=wanted.next_due
    )


def without_settings(it: Appointment) -> Appointment | None:
    """Give a row that the settings do not know: what people asked for stays."""
    if it.by_settings and not (it.items or it.text):
        return None
    return msgspec.structs.replace(it, by_settings="")


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
            commit = Commit(at=now, entries=entries)
            commit = in_one_part(commit, entries[0].part, services.ids.new())
            await services.store.commit(commit)
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


class AgendaEntry(msgspec.Struct, frozen=True):
    """What the agenda knows of an appointment without reading its row."""

    wakes: float
    """Unix seconds at which to look at it; 0: never."""

    agent: str
    person: str


class Agenda:
    """All appointments in the order of their next times."""

    def __init__(self) -> None:
        self._known: dict[str, AgendaEntry] = {}
        self._heap: list[tuple[float, str]] = []

    def __len__(self) -> int:
        """How many appointments there are."""
        return len(self._known)

    def put(self, name: str, known: AgendaEntry) -> None:
        """Note an appointment, or how it has changed."""
        self._known[name] = known
        if known.wakes:
            heapq.heappush(self._heap, (known.wakes, name))
        if len(self._heap) > 2 * len(self._known) + 64:
            self._sweep()

    def drop(self, name: str) -> None:
        """Forget an appointment."""
        self._known.pop(name, None)

    def replace(self, known: dict[str, AgendaEntry]) -> None:
        """Forget all, and note these."""
        self._known = dict(known)
        self._sweep()

    def take_due(self, now: float, most: int) -> list[str]:
        """Take what is to be looked at, the longest due first.

        What is taken does not come again until it is put again.
        """
        found: list[str] = []
        while len(found) < most and (at := self.next_at()) is not None and at <= now:
            _, name = heapq.heappop(self._heap)
            known = self._known[name]
            self._known[name] = msgspec.structs.replace(known, wakes=0.0)
            found.append(name)
        return found

    def next_at(self) -> float | None:
        """Give when to look next, in Unix seconds; None: there is nothing."""
        while self._heap:
            at, name = self._heap[0]
            known = self._known.get(name)
            if known is not None and known.wakes == at:
                return at
            heapq.heappop(self._heap)  # it was changed, or is gone
        return None

    def count(self, person: str) -> AppointmentCounts:
        """Count a person's, and each agent's."""
        known = self._known.values()
        mine = sum(each.person == person for each in known)
        return AppointmentCounts(mine, dict(Counter(each.agent for each in known)))

    def _sweep(self) -> None:
        found = self._known.items()
        self._heap = [(each.wakes, name) for name, each in found if each.wakes]
        heapq.heapify(self._heap)


# Chosen: a jump of the clock, or a night of the laptop's, is noticed within a minute.
LOOK_EVERY = 60.0
"""Seconds after which the clock is looked at again, at the latest."""

AT_ONCE = 100
"""Appointments that are begun before anybody else is heard."""

RETRY = 5.0
"""Seconds until something is tried again that the disk did not take."""

PROMISED_FOR = 3600.0
"""Seconds in which rows are looked for that were given out and not heard of again:
whoever wanted to store them may have been killed right after it did."""


OUT_OF_REACH = (ValueError, ArithmeticError)
"""What reckoning with times and rules raises that another release, or a slip of the
hand, may have written: one such row must not keep all others from their time."""


class SchedulerTick(msgspec.Struct, frozen=True):
    """A note to itself: a slot is due, or the clock has to be checked."""


class SlotStored(msgspec.Struct, frozen=True):
    """A note to itself: the outcome of the commit of a run."""

    prepared: PreparedRun
    outcome: Committed | Exception


class Scheduler(Actor):
    """Carries out reminders, tasks, cron jobs and heartbeats of all agents.

    Takes: `Arrange` (asked), `AppointmentsStored`, `AppointmentsChanged`,
        `StopAccepting`.
    Sends: `Route` to the router for what is due; `Deliver` for what was given up, and
        of tokens that are used up; `AtWork` to the limiter before a heartbeat.
    Keeps: when each appointment is due; their texts stay in the store.
    Fails: never by an appointment; on a disk that fails at its start, which its
        supervisor tries again.
    Ends: with the system.

    Args:
        connectors: names of those that run now; appointments of others wait for them.
        roster: the agents as they are now; None: only appointments tell of them.
    """

    mailbox: ClassVar[MailboxConfig] = MailboxConfig(capacity=10_000)
    deadline: ClassVar[float | None] = 120.0

    def __init__(
        self,
        services: Services,
        connectors: AbstractSet[str],
        roster: Roster | None = None,
    ) -> None:
        super().__init__()
        self._roster = roster
        self._services = services
        self._connectors = connectors
        self._slots = SlotPreparer(services, Conditions(services, self._config, self))
        self._agenda = Agenda()
        self._timer: Timer | None = None
        self._last_wall = services.clock.wall()
        self._promised: dict[str, float] = {}
        """Ids that were given out, and until when (monotonic) they are looked for."""

        self._is_stopping = False

    async def on_start(self) -> None:
        """Read what there is."""
        await self._load()
        self._arm()

    async def on_receive(self, message: object) -> object:
        """Take a wish, or see what is due."""
        match message:
            case Arrange():
                return await self._arrange(message)
            case AppointmentsStored(ids=ids):
                for name in ids:
                    self._promised.pop(name, None)
                await self._look_at(ids)
            case SchedulerTick():
                await self._tick()
            case SlotStored():
                self._stored(message)
            case AppointmentsChanged():
                await self._load_again()
            case StopAccepting():
                self._is_stopping = True
            case _:
                return super().on_receive(message)
        self._arm()
        return None

    @property
    def _is_closed(self) -> bool:
        return self._is_stopping or not self._services.scheduler.is_on

    # --- what there is --------------------------------------------------------------

    async def _load(self) -> None:
        """Read all appointments; reckon anew what was written in the future.

        Before that, what the settings want is made, changed and ended.
        """
        if not self._is_closed:
            await settle(self._services)
        known: dict[str, AgendaEntry] = {}
        beats: list[HeartbeatRow] = []
        after = ""
        while True:
            rows = await self._services.store.entries(KIND, None, after, PAGE)
            for row in rows:
                after = row.id
                it = await self._turn_back(row)
                if it is not None:
                    known[row.id] = self._as_known(it)
                if it is not None and it.kind == "heartbeat":
                    beats.append(HeartbeatRow(row, it))
            if len(rows) < PAGE:
                break
        self._agenda.replace(known)
        self._services.metrics.appointments.set(len(self._agenda))
        await self._settle(beats)

    async def _load_again(self) -> None:
        try:
            await self._load()
        except StoreError as error:
            LOG.warning("appointments not read yet", why=str(error))
            self.after(RETRY, AppointmentsChanged())

    async def _settle(self, beats: list[HeartbeatRow]) -> None:
        """Have the heartbeats that the settings say, and those only."""
        if self._roster is None or self._is_closed:
            return
        commit = changes(beats, self._roster, self._services)
        if commit is None:
            return
        try:
            await self._services.store.commit(commit)
        except SequenceConflictError as error:
            # One of them was carried out, or changed by somebody: none is stored.
            LOG.info("heartbeats are looked at again", why=str(error))
            self.after(RETRY, AppointmentsChanged())
        else:
            await self._look_at(tuple(each.id for each in commit.entries))

    def _config(self, agent: str) -> AgentConfig | None:
        found = None if self._roster is None else self._roster.team.personas.get(agent)
        return None if found is None else found.config

    async def _turn_back(self, row: StoredEntry) -> Appointment | None:
        try:
            commit = self._slots.turned_back(row)
        except OUT_OF_REACH as error:
            LOG.fault("appointment cannot be reckoned", error, appointment=row.id)
            return None
        if commit is None:
            return read(row)
        # Whoever was first has reckoned it anew.
        with contextlib.suppress(SequenceConflictError):
            await self._services.store.commit(commit)
        LOG.warning("the clock went back; reckoned anew", appointment=row.id)
        found = await self._services.store.entry(KIND, row.id)
        return None if found is None else read(found)

    async def _look_at(self, ids: tuple[str, ...]) -> None:
        """Take up what was changed in these rows."""
        try:
            for name in ids:
                self._note(name, await self._services.store.entry(KIND, name))
        except StoreError as error:
            LOG.warning("appointments not read yet", why=str(error))
            self.after(RETRY, AppointmentsStored(ids))

    def _note(self, name: str, row: StoredEntry | None) -> None:
        it = None if row is None else read(row)
        if it is None:
            self._agenda.drop(name)
        else:
            self._agenda.put(name, self._as_known(it))
        self._services.metrics.appointments.set(len(self._agenda))

    def _as_known(self, it: Appointment) -> AgendaEntry:
        connector, chat = it.address.connector, it.address.chat
        duties = self._services.duties
        is_here = connector in self._connectors or duties.is_away(connector)
        # Of several nodes that one carries it out which works on the chat.
        is_here = is_here and duties.has_chat(connector, chat)
        return AgendaEntry(it.wakes if is_here else 0.0, it.agent, it.person)

    # --- what is due -----------------------------------------------------------------

    def _arm(self) -> None:
        """Sleep until the next appointment."""
        if self._timer is not None:
            self._timer.cancel()
        at = self._agenda.next_at()
        wait = LOOK_EVERY
        if at is not None and not self._is_closed:
            wait = min(max(0.0, at - self._services.clock.wall()), LOOK_EVERY)
        self._timer = self.after(wait, SchedulerTick())

    async def _tick(self) -> None:
        now = self._services.clock.wall()
        went_back = now < self._last_wall - WENT_BACK
        self._last_wall = now
        if self._promised:
            await self._look_for_promised()
        if went_back:
            await self._load_again()
        if self._is_closed:
            return
        for name in self._agenda.take_due(now, AT_ONCE):
            await self._begin(name)

    async def _look_for_promised(self) -> None:
        now = self._services.clock.monotonic()
        ids = tuple(self._promised)
        self._promised = {k: at for k, at in self._promised.items() if at > now}
        await self._look_at(ids)

    async def _begin(self, name: str) -> None:
        """Carry out what is due of an appointment."""
        store = self._services.store
        try:
            row = await store.entry(KIND, name)
            if row is None:
                self._agenda.drop(name)
                return
            prepared = await self._slots.prepare(row)
        except StoreError as error:
            LOG.warning("appointment not begun yet", appointment=name, why=str(error))
            self.after(RETRY, AppointmentsStored((name,)))
            return
        except OUT_OF_REACH as error:
            LOG.fault("appointment cannot be reckoned", error, appointment=name)
            prepared = None
        if prepared is None:
            self._agenda.drop(name)
            return
        note, tell = self.note, self.tell
        began_at = self._services.clock.monotonic()

        def done(outcome: Committed | Exception) -> None:
            # Why here: this actor may be killed before it is told; what is stored and
            # not routed otherwise waits for the router to look.
            if isinstance(outcome, Committed):
                for inbound, number in zip(
                    prepared.inbounds, outcome.accepted, strict=True
                ):
                    tell(names.ROUTER, Route(inbound, number, began_at))
                commit = prepared.commit
                rows = entries_of(commit) if commit.handovers else commit.entries
                wake_notifiers(self.find, rows)
            note(SlotStored(prepared, outcome))

        store.submit(prepared.commit, done)

    def _stored(self, stored: SlotStored) -> None:
        prepared, outcome = stored.prepared, stored.outcome
        name = prepared.name
        if isinstance(outcome, Committed):
            count(prepared, self._services)
            self._go_on(prepared, outcome.waiting)
            return
        # Somebody else was first, or it was changed meanwhile: a new look tells which.
        is_overtaken = isinstance(outcome, DuplicateError | SequenceConflictError)
        wait = 0.0 if is_overtaken else RETRY
        tell = LOG.warning if wait else LOG.info
        tell("appointment is looked at again", appointment=name, why=str(outcome))
        self.after(wait, AppointmentsStored((name,)))

    def _go_on(self, prepared: PreparedRun, waiting: tuple[int, ...]) -> None:
        after = prepared.woken.after
        if after is None:
            self._agenda.drop(prepared.name)
            self._services.metrics.appointments.set(len(self._agenda))
        else:
            self._agenda.put(prepared.name, self._as_known(after))
        for delivery in prepared.notes:
            if part_at(delivery.address) in waiting:
                continue  # its owner stores it first
            self.tell(names.connector(delivery.address.connector), Deliver(delivery))

    # --- what is wanted --------------------------------------------------------------

    async def _arrange(self, arrange: Arrange) -> Arranged:
        origin, services = arrange.origin, self._services
        try:
            kept = await of_owner(services.store, origin.scope)
        except StoreError as error:
            LOG.warning("nothing can be arranged now", why=str(error))
            return all_refused(arrange, "it cannot be stored now; try again later")
        zone = services.find_zone(origin.zone)
        if zone is None:
            return all_refused(arrange, f"time zone {origin.zone!r} is not known")
        account = services.accounts[origin.address.connector]
        book = AppointmentBook(
            origin=origin,
            zone=zone,
            kept=kept,
            counts=self._agenda.count(origin.person),
            config=services.scheduler,
            now=services.clock.wall(),
            # Why backwards: the beginning of an id is its time, which many share;
            # people tell appointments apart by the first characters.
            new_id=lambda: services.ids.new()[::-1],
            is_open=account.abilities.shows_asides,
        )
        results = tuple(
            self._redacted(carry_out(book, wish)) for wish in arrange.wishes
        )
        part = chat_partition(origin.address.connector, origin.address.chat)
        # Why no version is expected: a slot that is carried out meanwhile must not
        # make somebody's answer fail. Should it stand in the row again, its name is
        # known, and it is skipped.
        changes = tuple(
            as_entry(name, origin.scope, self._kept(it), part, None)
            for name, it in book.changed.items()
        )
        until = services.clock.monotonic() + PROMISED_FOR
        self._promised.update((each.id, until) for each in changes)
        return Arranged(changes=changes, results=results)

    def _redacted(self, outcome: ActionOutcome) -> ActionOutcome:
        what = self._services.redact(outcome.what)
        return msgspec.structs.replace(outcome, what=what)

    def _kept(self, it: Appointment | None) -> Appointment | None:
        if it is None:
            return None
        redact = self._services.redact
        return msgspec.structs.replace(
            it, text=redact(it.text), items=tuple(map(redact, it.items))
        )
