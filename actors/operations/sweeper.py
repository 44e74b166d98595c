"""The sweeper: removes stored files that were sent, or never will be."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import ClassVar

import msgspec

from actors.inbound.connector import read_delivery
from actors.ports import Blobs
from runtime.actor.actor import Actor
from runtime.clock import Clock
from runtime.errors import StoreError
from runtime.store.port import Store
from runtime.store.rows import StoredDelivery
from runtime.telemetry.logs import EventLog

LOG = EventLog("files")

SWEEP_EVERY = 3600.0
PAGE = 1000

DIGEST = re.compile(rb"[0-9a-f]{64}")


class SweepFiles(msgspec.Struct, frozen=True):
    """A note to itself: remove files that nobody needs any more."""


class Sweeper(Actor):
    """Keeps the folder of sent files from growing without end.

    Takes: nothing. Sends: nothing. Keeps: nothing; the outbox says which files are
    still needed. Fails: never by a disk that fails; it tries again an hour later. Ends:
    with the system.

    Args:
        keep: least seconds that each file is kept; far above the time from copying a
            file to the commit that names it, with retried turns.
    """

    deadline: ClassVar[float | None] = 120.0

    def __init__(self, store: Store, blobs: Blobs, clock: Clock, keep: float) -> None:
        super().__init__()
        self._store = store
        self._blobs = blobs
        self._clock = clock
        self._keep = keep

    def on_start(self) -> None:
        """Sweep now, and each hour."""
        self.note(SweepFiles())
        self.every(SWEEP_EVERY, SweepFiles())

    def on_receive(self, message: object) -> object:
        """Sweep when it is time."""
        if isinstance(message, SweepFiles):
            return self._sweep()
        return super().on_receive(message)

    async def _sweep(self) -> None:
        # Before the outbox is read: files that are copied meanwhile are newer.
        before = self._clock.wall() - self._keep
        try:
            removed = await self._blobs.sweep(await self._needed(), before)
        except (StoreError, OSError) as error:
            LOG.warning("sent files not removed", why=str(error))
            return
        if removed:
            LOG.info("sent files removed", count=removed)

    async def _needed(self) -> set[str]:
        """Give the digests of files that are still to be sent."""
        needed: set[str] = set()
        after = 0
        while True:
            rows = await self._store.undelivered(None, after, PAGE)
            for row in rows:
                after = row.number
                needed.update(digests_of(row))
            if len(rows) < PAGE:
                return needed


def digests_of(row: StoredDelivery) -> Iterator[str]:
    """Give the digests of files that a delivery needs."""
    delivery = read_delivery(row)
    if delivery is None:
        # Another release wrote it, and may send it yet.
        yield from (each.decode() for each in DIGEST.findall(row.body))
    elif delivery.file is not None:
        yield delivery.file.digest
