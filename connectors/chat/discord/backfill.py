"""Fetches what was said in a channel while a bot did not hear it."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import trio

from connectors.chat.discord.events import number
from connectors.chat.errors import BusyError, LostError, RefusedError
from connectors.chat.lenient_json import text
from connectors.chat.requests import Waits
from runtime.telemetry.logs import EventLog

if TYPE_CHECKING:
    from connectors.chat.discord.account import DiscordAccount
    from connectors.chat.discord.client import DiscordClient
    from connectors.chat.discord.events import Came, Channel

LOG = EventLog("discord")

PAGE = 100
"""Messages of one request; Discord gives no more."""

# Chosen: Discord's usual faults are shorter. After that all is begun anew, and a
# channel that fails again and again is left out, so that it keeps nobody else waiting.
WITHIN = 60.0
"""Seconds that one page is asked for."""


async def fetch(
    channel: Channel, after: int, most: int, account: DiscordAccount
) -> tuple[list[Came], bool]:
    """Fetch what was said in a channel after an id.

    Args:
        channel: where.
        after: id; nothing up to it is given.
        most: messages; those before are left out.
        account: who asks.

    Returns:
        The messages, oldest first, and whether these are all.

    Raises:
        BusyError: not now.
        LostError: no answer came.
        ShutOutError: the bot is not let in.
    """
    found: list[Came] = []
    before = 0
    while len(found) < most:
        size = min(PAGE, most - len(found))
        try:
            page = await _patiently(channel, before, size, account)
        except RefusedError as error:
            # It may not look there (any more), and so nobody speaks to it there.
            LOG.info("history not given", channel=channel.id, why=str(error))
            return found[::-1], True
        new = [each for each in page if id_of(each) > after]
        found += new
        before = min((id_of(each) for each in new), default=0)
        if len(new) < size or not before:
            return found[::-1], True
    return found[::-1], False


def id_of(came: Came) -> int:
    """Return the id of a message; 0 if it has none."""
    return number(text(came.message.get("id")))


async def _patiently(
    channel: Channel, before: int, size: int, account: DiscordAccount
) -> list[Came]:
    until = trio.current_time() + WITHIN
    waits = Waits()
    while True:
        try:
            return await account.ask(partial(_page, channel, before, size))
        except (BusyError, LostError) as error:
            asked = error.retry_after if isinstance(error, BusyError) else None
            wait = waits.next(asked)
            if trio.current_time() + wait > until:
                raise
            LOG.warning("history waits", channel=channel.id, why=str(error))
        await trio.sleep(wait)


async def _page(
    channel: Channel, before: int, size: int, bot: DiscordClient
) -> list[Came]:
    return await bot.history(channel, before, size)
