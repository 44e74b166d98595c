"""What a bot has heard and the kernel has not looked at yet."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import trio

from connectors.chat.discord.wire import Came, Event
from connectors.crossing import BridgeBusyError, BridgeClosedError

if TYPE_CHECKING:
    from collections.abc import Callable

    from connectors.bridge import Bridge

# Chosen: what a bot in a hundred busy channels hears in some seconds. More is not lost:
# it is fetched from the channels' histories.
MOST_EVENTS = 2_000


class Intake:
    """The queue from one bot's edge to its listener.

    Args:
        bridge: between the two.
        note_overrun: is told, on the kernel, of each message that found no room.
        most: events that may wait.
    """

    def __init__(
        self,
        bridge: Bridge,
        note_overrun: Callable[[], object],
        most: int,
    ) -> None:
        self._bridge = bridge
        self._note_overrun = note_overrun
        self._most = most
        self._send, self._receive = trio.open_memory_channel[Event](math.inf)
        self._is_bridge_full = False

    def hear(self, event: Event) -> None:
        """Take an event; on the edge, and never fails."""
        try:
            self._bridge.post_kernel(self._put, event)
        except BridgeBusyError:
            self._is_bridge_full = True
        except BridgeClosedError:
            pass  # it is read again from the history, by whoever comes next

    def _put(self, event: Event) -> None:
        if self._is_bridge_full:
            self._is_bridge_full = False
            self._note_overrun()
        # Only messages can be fetched later; all else is rare.
        if isinstance(event, Came) and self.waiting >= self._most:
            self._note_overrun()
        else:
            self._send.send_nowait(event)

    @property
    def waiting(self) -> int:
        """How many events wait."""
        return self._receive.statistics().current_buffer_used

    async def next(self) -> Event:
        """Give the next event."""
        return await self._receive.receive()
