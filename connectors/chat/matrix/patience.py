"""Asks again until a homeserver answers."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

import trio

from connectors.chat.matrix.errors import BusyError, LostError
from runtime.logs import EventLog

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from connectors.chat.matrix.errors import MatrixError

LOG = EventLog("matrix")

FIRST_WAIT, LONGEST_WAIT = 1.0, 60.0
"""Seconds, doubled from the one to the other (F022)."""

T = TypeVar("T")


class Waits:
    """How long to wait between two tries."""

    def __init__(self) -> None:
        self._next = FIRST_WAIT

    def next(self, asked: float | None = None) -> float:
        """Give the seconds until the next try.

        Args:
            asked: what the server asks for; it is not asked sooner.
        """
        wait, self._next = self._next, min(2 * self._next, LONGEST_WAIT)
        return max(wait, asked or 0.0)


async def patiently(
    ask: Callable[[], Awaitable[T]], note: Callable[[MatrixError], object]
) -> T:
    """Ask until there is an answer.

    Args:
        ask: asks once.
        note: is told of each failure.

    Raises:
        RefusedError: asking again cannot help.
        TokenError: the account is not let in.
    """
    waits = Waits()
    while True:
        try:
            return await ask()
        except BusyError as error:
            note(error)
            wait = waits.next(error.retry_after)
        except LostError as error:
            note(error)
            wait = waits.next()
        await trio.sleep(wait)
