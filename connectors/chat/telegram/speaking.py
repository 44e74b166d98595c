"""By whose bot something is said, and what its refusal means to a courier."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import msgspec

from actors.errors import (
    DeliveryBusyError,
    DeliveryRefusedError,
)
from connectors.blobs import seconds_for
from connectors.chat.faults import (
    RefusedError,
)
from connectors.chat.telegram import content
from connectors.chat.telegram.api import Call, Upload
from connectors.chat.telegram.errors import MovedError
from connectors.chat.telegram.names import read_chat
from connectors.chat.telegram.wire import Said
from runtime.errors import StoreError
from runtime.logs import EventLog

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from actors.messages import Address, SentFile
    from connectors.chat.telegram.bot import Bot
    from connectors.chat.telegram.content import Params
    from connectors.chat.telegram.figures import TelegramFigures
    from connectors.chat.telegram.moves import Moves
    from connectors.chat.telegram.shared import Shared

LOG = EventLog("telegram")

SOON = 1.0
"""Seconds until a bot that is starting is asked again."""

UNREADABLE = ("parse entities", "entities_too_long", "unsupported start tag")
"""What Telegram says of markup that it cannot read."""

NO_PICTURE = (
    "photo_invalid_dimensions",
    "photo_ext_invalid",
    "image_process_failed",
    "photo_save_file_invalid",
    "voice_messages_forbidden",
    "wrong file type",
)
"""What it says of a picture or sound that it does not show; it takes it as a file."""


@dataclass(frozen=True)
class Target:
    """Who says something, and where."""

    bot: Bot
    chat: int
    """The chat's id at Telegram, as far as it is known."""

    topic: int
    is_direct: bool


class Speakers:
    """The bots, and which of them speaks.

    Args:
        shared: what all bots share.
    """

    def __init__(self, shared: Shared) -> None:
        self._bots: Mapping[str, Bot] = shared.bots
        self._crowds = shared.crowds
        self._moves: Moves = shared.moves
        self._figures: TelegramFigures = shared.figures

    async def choose(self, agent: str, address: Address) -> Target:
        """Find the bot that speaks for an agent in a chat.

        In a private chat it is the bot to which the person wrote. In a group it is the
        agent's own if that is there; else, and for the runtime's own words, the first
        of the settings that is.

        Raises:
            DeliveryBusyError: none listens now.
            DeliveryRefusedError: none can speak there.
        """
        name = read_chat(address.chat)
        topic = address.thread or "0"
        if name is None or not (topic.isascii() and topic.isdigit()):
            raise DeliveryRefusedError(f"{address.chat!r} is no chat of Telegram")
        chat, is_direct = self._moves.now(name.chat), name.chat > 0
        if is_direct:
            whose = name.agent or agent or next(iter(self._bots))
            bot = self.ready(whose)
        else:
            bot = await self._in_group(agent, chat)
        return Target(bot, chat, int(topic), is_direct)

    def ready(self, agent: str) -> Bot:
        """Give the bot of an agent, which listens.

        Raises:
            DeliveryBusyError: it does not listen now.
            DeliveryRefusedError: there is none.
        """
        bot = self._bots.get(agent)
        if bot is None:
            raise DeliveryRefusedError(f"{agent!r} has no bot; add it to the settings")
        if not bot.is_open:
            why = bot.refused or "it is starting"
            raise DeliveryBusyError(f"the bot of {agent}: {why}", retry_after=SOON)
        return bot

    async def _in_group(self, agent: str, chat: int) -> Bot:
        ready = [each for each in self._bots.values() if each.is_open]
        if not ready:
            raise DeliveryBusyError("no bot listens now", retry_after=SOON)
        own = self._bots.get(agent)
        if own is not None and not own.is_open and not own.refused:
            raise DeliveryBusyError(f"{agent}'s bot is starting", retry_after=SOON)
        present = await self._crowds.present(chat)
        for bot in ready if own is None else (own, *ready):
            if bot.is_open and bot.agent in present:
                return bot
        raise DeliveryRefusedError(f"no bot of ours is in chat {chat}")

    async def say(
        self,
        target: Target,
        params: Params,
        text: str,
        file: tuple[SentFile, Path] | None = None,
    ) -> tuple[int, int]:
        """Send a message; once more, where that helps, in plain text or to a new id.

        Args:
            target: by whom, and where.
            params: what is sent.
            text: the same without markup.
            file: what it brings, and where its bytes lie.

        Returns:
            The chat's id, and the number of the message there.

        Raises:
            PlatformError: as it says.
        """
        chat = target.chat
        try:
            number = await self._send(target.bot, chat, params, text, file)
        except MovedError as error:
            # The old number of what it replies to means nothing in the new chat.
            kept = {k: v for k, v in params.items() if k != "reply_parameters"}
            await self.learn_move(chat, error.chat)
            chat = error.chat
            number = await self._send(target.bot, chat, kept, text, file)
        return chat, number

    async def _send(
        self,
        bot: Bot,
        chat: int,
        params: Params,
        text: str,
        file: tuple[SentFile, Path] | None,
    ) -> int:
        call = _call(bot, params | {"chat_id": chat}, file)
        try:
            return await _send_once(bot, call, chat)
        except RefusedError as error:
            if error.says(*UNREADABLE):
                self.note_plain(bot, error)
                params = content.plain(params, text)
            elif file is not None and error.says(*NO_PICTURE):
                LOG.warning("picture refused; sent as a file", why=str(error))
                file = (msgspec.structs.replace(file[0], kind="document"), file[1])
            else:
                raise
        call = _call(bot, params | {"chat_id": chat}, file)
        return await _send_once(bot, call, chat)

    def note_plain(self, bot: Bot, error: RefusedError) -> None:
        """Note that markup was refused, so that it is said as plain text."""
        self._figures.plain(bot.agent)
        LOG.warning("markup refused; said as plain text", bot=bot.agent, why=str(error))

    async def learn_move(self, old: int, new: int) -> None:
        """Learn from a refusal that a group has another id."""
        try:
            await self._moves.moved(old, new)
        except StoreError as error:
            LOG.warning("move not kept", chat=old, why=str(error))  # told again later


def _call(bot: Bot, params: Params, file: tuple[SentFile, Path] | None) -> Call:
    """Make the one request that says something."""
    if file is None:
        return Call(
            method="sendMessage", params=params, timeout=bot.timeout, may_repeat=False
        )
    sent, path = file
    way = content.way_of(sent)
    return Call(
        method=way.method,
        params=params,
        upload=Upload(way.field, path, sent.name, sent.media_type),
        timeout=seconds_for(sent.size, bot.timeout),
        silence=bot.timeout,
        may_repeat=False,
    )


async def _send_once(bot: Bot, call: Call, chat: int) -> int:
    return (await bot.ask(call, Said, chat)).message_id


def prefixed(text: str, agent: str, bot: Bot) -> str:
    """Say who speaks, where another's bot says it."""
    return text if agent in {"", bot.agent} else f"{agent}: {text}"
