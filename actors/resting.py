"""Whether a turn only waits for people: its permit is another turn's meanwhile."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

import trio

from actors.protocol import AskLeave, Leave, TurnGoesOn, TurnRests
from runtime.errors import MailboxFullError
from runtime.ref import UNANSWERED

if TYPE_CHECKING:
    from runtime.ref import ActorRef

LOST = Leave("unasked", why="it needs somebody's leave, and the question was lost")

# Chosen: a session with a thousand messages waiting works them off in less.
AGAIN = 1.0
"""Seconds until a session is asked again whose mailbox was full."""


class Resting:
    """Counts what a turn does, and what it waits for.

    Args:
        session: who holds the permit.
        turn_id: of the turn.
        most: seconds until a permit comes, or never will.
    """

    __slots__ = ("_is_resting", "_most", "_session", "_turn_id", "_waiting", "_working")

    def __init__(self, session: ActorRef, turn_id: str, most: float) -> None:
        self._session = session
        self._turn_id = turn_id
        self._most = most
        self._working = 0
        self._waiting = 0
        self._is_resting = False

    def begin(self, count: int) -> None:
        """Note that so many calls are to run side by side."""
        self._working += count

    def end(self) -> None:
        """Note that one of them has ended."""
        self._working -= 1
        self._rest()

    async def ask(self, wanted: AskLeave, within: float) -> Leave:
        """Ask people about a call that was begun; the turn has its permit afterwards.

        Args:
            wanted: what to ask.
            within: seconds until nobody will answer any more.
        """
        reply = self._session.ask(wanted, timeout=within)
        self._working -= 1
        self._waiting += 1
        self._rest()
        try:
            leave = cast("Leave", await reply)
        except (*UNANSWERED, MailboxFullError):
            leave = LOST
        finally:
            self._waiting -= 1
            self._working += 1
        return leave if await self._go_on() else LOST

    def _rest(self) -> None:
        if self._waiting and not self._working and not self._is_resting:
            self._is_resting = True
            # Should it not arrive, the permit is simply kept.
            self._session.tell(TurnRests(self._turn_id))

    async def _go_on(self) -> bool:
        """Take the permit again; give whether anybody still waits for this turn."""
        while self._is_resting:
            wanted = TurnGoesOn(self._turn_id)
            try:
                may = cast("bool", await self._session.ask(wanted, timeout=self._most))
            except MailboxFullError:
                await trio.sleep(AGAIN)
            except UNANSWERED:
                return False
            else:
                self._is_resting = False
                return may
        return True
