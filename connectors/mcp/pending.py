"""The calls on their way from a server's actor to the session that carries them out.

The session is busy as long as its connection stands, so calls do not reach it as
messages; they wait here, bounded, and here they are found when nobody wants them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import trio

from actors.errors import ToolError
from runtime.fairness import FairQueue

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


class CallQueue(FairQueue[PendingCall]):
    """Calls that wait or run; the people for whom they run take turns.

    Args:
        most: how many may run at once; as many more may wait.
    """

    def __init__(self, most: int) -> None:
        super().__init__(most, most, lambda pending: pending.call.owner)

    def submit(self, pending: PendingCall) -> bool:
        """Have a call carried out; False if too many wait."""
        may = self.may_add(pending.call.owner)
        if may:
            self.add(pending)
        return may

    def cancel(self, number: int) -> None:
        """Give a call up, if it has not ended."""
        for pending in (*self.running, *self.waiting):
            if pending.call.number == number:
                self.withdraw(pending)
                pending.scope.cancel()

    def fail_all(self, reason: str) -> None:
        """Tell all who wait that there is nobody left to answer."""
        for pending in self.abandon():
            text = f"{reason}, and nobody knows whether the call was carried out"
            pending.reply.offer_error(ToolError(text))
        for pending in self.waiting:
            self.withdraw(pending)
            pending.reply.offer_error(ToolError(f"{reason}; the call was not begun"))
