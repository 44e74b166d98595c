"""Hands one message, or one pressed button, in, with what came with it.

Nothing is fetched for somebody who may not write: a stranger has us carry nothing.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import msgspec

from actors.messages import Address, Inbound, Quoted
from connectors.chat.album import MOST_IN_ALL, Album, left_out
from connectors.chat.buttons import UNKNOWN, command_of
from connectors.chat.entrance import Entrance
from connectors.chat.faults import PlatformError, ShutOutError
from connectors.chat.telegram import content
from connectors.chat.telegram.api import Call
from connectors.chat.telegram.files import fetch_file
from connectors.chat.telegram.names import ChatName, MessageName
from runtime.logs import EventLog

if TYPE_CHECKING:
    from actors.messages import Attachment
    from actors.transport import Ingress
    from connectors.chat.entrance import Ended, Trouble
    from connectors.chat.telegram.bot import Bot
    from connectors.chat.telegram.figures import Outcome
    from connectors.chat.telegram.shared import Shared
    from connectors.chat.telegram.updates import Pressed, Spoken

LOG = EventLog("telegram")

LONGEST_QUOTE = 2_000
"""Characters of a quoted message that are told to the agents."""


class Handing:
    """The way of one bot's messages into the company.

    Args:
        bot: whose.
        shared: what all bots share.
    """

    def __init__(self, bot: Bot, shared: Shared) -> None:
        self._bot = bot
        self._shared = shared
        self._messages = Entrance(LOG, self._count, self._tell)
        self._buttons = Entrance(LOG, self._count_button, self._tell)

    async def speak(
        self, spoken: Spoken, chat: int, name: MessageName, ingress: Ingress
    ) -> None:
        """Have a message stored, however long that takes.

        Args:
            spoken: the message.
            chat: the id that its chat had at first.
            name: what it is called inside.
            ingress: where it is handed in.

        Raises:
            ShutOutError: the bot is not let in.
        """
        inbound = await self._bare(spoken, chat, name)
        await self._messages.hand_in(inbound, ingress, partial(self._filled, spoken))

    async def press(self, pressed: Pressed, chat: int, ingress: Ingress) -> None:
        """Take a pressed button for the command that it stands for.

        Whoever presses it has the rights of whoever writes the command.

        Raises:
            ShutOutError: the bot is not let in.
        """
        command = command_of(pressed.says)
        if not (pressed.chat and command):
            self._count("unknown_button")
            await self._answer(pressed, UNKNOWN)
            return
        inbound = await self._pressed(pressed, chat, command)
        await self._buttons.hand_in(inbound, ingress, None)
        await self._answer(pressed, "")

    async def _tell(self, inbound: Inbound, words: str, _: Trouble) -> None:
        chat = self._shared.moves.now(int(inbound.address.chat.partition("@")[0]))
        params = content.words(words) | {"chat_id": chat}
        if inbound.address.thread:
            params["message_thread_id"] = int(inbound.address.thread)
        call = Call(method="sendMessage", params=params, timeout=self._bot.timeout)
        await self._try(call, chat)

    async def _answer(self, pressed: Pressed, words: str) -> None:
        """End the waiting that a pressed button shows."""
        params: content.Params = {"callback_query_id": pressed.query_id}
        if words:
            params["text"] = words
        call = Call(
            method="answerCallbackQuery", params=params, timeout=self._bot.timeout
        )
        await self._try(call)

    async def _try(self, call: Call, chat: int = 0) -> None:
        try:
            await self._bot.do(call, chat)
        except ShutOutError:
            raise
        except PlatformError as error:
            LOG.warning("notice not said", bot=self._bot.agent, why=str(error))

    async def _bare(self, spoken: Spoken, chat: int, name: MessageName) -> Inbound:
        """Give a message as it came, with nothing fetched."""
        shared = self._shared
        roles: tuple[str, ...] = ()
        present: tuple[str, ...] = (self._bot.agent,)
        if not spoken.is_direct:
            is_admin = spoken.is_anonymous or await shared.crowds.is_admin(
                spoken.chat, spoken.sender_id, self._bot
            )
            roles = ("admin",) if is_admin else ()
            present = await shared.crowds.present(spoken.chat)
        called = {shared.agent_of(each) for each in spoken.called}
        return Inbound(
            id=shared.ids.new(),
            platform="telegram",
            platform_id=name.text,
            address=self._address(chat, spoken.topic, is_direct=spoken.is_direct),
            sender_id=str(spoken.sender_id),
            sender_name=spoken.sender_name,
            text=self._worded(spoken),
            received_at=shared.clock.wall(),
            is_direct=spoken.is_direct,
            agent=self._bot.agent if spoken.is_direct else "",
            reply_to=self._replied(spoken),
            quoted=quoted(spoken, shared.agent_of(spoken.reply_to_sender)),
            mentions=tuple(each for each in shared.bots if each in called),
            present=present,
            roles=roles,
            is_bot=spoken.is_bot,
            platform_fields=specifics(spoken),
        )

    async def _pressed(self, pressed: Pressed, chat: int, text: str) -> Inbound:
        shared, bot, is_direct = self._shared, self._bot, pressed.chat > 0
        is_admin = not is_direct and await shared.crowds.is_admin(
            pressed.chat, pressed.sender_id, bot
        )
        return Inbound(
            id=shared.ids.new(),
            platform="telegram",
            platform_id=f"button/{pressed.query_id}",
            address=self._address(chat, pressed.topic, is_direct=is_direct),
            sender_id=str(pressed.sender_id),
            sender_name=pressed.sender_name,
            text=text,
            received_at=shared.clock.wall(),
            is_direct=is_direct,
            agent=bot.agent if is_direct else "",
            mentions=(bot.agent,),
            present=(bot.agent,)
            if is_direct
            else await shared.crowds.present(pressed.chat),
            roles=("admin",) if is_admin else (),
        )

    def _address(self, chat: int, topic: int, *, is_direct: bool) -> Address:
        name = ChatName(chat, self._bot.agent if is_direct else "")
        thread = str(topic) if topic else ""
        return Address(self._shared.connector, name.text, thread)

    def _worded(self, spoken: Spoken) -> str:
        """Give the words; a command that names a bot of ours names its agent."""
        command = spoken.command
        if command is None or not command.bot:
            return spoken.text
        meant = command.bot.casefold()
        for agent, bot in self._shared.bots.items():
            if bot.user.username.casefold() == meant:
                return f"/{command.name}@{agent} {command.rest}".rstrip()
        return spoken.text

    def _replied(self, spoken: Spoken) -> str:
        """Give what the message is called that this one replies to."""
        if not spoken.reply_to:
            return ""
        agent = self._shared.agent_of(spoken.reply_to_sender)
        if spoken.is_direct or (spoken.is_basic and agent == self._bot.agent):
            agent = self._bot.agent
        elif spoken.is_basic and len(self._shared.bots) > 1:
            return ""  # this bot's number of it means nothing to the others
        return MessageName(spoken.chat, spoken.reply_to, agent).text

    async def _filled(self, spoken: Spoken, inbound: Inbound) -> Inbound:
        """Fetch what came with a message."""
        most = min(self._shared.config.max_media_bytes, MOST_IN_ALL)
        found: list[Attachment] = []
        words = inbound.text
        album = Album()
        for file in spoken.files:
            fetch = partial(fetch_file, file, self._bot, most)
            attachment, why = await album.fill(file.size, fetch)
            if attachment is not None:
                found.append(attachment)
                continue
            self._count("media_left_out")
            LOG.warning("file not fetched", message=inbound.platform_id, why=why)
            words = f"{words}\n{left_out(file.kind, file.name, why)}".strip()
        return msgspec.structs.replace(inbound, text=words, attachments=tuple(found))

    def _count(self, outcome: Outcome) -> None:
        self._shared.figures.update(self._bot.agent, outcome)

    def _count_button(self, ended: Ended) -> None:
        self._count("button" if ended == "handed_in" else ended)


def quoted(spoken: Spoken, agent: str) -> Quoted | None:
    """Give what a message replies to; Telegram brings it along.

    Args:
        spoken: the message.
        agent: whose bot said it; empty: somebody else did.
    """
    if not spoken.quoted:
        return None
    text = spoken.quoted[:LONGEST_QUOTE]
    return Quoted(text, spoken.quoted_sender, agent)


def specifics(spoken: Spoken) -> dict[str, str]:
    """Keep what only Telegram knows of."""
    found = {
        "username": spoken.username,
        "chat_title": spoken.chat_title,
        "is_anonymous": "true" if spoken.is_anonymous else "",
    }
    return {name: value for name, value in found.items() if value}
