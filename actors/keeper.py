"""Watches the store's health and forgets what is long settled."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

import msgspec

from runtime.actor import Actor
from runtime.errors import StoreError
from runtime.logs import EventLog

if TYPE_CHECKING:
    from runtime.clock import Clock
    from runtime.store import Store

LOG = EventLog("store")

# Chosen: the longest redelivery of any platform is seven days; one more to be safe.
KEEP_DEDUP = 8 * 86_400.0
PRUNE_EVERY = 3600.0
PRUNE_LIMIT = 1000
PROBE_EVERY = 2.0


class Prune(msgspec.Struct, frozen=True):
    """A note to itself: forget what is long settled."""


class Probe(msgspec.Struct, frozen=True):
    """A note to itself: see whether a sick disk is well again."""


class Keeper(Actor):
    """Looks after the store, which is opened before the tree and closed after it.

    Takes: nothing.
    Sends: nothing.
    Keeps: nothing.
    Fails: never by a disk that fails; that shows in readiness.
    Ends: with the system, after everything that writes.
    """

    deadline: ClassVar[float | None] = 120.0

    def __init__(self, store: Store, clock: Clock) -> None:
        super().__init__()
        self._store = store
        self._clock = clock

    def on_start(self) -> None:
        """Begin to look after the store."""
        self.every(PRUNE_EVERY, Prune())
        self.every(PROBE_EVERY, Probe())

    def on_receive(self, message: object) -> object:
        """Do one of the regular things."""
        match message:
            case Prune():
                return self._prune()
            case Probe():
                return None if self._store.healthy else self._probe()
            case _:
                return super().on_receive(message)

    async def _prune(self) -> None:
        before = self._clock.wall() - KEEP_DEDUP
        while True:
            try:
                pruned = await self._store.prune(before, PRUNE_LIMIT)
            except StoreError as error:
                LOG.warning("old rows not removed", why=str(error))
                return
            if pruned.inbox < PRUNE_LIMIT and pruned.outbox < PRUNE_LIMIT:
                return

    async def _probe(self) -> None:
        try:
            await self._store.probe()
        except StoreError as error:
            LOG.warning("the store cannot write", why=str(error))
        else:
            LOG.info("the store writes again")
