"""The orderly end: takes nothing more in, and finishes what is under way."""

from __future__ import annotations

from typing import TYPE_CHECKING

import trio

from actors import names
from actors.protocol import CloseDoor
from runtime.errors import StoreError
from runtime.logs import EventLog

if TYPE_CHECKING:
    from collections.abc import Collection

    from runtime.clock import Clock
    from runtime.store import Store
    from runtime.system import ActorSystem

LOG = EventLog("drain")

# Chosen: short beside any answer, long beside the look into the store.
LOOK_EVERY = 0.05

PAGE = 1000


class Drain:
    """Brings a running company to rest.

    Args:
        system: the company.
        store: knows what is under way.
        clock: the wall clock.
        connectors: names of the connectors that run.
    """

    def __init__(
        self,
        system: ActorSystem,
        store: Store,
        clock: Clock,
        connectors: Collection[str],
    ) -> None:
        self._system = system
        self._store = store
        self._clock = clock
        self._connectors = connectors

    async def run(self, within: float) -> bool:
        """Close the doors, then wait until all is answered and said.

        Args:
            within: most seconds; what is left then is for the next start.

        Returns:
            Whether nothing was left.
        """
        for name in self._connectors:
            connector = self._system.find(names.connector(name))
            if connector is not None:
                connector.tell(CloseDoor())
        left = -1
        with trio.move_on_after(within):
            # The store is changed by everybody, other programs included.
            while left := await self._count():  # noqa: ASYNC110
                await trio.sleep(LOOK_EVERY)
        if left:
            LOG.warning("not all was answered", left=left, within=within)
        return not left

    async def _count(self) -> int:
        """Count what is under way; a disk that fails counts as one."""
        now, store = self._clock.wall(), self._store
        try:
            messages = await store.unsettled(limit=PAGE)
            deliveries = await store.undelivered(limit=PAGE)
        except StoreError as error:
            LOG.warning("cannot tell what is under way", why=str(error))
            return 1
        mine = self._connectors
        under_way = [m for m in messages if m.connector in mine and m.due_at <= now]
        unsaid = [each for each in deliveries if each.connector in mine]
        return len(under_way) + len(unsaid)
