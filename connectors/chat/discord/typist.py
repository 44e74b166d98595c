"""Shows that a bot is writing, in the background and as well as it goes."""

from __future__ import annotations

from typing import TYPE_CHECKING

import trio

from connectors.chat.faults import PlatformError
from runtime.logs import EventLog

if TYPE_CHECKING:
    from connectors.chat.discord.account import DiscordAccount

LOG = EventLog("discord")

MOST_CHANNELS = 1_000
"""Channels that may wait to be told; for further ones nothing is shown."""

TOLD_WITHIN = 5.0
"""Seconds a request may take; later, it would be wrong."""


class Typist:
    """Tells Discord of one bot's typing.

    Args:
        account: whose.
    """

    def __init__(self, account: DiscordAccount) -> None:
        self._account = account
        self._wanted: dict[str, None] = {}
        self._news = trio.Event()

    def show(self, channel: str) -> None:
        """Have it shown that the bot is writing."""
        if len(self._wanted) < MOST_CHANNELS:
            self._wanted[channel] = None
            self._news.set()

    async def run(self) -> None:
        """Tell Discord until cancelled."""
        while True:
            await self._news.wait()
            self._news = trio.Event()
            while self._wanted:
                await self._tell(next(iter(self._wanted)))

    async def _tell(self, channel: str) -> None:
        self._wanted.pop(channel, None)
        try:
            with trio.move_on_after(TOLD_WITHIN):
                await self._account.ask(lambda bot: bot.show_typing(channel))
        except PlatformError as error:
            # It ends by itself, and nobody waits for it.
            LOG.info("typing not shown", account=self._account.agent, why=str(error))
