"""How long one room may hold up all others of an account: not for ever.

A batch is done when all of its rooms are. A room that the server cannot tell of, while
it answers all else, is given up for that batch; a server that is away is waited for,
because then no room is better off, and what was said would be lost for nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

import trio

from connectors.chat.faults import BusyError, LostError
from connectors.chat.matrix.patience import patiently

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from connectors.chat.faults import PlatformError
    from connectors.chat.matrix.account import MatrixAccount

# Chosen: the restart of a server's worker takes less, and nobody in another room
# believes for much longer that an answer will come.
ROOM_WITHIN = 60.0
"""Seconds that a question about a room is asked again and again."""

MOST_STUCK = 1_000
"""Rooms that are remembered to have been given up; the oldest is forgotten first."""

T = TypeVar("T")


class RoomPatience:
    """Asks about rooms, for one account.

    Args:
        account: who asks.
        note: is told of each failure.
    """

    def __init__(
        self, account: MatrixAccount, note: Callable[[PlatformError], object]
    ) -> None:
        self.note = note
        self._account = account
        self._stuck: dict[str, None] = {}

    async def ask(self, room_id: str, ask: Callable[[], Awaitable[T]]) -> T:
        """Ask until there is an answer, or the room is given up.

        A room that was given up before is asked about once, until it answers again.

        Args:
            room_id: which room.
            ask: asks once.

        Raises:
            BusyError: given up, for now.
            LostError: given up, for now.
            RefusedError: asking again cannot help.
            ShutOutError: the account is not let in.
        """
        while True:
            if room_id not in self._stuck:
                with trio.move_on_after(ROOM_WITHIN):
                    return await patiently(ask, self.note)
            if await self._is_well():
                return await self._ask_once(room_id, ask)

    async def _is_well(self) -> bool:
        """Whether the server answers at all; if it does not, that is waited for."""
        try:
            await self._account.open()
        except (BusyError, LostError) as error:
            self.note(error)
            await patiently(self._account.open, self.note)
            return False
        return True

    async def _ask_once(self, room_id: str, ask: Callable[[], Awaitable[T]]) -> T:
        try:
            answer = await ask()
        except (BusyError, LostError):
            self._stuck[room_id] = None
            while len(self._stuck) > MOST_STUCK:
                del self._stuck[next(iter(self._stuck))]
            raise
        self._stuck.pop(room_id, None)
        return answer
