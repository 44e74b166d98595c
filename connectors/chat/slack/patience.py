"""Asks again until Slack answers."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

import trio

from connectors.chat.faults import BusyError, LostError
from connectors.chat.slack.errors import GoneError
from connectors.chat.waits import Waits

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from connectors.chat.faults import PlatformError

T = TypeVar("T")


async def patiently(
    ask: Callable[[], Awaitable[T]], note: Callable[[PlatformError], object]
) -> T:
    """Ask until there is an answer; for what can be asked twice without harm.

    Args:
        ask: asks once.
        note: is told of each failure.

    Raises:
        GoneError: the way to Slack has ended.
        RefusedError: asking again cannot help.
        ShutOutError: the app is not let in.
    """
    waits = Waits()
    while True:
        try:
            return await ask()
        except GoneError:
            raise
        except (BusyError, LostError) as error:
            note(error)
            asked = error.retry_after if isinstance(error, BusyError) else None
        await trio.sleep(waits.next(asked))
