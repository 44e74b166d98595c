"""A stage for each transport that has a `Presence`: one suite plays on all."""

from __future__ import annotations

import re
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Protocol

import trio

from actors.messages.inbound import Address
from actors.transport import Transport
from connectors.chat.slack.senders import NAMES
from connectors.chat.telegram.events import read_message
from connectors.chat.telegram.markup import SIGNS
from tests.fakes.chat.presence import Screen
from tests.fakes.discord.world import CHANNEL
from tests.fakes.web.page import ANNA as ANNA_THERE, PageBed, open_page
from tests.fakes.whatsapp.stage import WhatsAppPresence
from tests.support.chat.discord_bed import DiscordBed, open_bed
from tests.support.chat.matrix_bed import ANNA, ROOM, ZOE, MatrixBed
from tests.support.chat.slack_bed import CREW, ZOE as PERSON, SlackBed
from tests.support.chat.telegram_bed import ZOE as ZOE_THERE, BotBed
from tests.support.chat.whatsapp_bed import WhatsAppBed


class PresenceStage(Protocol):
    """A chat with a person in it, in front of a transport that listens."""

    address: Address
    """Of the chat."""

    agent: str
    """An agent that is in the chat."""

    @property
    def transport(self) -> Transport:
        """The transport under test."""
        ...

    async def write(self) -> str:
        """Have the person write; give the platform's id of the message."""
        ...

    async def read(self, receipt: str) -> str | None:
        """Give what a message of ours reads now; None: it is not there."""
        ...

    async def signs(self, message: str) -> list[str]:
        """Give the signs of our agents at a message."""
        ...


class FakeStage:
    """The fake platform with messages that can be edited."""

    agent = "anna"

    def __init__(self) -> None:
        self.transport = Screen()
        self.transport._is_listening = True
        self.address = self.transport.write("hello").address

    async def write(self) -> str:
        await trio.lowlevel.checkpoint()
        return self.transport.write("hello").platform_id

    async def read(self, receipt: str) -> str | None:
        await trio.lowlevel.checkpoint()
        return self.transport.texts.get(receipt)

    async def signs(self, message: str) -> list[str]:
        await trio.lowlevel.checkpoint()
        signs = self.transport.hand.signs
        return [sign for (at, _), sign in signs.items() if at == message]


class MatrixStage:
    """Matrix, with a homeserver in memory."""

    agent = "anna"
    address = Address("matrix", ROOM)

    def __init__(self, bed: MatrixBed) -> None:
        self.transport = bed.transport
        self._server = bed.server

    async def write(self) -> str:
        await trio.lowlevel.checkpoint()
        return self._server.say(ROOM, ZOE, "hello")

    async def read(self, receipt: str) -> str | None:
        await trio.lowlevel.checkpoint()
        shown: str | None = None
        for content in (each["content"] for each in self._server.said(ROOM, ANNA)):
            if content.get("m.relates_to", {}).get("event_id") == receipt:
                shown = content["m.new_content"]["body"]
        for event in self._server.said(ROOM, ANNA):
            if event["event_id"] == receipt:
                body: str | None = event["content"].get("body")
                return body if body is None else shown or body
        return None

    async def signs(self, message: str) -> list[str]:
        await trio.lowlevel.checkpoint()
        related = (
            content.get("m.relates_to", {})
            for content in self._server.contents(ROOM, ANNA)
        )
        return [each["key"] for each in related if each.get("event_id") == message]


class TelegramStage:
    """Telegram, with a Bot API in memory."""

    agent = "anna"
    address = Address("telegram", "1@anna")

    def __init__(self, bed: BotBed) -> None:
        self.transport = bed.transport
        self._server = bed.server
        self._bot = bed.bot()
        self._chat = bed.server.private(1, "anna_bot")

    async def write(self) -> str:
        await trio.lowlevel.checkpoint()
        message = self._server.say(self._chat, ZOE_THERE, "hello")
        return f"1/{message['message_id']}@anna"

    async def read(self, receipt: str) -> str | None:
        await trio.lowlevel.checkpoint()
        name = read_message(receipt)
        assert name is not None
        for message in self._chat.by(self._bot):
            if message["message_id"] == name.number:
                return str(message["text"])
        return None

    async def signs(self, message: str) -> list[str]:
        """Give the signs, as they were asked for: some have others' looks there."""
        await trio.lowlevel.checkpoint()
        name = read_message(message)
        assert name is not None
        signs = self._chat.signs.get((self._bot.id, name.number), [])
        meant = {"👌": "✅", **{v: k for k, v in SIGNS.items() if k == "⚠️"}}
        return [meant.get(each, each) for each in signs]


