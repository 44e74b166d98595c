"""Jobs in order by channel, of which none holds up those of another."""

from __future__ import annotations

from collections import deque
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import trio

Job = Callable[[], Awaitable[None]]

# Chosen: what Slack sends in half a minute at its most (30,000 an hour) is a quarter of
# that; what is too much is not acknowledged, and comes again, or is fetched.
MOST_WAITING = 1_000
"""Jobs that may wait."""


class Lanes:
    """One lane for each channel; each does one job at a time.

    Args:
        nursery: where the jobs run.
        most: jobs that may wait.
    """

    def __init__(self, nursery: trio.Nursery, most: int = MOST_WAITING) -> None:
        self._nursery = nursery
        self._most = most
        self._lanes: dict[str, deque[Job]] = {}
        self._waiting = 0

    def put(self, channel: str, job: Job) -> bool:
        """Have a job done after those of its channel; False: too much waits."""
        if self._waiting >= self._most:
            return False
        self._waiting += 1
        lane = self._lanes.get(channel)
        if lane is not None:
            lane.append(job)
            return True
        self._lanes[channel] = deque((job,))
        self._nursery.start_soon(self._work, channel)
        return True

    async def _work(self, channel: str) -> None:
        lane = self._lanes[channel]
        try:
            while lane:
                job = lane.popleft()
                try:
                    await job()
                finally:
                    self._waiting -= 1
        finally:
            self._waiting -= len(lane)
            del self._lanes[channel]
