"""The keeper: watches the store's health, prunes old rows, notices outside changes."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from typing import ClassVar

import msgspec

from actors import names
from actors.agents.messages import ReadStaff
from actors.agents.rows import AGENT, AT_REST, CHANGE, CLIENT
from actors.journal.clock import SureClock
from actors.journal.notices import DUE
from actors.journal.records import AUDIT
from actors.models.cool_downs import COOL_DOWN
from actors.models.messages import ReadCalls, ReadCoolDowns
from actors.models.spending import CALL
from actors.people import owners
from actors.people.guests import ReadGuests
from actors.people.lookup import ForgetPeople
from actors.people.pairing_rows import GUEST, PAIRING
from actors.people.rows import ALIAS, PERSON
from actors.protocol import DrainOutbox, RouteArrived, RouteUnanswered
from actors.schedule import rows as appointments
from actors.schedule.messages import AppointmentsChanged
from actors.schedule.rows import SLOT
from actors.services import Duties
from actors.webhooks.messages import SendNotices
from runtime.actor.actor import Actor
from runtime.errors import CorruptError, StoreError
from runtime.store.port import Store
from runtime.store.rows import ANY_KIND
from runtime.telemetry.logs import EventLog

LOG = EventLog("store")

# Chosen: the longest redelivery of any platform is seven days; one more to be safe.
KEEP_DEDUP = 8 * 86_400.0

# Chosen: the longest period of a budget, twice; only budgets go by them.
KEEP_CALLS = 62 * 86_400.0
PRUNE_EVERY = 3600.0
PRUNE_LIMIT = 1000
LOOK_EVERY = 2.0

TOLD_EVERY = 150
"""Probes of a disk that stays full, for one line in the log: five minutes."""

READERS: tuple[tuple[frozenset[str], str, object], ...] = (
    (frozenset({PERSON, ALIAS}), names.PEOPLE, ForgetPeople()),
    (frozenset({PAIRING, GUEST}), names.PAIRING, ReadGuests()),
    (frozenset({owners.KIND}), names.OWNERS, owners.ReadChats()),
    (frozenset({AGENT, CLIENT, AT_REST}), names.STAFF, ReadStaff()),
    (frozenset(), names.ROUTER, RouteUnanswered()),
    (frozenset({"inbox"}), names.ROUTER, RouteArrived()),
    (frozenset({appointments.KIND}), names.SCHEDULER, AppointmentsChanged()),
    (frozenset({CALL}), names.MODELS, ReadCalls()),
    (frozenset({COOL_DOWN}), names.MODELS, ReadCoolDowns()),
)
"""Who holds rows of which kinds in memory, and what has them read again; all are told
when another program than a node has changed some."""

WATCHED = frozenset(
    {
        PERSON,
        ALIAS,
        PAIRING,
        GUEST,
        owners.KIND,
        AGENT,
        CLIENT,
        AT_REST,
        CALL,
        COOL_DOWN,
    }
)
"""Kinds of rows of which nodes tell each other when they change them."""

UNHURRIED = frozenset({CALL})
"""Those of which they need not hear at once: each model call writes one."""


class Prune(msgspec.Struct, frozen=True):
    """A note to itself: delete old rows."""


class CheckStore(msgspec.Struct, frozen=True):
    """A note to itself: look for outside changes, and whether the disk works again."""


class Keeper(Actor):
    """Looks after the store, which is opened before the tree and closed after it.

    Takes: nothing.
    Sends: when another node, or another program such as `callboard queue retry`, has
        changed rows, or rows were handed over: to each who holds such rows what has it
        read them again (`READERS`), `SendNotices` to webhooks, `DrainOutbox` to the
        connectors.
    Keeps: nothing.
    Fails: never by a disk that fails; readiness shows that.
    Ends: with the system, after everything that writes.

    Args:
        clock: gives the time that has surely passed; looked after here, too.
        audit_keep: gives the seconds that audit records are kept; None: for ever.
        slots_keep: the same for records of appointments' runs.
        connectors: gives the names of all connectors, as they are now.
        webhooks: gives the names of all outgoing webhooks.
        duties: of several nodes, the one that has the rest removes old rows; None:
            there is one process.
    """

    deadline: ClassVar[float | None] = 120.0

    def __init__(  # noqa: PLR0913  what it looks after
        self,
        store: Store,
        clock: SureClock,
        *,
        audit_keep: Callable[[], float] | None = None,
        slots_keep: Callable[[], float] | None = None,
        connectors: Collection[str] = (),
        webhooks: Collection[str] = (),
        duties: Duties | None = None,
    ) -> None:
        super().__init__()
        self._store = store
        self._clock = clock
        kinds = {AUDIT: audit_keep, CHANGE: audit_keep, SLOT: slots_keep}
        kinds[CALL] = lambda: KEEP_CALLS
        self._keeps = {kind: keep for kind, keep in kinds.items() if keep is not None}
        """By kind, gives the seconds that records are kept; other kinds are kept for
        ever."""

        self._connectors = connectors
        self._webhooks = webhooks
        self._duties = duties
        self._failures = 0
        """Probes that failed one after the other."""

    async def on_start(self) -> None:
        """Begin to look after the store."""
        try:
            await self._clock.load(self._store)  # before anything is deleted by age
        except StoreError as error:
            LOG.warning("not known how the clock went on", why=str(error))
        self.every(PRUNE_EVERY, Prune())
        self.every(LOOK_EVERY, CheckStore())
        self.note(CheckStore())  # changes count from now on

    def on_receive(self, message: object) -> object:
        """Do one of the regular jobs."""
        match message:
            case Prune():
                return self._prune()
            case CheckStore():
                return self._look() if self._store.healthy else self._probe()
            case _:
                return super().on_receive(message)

    async def _prune(self) -> None:
        try:
            await self._clock.look(self._store)
            if self._duties is not None and not self._duties.has_rest:
                return  # another node does it
            now = self._clock.wall()
            await self._prune_settled(now - KEEP_DEDUP)
            for kind, keep in self._keeps.items():
                await self._prune_records(kind, now - keep())
        except StoreError as error:
            LOG.warning("old rows not removed", why=str(error))

    async def _prune_settled(self, before: float) -> None:
        while True:
            pruned = await self._store.prune(before, PRUNE_LIMIT)
            if not (pruned.inbox or pruned.outbox):
                return

    async def _prune_records(self, kind: str, before: float) -> None:
        while True:
            pruned = await self._store.prune_records(kind, before, PRUNE_LIMIT)
            if pruned < PRUNE_LIMIT:
                return

    async def _look(self) -> None:
        try:
            changed = await self._store.changes_outside()
            if self._store.may_be_handed:
                changed |= await self._store.take_over()
        except StoreError as error:
            LOG.warning("changes from outside not looked for", why=str(error))
            return
        if not changed:
            return
        if ANY_KIND in changed:
            LOG.info("another program changed the store")
        for kinds, name, message in self._readers():
            if changed & (kinds | {ANY_KIND}):
                self._pass_on(name, message)

    def _readers(self) -> Iterator[tuple[frozenset[str], str, object]]:
        yield from READERS
        for webhook in self._webhooks:
            yield frozenset({DUE}), names.notifier(webhook), SendNotices()
        for connector in self._connectors:
            yield frozenset({"outbox"}), names.connector(connector), DrainOutbox()

    def _pass_on(self, name: str, message: object) -> None:
        if self.find(name) is not None:  # else it reads the store when it starts
            self.tell(name, message)

    async def _probe(self) -> None:
        try:
            await self._store.probe()
        except CorruptError:
            pass  # final, and told where it was found
        except StoreError as error:
            if self._failures % TOLD_EVERY == 0:
                count = self._failures + 1
                LOG.warning("the store is not well", probes=count, why=str(error))
            self._failures += 1
        else:
            LOG.info("the store is well again", probes=self._failures + 1)
            self._failures = 0
