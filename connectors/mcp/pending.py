"""The calls on their way from a server's actor to the session that carries them out.

The session is busy as long as its connection stands, so calls do not reach it as
messages; they wait here, bounded, and here they are found when nobody wants them.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import TYPE_CHECKING

import trio

from actors.errors import ToolError

if TYPE_CHECKING:
    from connectors.mcp.messages import CallTool
    from runtime.actor.reply import Reply


class PendingCall:
    """One call, and who waits for its result."""

    __slots__ = ("call", "reply", "scope")

    def __init__(self, call: CallTool, reply: Reply) -> None:
        self.call = call
        self.reply = reply
        self.scope = trio.CancelScope()


class CallQueue:
    """Calls that wait or run, in the order in which they came.

    Args:
        most: how many may run at once; as many more may wait.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._waiting: OrderedDict[int, PendingCall] = OrderedDict()
        self._running: dict[int, PendingCall] = {}
        self._news = trio.Event()

    def submit(self, pending: PendingCall) -> bool:
        """Have a call carried out; False if too many wait."""
        if len(self._waiting) + len(self._running) >= 2 * self._most:
            return False
        self._waiting[pending.call.number] = pending
        self._news.set()
        return True

    def cancel(self, number: int) -> None:
        """Give a call up, if it has not ended."""
        pending = self._waiting.pop(number, None) or self._running.get(number)
        if pending is not None:
            pending.scope.cancel()

    async def take(self) -> PendingCall:
        """Wait for a call, and for room to run it; call `done` when it has ended."""
        while not self._waiting or len(self._running) >= self._most:
            self._news = trio.Event()
            await self._news.wait()
        number, pending = self._waiting.popitem(last=False)
        self._running[number] = pending
        return pending

    def done(self, pending: PendingCall) -> None:
        """Make room."""
        self._running.pop(pending.call.number, None)
        self._news.set()

    def fail_all(self, reason: str) -> None:
        """Tell all who wait that there is nobody left to answer.

        Args:
            reason: why.
        """
        for pending in self._running.values():
            text = f"{reason}, and nobody knows whether the call was carried out"
            pending.reply.offer_error(ToolError(text))
        for pending in self._waiting.values():
            pending.reply.offer_error(ToolError(f"{reason}; the call was not begun"))
        self._running.clear()
        self._waiting.clear()
