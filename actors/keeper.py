"""Watches the store: its health, what is long settled, what others write into it."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

import msgspec

from actors import names
from actors.acquaintance import ForgetPeople
from actors.guests import ReadGuests
from actors.notifying import LookForNotices
from actors.protocol import DrainOutbox, TakeUp
from actors.records import AUDIT
from actors.scheduling import LookAgain
from actors.slot_records import SLOT
from actors.staff_rows import CHANGE
from actors.staffing import ReadStaff
from runtime.actor import Actor
from runtime.errors import StoreError
from runtime.logs import EventLog

if TYPE_CHECKING:
    from collections.abc import Callable, Collection

    from actors.sure_clock import SureClock
    from runtime.store import Store

LOG = EventLog("store")

# Chosen: the longest redelivery of any platform is seven days; one more to be safe.
KEEP_DEDUP = 8 * 86_400.0
PRUNE_EVERY = 3600.0
PRUNE_LIMIT = 1000
LOOK_EVERY = 2.0


class Prune(msgspec.Struct, frozen=True):
    """A note to itself: forget what is long settled."""


class Look(msgspec.Struct, frozen=True):
    """A note to itself: see whether others changed the store, or a sick one is well."""


class Keeper(Actor):
    """Looks after the store, which is opened before the tree and closed after it.

    Takes: nothing.
    Sends: `ForgetPeople` to `people`, `ReadGuests` to `pairing`, `ReadStaff` to
        `staff`, `TakeUp` to the router,
        `LookAgain` to the scheduler and `DrainOutbox` to the connectors when another
        program, such as `callboard queue retry`, has written into the store.
    Keeps: nothing.
    Fails: never by a disk that fails; that shows in readiness.
    Ends: with the system, after everything that writes.

    Args:
        store: what to look after.
        clock: tells what time has surely come; looked after here, too.
        audit_keep: gives the seconds after which an audit record is forgotten; None:
            never.
        slots_keep: the same for what became of appointments' slots.
        connectors: names of all connectors, as they are now.
        webhooks: names of all that are sent.
    """

    deadline: ClassVar[float | None] = 120.0

    def __init__(
        self,
        store: Store,
        clock: SureClock,
        *,
        audit_keep: Callable[[], float] | None = None,
        slots_keep: Callable[[], float] | None = None,
        connectors: Collection[str] = (),
        webhooks: Collection[str] = (),
    ) -> None:
        super().__init__()
        self._store = store
        self._clock = clock
        kinds = {AUDIT: audit_keep, CHANGE: audit_keep, SLOT: slots_keep}
        self._keeps = {kind: keep for kind, keep in kinds.items() if keep is not None}
        """By kind what gives the seconds that records are kept; others are for ever."""

        self._connectors = connectors
        self._webhooks = webhooks

    async def on_start(self) -> None:
        """Begin to look after the store."""
        try:
            await self._clock.load(self._store)  # before anybody forgets anything
        except StoreError as error:
            LOG.warning("not known how the clock went on", why=str(error))
        self.every(PRUNE_EVERY, Prune())
        self.every(LOOK_EVERY, Look())
        self.note(Look())  # changes count from now on

    def on_receive(self, message: object) -> object:
        """Do one of the regular things."""
        match message:
            case Prune():
                return self._prune()
            case Look():
                return self._look() if self._store.healthy else self._probe()
            case _:
                return super().on_receive(message)

    async def _prune(self) -> None:
        try:
            await self._clock.look(self._store)
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
            was_changed = await self._store.was_changed_outside()
        except StoreError as error:
            LOG.warning("changes from outside not looked for", why=str(error))
            return
        if was_changed:
            LOG.info("another program changed the store")
            self._pass_on(names.PEOPLE, ForgetPeople())
            self._pass_on(names.PAIRING, ReadGuests())
            self._pass_on(names.STAFF, ReadStaff())
            self._pass_on(names.ROUTER, TakeUp())
            self._pass_on(names.SCHEDULER, LookAgain())
            for webhook in self._webhooks:
                self._pass_on(names.notifier(webhook), LookForNotices())
            for connector in self._connectors:
                self._pass_on(names.connector(connector), DrainOutbox())

    def _pass_on(self, name: str, message: object) -> None:
        if self.find(name) is not None:  # else it looks when it starts
            self.tell(name, message)

    async def _probe(self) -> None:
        try:
            await self._store.probe()
        except StoreError as error:
            LOG.warning("the store is not well", why=str(error))
        else:
            LOG.info("the store is well again")
