"""Shows that a bot is writing, in the background and as well as it goes."""

from __future__ import annotations

from typing import TYPE_CHECKING

import trio

from connectors.chat.faults import PlatformError
from connectors.chat.telegram.api import Call
from runtime.logs import EventLog

if TYPE_CHECKING:
    from connectors.chat.telegram.bot import Bot

LOG = EventLog("telegram")

TYPING_TIMEOUT = 5.0
"""Seconds a request may take; later, it would be wrong."""

MOST_CHATS = 1_000
"""Chats that may wait to be told; for further ones nothing is shown."""


class Typist:
    """Tells Telegram that one bot is writing. It ends by itself after five seconds.

    Args:
        bot: whose.
    """

    def __init__(self, bot: Bot) -> None:
        self._bot = bot
        self._wanted: dict[tuple[int, int], None] = {}
        self._news = trio.Event()

    def show(self, chat: int, topic: int) -> None:
        """Have it shown that the bot is writing."""
        if len(self._wanted) < MOST_CHATS:
            self._wanted[chat, topic] = None
            self._news.set()

    async def run(self) -> None:
        """Tell Telegram until cancelled."""
        while True:
            await self._news.wait()
            self._news = trio.Event()
            while self._wanted:
                (chat, topic), _ = self._wanted.popitem()
                await self._tell(chat, topic)

    async def _tell(self, chat: int, topic: int) -> None:
        params: dict[str, object] = {"chat_id": chat, "action": "typing"}
        if topic:
            params["message_thread_id"] = topic
        call = Call(method="sendChatAction", params=params, timeout=TYPING_TIMEOUT)
        try:
            await self._bot.do(call, chat)
        except PlatformError as error:
            # It ends by itself, and nobody waits for it.
            LOG.info("typing not shown", bot=self._bot.agent, why=str(error))
