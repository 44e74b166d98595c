"""Removes the bytes of files that have gone out, or never will."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, ClassVar

import msgspec

from actors.intake import read_delivery
from runtime.actor import Actor
from runtime.errors import StoreError
from runtime.logs import EventLog

if TYPE_CHECKING:
    from collections.abc import Iterator

    from actors.file_ports import Blobs
    from runtime.clock import Clock
    from runtime.rows import StoredDelivery
    from runtime.store import Store

LOG = EventLog("files")

SWEEP_EVERY = 3600.0
PAGE = 1000

DIGEST = re.compile(rb"[0-9a-f]{64}")


class Sweep(msgspec.Struct, frozen=True):
    """A note to itself: remove what nobody needs any more."""


class Sweeper(Actor):
    """Keeps the folder of sent files from growing without end.

    Takes: nothing.
    Sends: nothing.
    Keeps: nothing; what is still needed stands in the outbox.
    Fails: never by a disk that fails; it tries again an hour later.
    Ends: with the system.

    Args:
        store: has the outbox.
        blobs: has the files.
        clock: the wall clock.
        keep: seconds that each file is kept at least. Long above the time from a
            copy to the commit that names it: turns that are tried again included.
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
        self.note(Sweep())
        self.every(SWEEP_EVERY, Sweep())

    def on_receive(self, message: object) -> object:
        """Sweep when it is time."""
        if isinstance(message, Sweep):
            return self._sweep()
        return super().on_receive(message)

    async def _sweep(self) -> None:
        # Before the outbox is read: what is kept meanwhile is newer than that.
        before = self._clock.wall() - self._keep
        try:
            removed = await self._blobs.sweep(await self._needed(), before)
        except (StoreError, OSError) as error:
            LOG.warning("sent files not removed", why=str(error))
            return
        if removed:
            LOG.info("sent files removed", count=removed)

    async def _needed(self) -> set[str]:
        """Give the digests of files that are still to go out."""
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
