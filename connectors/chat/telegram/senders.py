"""Chooses whose bot sends; sends, edits and reacts by the bots."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import msgspec

from actors.errors import DeliveryBusyError, DeliveryRefusedError
from connectors.chat.accounts import SOON, prefixed, ready_accounts
from connectors.chat.errors import RefusedError, translated
from connectors.chat.requests import Upload
from connectors.chat.telegram import content
from connectors.chat.telegram.api import TelegramCall
from connectors.chat.telegram.errors import MovedError
from connectors.chat.telegram.types import SentMessage, read_chat, read_message
from connectors.files.blobs import seconds_for
from runtime.errors import StoreError
from runtime.telemetry.logs import EventLog

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from actors.messages.deliveries import Edit, Reaction
    from actors.messages.inbound import Address, SentFile
    from connectors.chat.telegram.account import TelegramAccount
    from connectors.chat.telegram.content import Params
    from connectors.chat.telegram.groups import GroupMoves, MessageNumbers
    from connectors.chat.telegram.shared import TelegramShared


LOG = EventLog("telegram")

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
class TelegramTarget:
    """Which bot sends a message, and where."""

    bot: TelegramAccount
    chat: int
    """The chat's id at Telegram, as far as it is known."""

    topic: int
    is_direct: bool


class TelegramSenders:
    """Chooses which bot sends."""

    def __init__(self, shared: TelegramShared) -> None:
        self._bots: Mapping[str, TelegramAccount] = shared.bots
        self._members = shared.members
        self._moves: GroupMoves = shared.moves
        self._metrics = shared.metrics

    async def choose(self, agent: str, address: Address) -> TelegramTarget:
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
        return TelegramTarget(bot, chat, int(topic), is_direct)

    def ready(self, agent: str) -> TelegramAccount:
        """Return the bot of an agent, which listens.

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

    async def _in_group(self, agent: str, chat: int) -> TelegramAccount:
        ready = ready_accounts(self._bots, agent)
        present = await self._members.present(chat)
        for bot in ready:
            if bot.is_open and bot.agent in present:
                return bot
        raise DeliveryRefusedError(f"no bot of ours is in chat {chat}")

    async def say(
        self,
        target: TelegramTarget,
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
        bot: TelegramAccount,
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

    def note_plain(self, bot: TelegramAccount, error: RefusedError) -> None:
        """Note that markup was refused, so that it is said as plain text."""
        self._metrics.count("plain", bot.agent)
        LOG.warning("markup refused; said as plain text", bot=bot.agent, why=str(error))

    async def learn_move(self, old: int, new: int) -> None:
        """Learn from a refusal that a group has another id."""
        try:
            await self._moves.moved(old, new)
        except StoreError as error:
            LOG.warning("move not kept", chat=old, why=str(error))  # told again later


def _call(
    bot: TelegramAccount, params: Params, file: tuple[SentFile, Path] | None
) -> TelegramCall:
    """Make the one request that says something."""
    if file is None:
        return TelegramCall(
            method="sendMessage", params=params, timeout=bot.timeout, may_repeat=False
        )
    sent, path = file
    way = content.way_of(sent)
    return TelegramCall(
        method=way.method,
        params=params,
        upload=Upload(way.field, path, sent.name, sent.media_type),
        timeout=seconds_for(sent.size, bot.timeout),
        silence=bot.timeout,
        may_repeat=False,
    )


async def _send_once(bot: TelegramAccount, call: TelegramCall, chat: int) -> int:
    return (await bot.ask(call, SentMessage, chat)).message_id


SAME = "message is not modified"
GONE = "message to delete not found"


class TelegramPresence:
    """Edits and reactions by the bots."""

    def __init__(
        self,
        senders: TelegramSenders,
        numbers: MessageNumbers,
        shown: Callable[[str], str],
    ) -> None:
        self._name = shown
        self._senders = senders
        self._numbers = numbers

    async def edit(self, edit: Edit) -> None:
        """Change the text of a message; see the port."""
        name = read_message(edit.receipt)
        if name is None or not name.number:
            raise DeliveryRefusedError(f"{edit.receipt!r} is no message of ours")
        bot = self._senders.ready(name.agent)
        place: Params = {"chat_id": name.chat, "message_id": name.number}
        with translated():
            if edit.text:
                text = prefixed(edit, bot.agent, self._name)
                await self._change(bot, name.chat, place, text)
            else:
                await self._do(bot, "deleteMessage", name.chat, place, GONE)

    async def _change(
        self, bot: TelegramAccount, chat: int, place: Params, text: str
    ) -> None:
        params = place | content.words(text)
        try:
            await self._do(bot, "editMessageText", chat, params, SAME)
        except RefusedError as error:
            if not error.says(*UNREADABLE):
                raise
            self._senders.note_plain(bot, error)
            bare = content.plain(params, text)
            await self._do(bot, "editMessageText", chat, bare, SAME)

    async def _do(
        self,
        bot: TelegramAccount,
        method: str,
        chat: int,
        params: Params,
        harmless: str,
    ) -> None:
        call = TelegramCall(method=method, params=params, timeout=bot.timeout)
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
        target = await self._senders.choose(reaction.agent, reaction.address)
        number = 0 if name is None else self._numbers.number(name, target.bot.agent)
        if name is None or not number:
            text = f"{target.bot.agent}'s bot does not know {reaction.message!r}"
            raise DeliveryRefusedError(text)
        params: Params = {
            "chat_id": name.chat,
            "message_id": number,
            "reaction": content.reaction(reaction.sign),
        }
        call = TelegramCall(
            method="setMessageReaction", params=params, timeout=target.bot.timeout
        )
        with translated():
            await target.bot.do(call, name.chat)
