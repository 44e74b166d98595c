"""Forgets what is older, or more, than the settings keep; on the kernel's side."""

from __future__ import annotations

from typing import TYPE_CHECKING

import trio

from runtime.errors import StoreError
from runtime.logs import EventLog

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from connectors.web.eliza.channels import Channels
    from connectors.web.eliza.speech import Speech
    from connectors.web_config import WebConfig

LOG = EventLog("web")

EVERY = 300.0
"""Seconds between two rounds; as the official server's for sessions."""

DAY = 86_400_000
"""Milliseconds."""


async def tidy(once: Callable[[], Awaitable[int]]) -> None:
    """Tidy up again and again, until cancelled.

    Args:
        once: does it, and counts the messages that are forgotten.
    """
    while True:
        await trio.sleep(EVERY)
        try:
            count = await once()
        except StoreError as error:
            LOG.warning("old messages not forgotten yet", why=str(error))
        else:
            if count:
                LOG.info("old messages forgotten", count=count)


async def forget_old(channels: Channels, speech: Speech, config: WebConfig) -> int:
    """Forget what is too old or too much; count the messages.

    Raises:
        StoreError: the disk fails; the next round goes on.
    """
    touched, speech.touched = speech.touched, set()
    cutoff = channels.now() - int(config.keep_days * DAY)
    count = 0
    for channel in channels.every():
        count += await speech.history.clear(channel.id, cutoff)
        if channel.id in touched:
            count += await speech.history.keep_newest(channel.id, config.keep_messages)
    return count
