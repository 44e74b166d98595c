"""Asks again until Telegram answers."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

import trio

from connectors.chat.faults import BusyError, LostError
from connectors.chat.waits import Waits

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from connectors.chat.faults import PlatformError

T = TypeVar("T")


async def patiently(
    ask: Callable[[], Awaitable[T]],
    note: Callable[[PlatformError], object],
    within: float | None = None,
) -> T:
    """Ask until there is an answer.

    Args:
        ask: asks once.
        note: is told of each failure.
        within: seconds after which no further try is begun; None: for ever.

    Raises:
        BusyError: not within that time.
        LostError: not within that time.
        RefusedError: asking again cannot help.
        ShutOutError: the bot is not let in.
    """
    waits = Waits()
    until = None if within is None else trio.current_time() + within
    while True:
        try:
            return await ask()
        except (BusyError, LostError) as error:
            note(error)
            asked = error.retry_after if isinstance(error, BusyError) else None
            wait = waits.next(asked)
            if until is not None and trio.current_time() + wait > until:
                raise
        await trio.sleep(wait)
