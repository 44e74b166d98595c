"""Small things done in the background, as well as it goes: ticks, typing, notices."""

from __future__ import annotations

from typing import TYPE_CHECKING

import trio

from connectors.chat.faults import PlatformError
from runtime.logs import EventLog

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

LOG = EventLog("whatsapp")

# Chosen: a burst of a thousand messages has its ticks; at 0.2 s each, 4 at a time keep
# up with 20 messages a second.
MOST_WAITING = 1_000
WORKERS = 4

TIMEOUT = 10.0
"""Seconds one may take; later, it would be wrong."""

Errand = tuple[str, "Callable[[], Awaitable[object]]"]


class Errands:
    """What is to be done soon, and by whom nobody waits for."""

    def __init__(self) -> None:
        self._send, self._receive = trio.open_memory_channel[Errand](MOST_WAITING)

    def add(self, what: str, run: Callable[[], Awaitable[object]]) -> bool:
        """Have something done soon; False: there is no room for it.

        Args:
            what: is told should it fail.
            run: does it; may raise a `PlatformError`.
        """
        try:
            self._send.send_nowait((what, run))
        except trio.WouldBlock:
            return False
        return True

    async def run(self) -> None:
        """Do what comes until cancelled."""
        async with trio.open_nursery() as nursery:
            for _ in range(WORKERS):
                nursery.start_soon(self._work)

    async def _work(self) -> None:
        while True:
            what, run = await self._receive.receive()
            with trio.move_on_after(TIMEOUT) as scope:
                try:
                    await run()
                except PlatformError as error:
                    LOG.warning("not done", what=what, why=str(error))
            if scope.cancelled_caught:
                LOG.warning("not done", what=what, why="it took too long")