class DiscordStage:
    """A channel on Discord, in memory, by discord.py itself."""

    agent = "anna"
    address = Address("discord", CHANNEL)

    def __init__(self, bed: DiscordBed) -> None:
        self.transport = bed.transport
        self._bed = bed

    async def write(self) -> str:
        return await self._bed.say("hello")

    async def read(self, receipt: str) -> str | None:
        await trio.lowlevel.checkpoint()
        for each in self._bed.world.messages[CHANNEL]:
            if each["id"] == receipt:
                return str(each["content"])
        return None

    async def signs(self, message: str) -> list[str]:
        await trio.lowlevel.checkpoint()
        return [sign for _, sign in self._bed.world.signs.get(message, [])]


class SlackStage:
    """Slack, with a workspace in memory."""

    agent = "anna"
    address = Address("slack", CREW)

    def __init__(self, bed: SlackBed) -> None:
        self.transport = bed.transport
        self._slack = bed.slack

    async def write(self) -> str:
        await trio.lowlevel.checkpoint()
        return f"{CREW}/{self._slack.say(CREW, PERSON, 'hello')}"

    async def read(self, receipt: str) -> str | None:
        await trio.lowlevel.checkpoint()
        found = self._slack.find(CREW, receipt.partition("/")[2])
        return None if found is None else str(found["text"])

    async def signs(self, message: str) -> list[str]:
        await trio.lowlevel.checkpoint()
        found = self._slack.find(CREW, message.partition("/")[2]) or {}
        shown = {name: sign for sign, name in NAMES.items()}
        return [shown[name] for _, name in found.get("signs", [])]


class PageStage:
    """The web page, on a real socket."""

    agent = "anna"
    address = Address("page", "operator/anna")

    def __init__(self, bed: PageBed) -> None:
        self.transport = bed.transport
        self._bed = bed

    async def write(self) -> str:
        response = await self._bed.say("hello")
        return str(response.json()["id"])

    async def read(self, receipt: str) -> str | None:
        found = re.search(
            rf'id="m-{receipt}".*?class="words"><p>(.*?)</p>',
            await self._html(),
            re.DOTALL,
        )
        return None if found is None else found[1]

    async def signs(self, message: str) -> list[str]:
        html = (await self._html()).partition(f'id="m-{message}"')[2]
        return re.findall(r'<span title="anna">(.*?)<', html.partition("</article>")[0])

    async def _html(self) -> str:
        return (await self._bed.client.get(ANNA_THERE)).text


@asynccontextmanager
async def open_presence(name: str) -> AsyncGenerator[PresenceStage]:
    """Open the stage of a transport until the block ends."""
    if name == "matrix":
        bed = MatrixBed("anna")
        bed.server.room(ROOM, ZOE, ANNA)
        async with bed.listening():
            yield MatrixStage(bed)
        return
    if name == "telegram":
        bots = BotBed("anna")
        async with bots.listening():
            yield TelegramStage(bots)
        return
    if name == "page":
        async with open_page() as page:
            yield PageStage(page)
        return
    if name == "whatsapp":
        numbers = WhatsAppBed()
        async with numbers.listening():
            yield WhatsAppPresence(numbers)
        return
    if name == "discord":
        async with open_bed("anna") as discord, discord.listening():
            yield DiscordStage(discord)
        return
    if name == "slack":
        slack_bed = SlackBed("anna")
        async with slack_bed.listening():
            yield SlackStage(slack_bed)
        return
    await trio.lowlevel.checkpoint()
    yield FakeStage()
