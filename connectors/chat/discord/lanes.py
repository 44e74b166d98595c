"""Jobs in order for each channel, and several channels side by side."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING

import trio

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

AT_ONCE = 8
"""Channels whose messages are brought in side by side."""

MOST = 1_000
"""Jobs that may wait in all; whoever brings a further one waits."""


class Lanes:
    """One lane for each channel in which something waits.

    Args:
        nursery: where the lanes run; a job that fails ends it.
    """

    def __init__(self, nursery: trio.Nursery) -> None:
        self._nursery = nursery
        self._room = trio.Semaphore(MOST)
        self._side_by_side = trio.CapacityLimiter(AT_ONCE)
        self._lanes: dict[str, deque[Callable[[], Awaitable[object]]]] = {}

    async def put(self, lane: str, job: Callable[[], Awaitable[object]]) -> None:
        """Have a job done after all others of its lane; waits while there are many."""
        await self._room.acquire()
        if lane in self._lanes:
            self._lanes[lane].append(job)
        else:
            self._lanes[lane] = deque([job])
            self._nursery.start_soon(self._run, lane)

    async def _run(self, lane: str) -> None:
        jobs = self._lanes[lane]
        async with self._side_by_side:
            while jobs:
                try:
                    await jobs.popleft()()
                finally:
                    self._room.release()
            del self._lanes[lane]
