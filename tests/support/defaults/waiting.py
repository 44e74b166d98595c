"""Waits in the company's time."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import trio

PATIENCE = 1_200.0
"""Seconds of the company's time, which is faster than the machine's: a minute of that.

Clients wait as long: their own usual ten seconds are half of one here."""


async def until(is_so: Callable[[], Awaitable[object]]) -> None:
    """Wait until something is so; fail after `PATIENCE`."""
    with trio.fail_after(PATIENCE):
        while not await is_so():  # noqa: ASYNC110  platforms tell of it differently
            await trio.sleep(0.05)
