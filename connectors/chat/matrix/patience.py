"""Asks again until a homeserver answers."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

import trio

from connectors.chat.faults import BusyError, LostError
from connectors.chat.waits import Waits
from runtime.logs import EventLog

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from connectors.chat.faults import PlatformError

LOG = EventLog("matrix")

T = TypeVar("T")


async def patiently(
    ask: Callable[[], Awaitable[T]], note: Callable[[PlatformError], object]
) -> T:
    """Ask until there is an answer.

    Args:
        ask: asks once.
        note: is told of each failure.

    Raises:
        RefusedError: asking again cannot help.
        ShutOutError: the account is not let in.
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
