"""Edits of our own messages, and reactions to others'."""

from __future__ import annotations

from typing import TYPE_CHECKING

from actors.errors import DeliveryRefusedError
from connectors.chat.faults import RefusedError, translated
from connectors.chat.telegram import content
from connectors.chat.telegram.api import Call
from connectors.chat.telegram.names import read_message
from connectors.chat.telegram.speaking import UNREADABLE, Speakers, prefixed

if TYPE_CHECKING:
    from actors.deliveries import Edit, Reaction
    from connectors.chat.telegram.bot import Bot
    from connectors.chat.telegram.content import Params
    from connectors.chat.telegram.prints import Prints

SAME = "message is not modified"
GONE = "message to delete not found"


class TelegramPresence:
    """What the bots show beside messages.

    Args:
        speakers: the bots.
        prints: by which numbers they know a message.
    """

    def __init__(self, speakers: Speakers, prints: Prints) -> None:
        self._speakers = speakers
        self._prints = prints

    async def edit(self, edit: Edit) -> None:
        """Let a message read otherwise; see the port."""
        name = read_message(edit.receipt)
        if name is None or not name.number:
            raise DeliveryRefusedError(f"{edit.receipt!r} is no message of ours")
        bot = self._speakers.ready(name.agent)
        place: Params = {"chat_id": name.chat, "message_id": name.number}
        with translated():
            if edit.text:
                text = prefixed(edit.text, edit.agent, bot)
                await self._change(bot, name.chat, place, text)
            else:
                await self._do(bot, "deleteMessage", name.chat, place, GONE)

    async def _change(self, bot: Bot, chat: int, place: Params, text: str) -> None:
        params = place | content.words(text)
        try:
            await self._do(bot, "editMessageText", chat, params, SAME)
        except RefusedError as error:
            if not error.says(*UNREADABLE):
                raise
            self._speakers.note_plain(bot, error)
            bare = content.plain(params, text)
            await self._do(bot, "editMessageText", chat, bare, SAME)

    async def _do(
        self, bot: Bot, method: str, chat: int, params: Params, harmless: str
    ) -> None:
        call = Call(method=method, params=params, timeout=bot.timeout)
        try:
            await bot.do(call, chat)
        except RefusedError as error:
            if not error.says(harmless):
                raise

    async def react(self, reaction: Reaction) -> None:
        """Put a sign at a message; see the port.

        A bot has one reaction at a message: a new one takes the place of the old.
        """
        name = read_message(reaction.message)
        target = await self._speakers.choose(reaction.agent, reaction.address)
        number = 0 if name is None else self._prints.number(name, target.bot.agent)
        if name is None or not number:
            text = f"{target.bot.agent}'s bot does not know {reaction.message!r}"
            raise DeliveryRefusedError(text)
        params: Params = {
            "chat_id": name.chat,
            "message_id": number,
            "reaction": content.reaction(reaction.sign),
        }
        call = Call(
            method="setMessageReaction", params=params, timeout=target.bot.timeout
        )
        with translated():
            await target.bot.do(call, name.chat)
