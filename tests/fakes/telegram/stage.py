"""Telegram for the suite of all transports."""

from __future__ import annotations

from typing import Any

import trio

from tests.support.chat.telegram_bed import ZOE, BotBed


class TelegramStage:
    """Telegram, with a Bot API in memory and a person alone with one bot."""

    can_repeat = True

    def __init__(self) -> None:
        self.bed = BotBed("anna")
        self.transport = self.bed.transport
        self.ingress = self.bed.ingress
        self.listening = trio.CancelScope()
        self.ended = trio.Event()
        self.bed.bookmarks.on_write = self.bed.server.note_change
        self.chat = self.bed.server.private(1, "anna_bot")
        self._bot = self.bed.bot()
        self._first = self._bot.next_update
        self._keys: dict[str, dict[str, Any]] = {}

    async def write(self, text: str, key: str = "") -> None:
        if key in self._keys:
            self._bot.tell("message", self._keys[key])
            self.bed.server.note_change()
            return
        message = self.bed.server.say(self.chat, ZOE, text)
        if key:
            self._keys[key] = message

    def acknowledged(self) -> int:
        """Count the updates below the place from which is asked on."""
        offset = self.bed.bookmarks.offsets.get(self._bot.id, self._first)
        return offset - self._first

    def shown(self) -> str:
        return "\n".join(self.chat.texts(self._bot))

    async def wait_change(self) -> None:
        await self.bed.server.wait_change()
