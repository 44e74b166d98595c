"""Forgets what is older, or more, than the settings keep; on the kernel's side."""

from __future__ import annotations

from typing import TYPE_CHECKING

import trio

from connectors.web.page.places import in_room
from runtime.errors import StoreError
from runtime.logs import EventLog

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable, Iterator

    from connectors.page_config import PageConfig
    from connectors.web.page.talk import Talk

LOG = EventLog("page")

EVERY = 600.0
"""Seconds between two rounds."""

DAY = 86_400.0


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


async def forget_old(talk: Talk, config: PageConfig, agents: Iterable[str]) -> int:
    """Forget what is too old or too much; count the messages.

    Args:
        talk: what was said.
        config: settings of the page.
        agents: who can be spoken to now.

    Raises:
        StoreError: the disk fails; the next round goes on.
    """
    touched, talk.touched = talk.touched, set()
    count = 0
    for chat in {*chats_of(config, agents), *touched}:
        count += await talk.forget(chat, config.keep_days * DAY)
        if chat in touched:
            count += await talk.log.keep_newest(chat, config.keep_messages)
    return count


def chats_of(config: PageConfig, agents: Iterable[str]) -> Iterator[str]:
    """Name all chats that there can be now."""
    yield from map(in_room, config.rooms)
    for agent in agents:
        yield from (f"{person}/{agent}" for person in config.people)
