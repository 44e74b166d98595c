"""The Discord transport between a Discord in memory and an ingress that keeps all."""

from __future__ import annotations

import threading
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from functools import partial
from typing import Any

import trio

from actors.messages.inbound import Address
from connectors.asyncio_bridge.bridge import Bridge
from connectors.chat.discord.listener import BotPlace
from connectors.chat.discord.platform import DiscordAccountConfig, DiscordConfig
from connectors.chat.discord.transport import DiscordTransport
from runtime.secret import Secret
from runtime.telemetry.metrics import Metrics
from tests.fakes.chat.ingress import FakeIngress
from tests.fakes.discord.server import DiscordServer
from tests.fakes.discord.world import CHANNEL, ZOE
from tests.fakes.tools.sent_files import SentFiles
from tests.support.chat.shared import delivery_to, figure
from tests.support.transport_parts import transport_parts

READY_AFTER = 0.05
HEART = "keep-alive-handler"


class KeptBookmarks:
    """Keeps in memory how far each bot has read."""

    def __init__(self) -> None:
        self.places: dict[str, BotPlace] = {}

    async def read(self, agent: str) -> BotPlace:
        await trio.lowlevel.checkpoint()
        return self.places.get(agent, BotPlace())

    async def write(self, agent: str, place: BotPlace) -> None:
        await trio.lowlevel.checkpoint()
        self.places[agent] = place


class DiscordBed:
    """One Discord and what is connected to it; make it by `open_bed`.

    Args:
        bridge: an open one.
        agents: who has a bot.
        more: further settings of the connector.
    """

    def __init__(self, bridge: Bridge, agents: tuple[str, ...], **more: Any) -> None:
        self.bridge = bridge
        self.server = DiscordServer()
        self.world = self.server.world
        self.bookmarks = KeptBookmarks()
        self.ingress = FakeIngress()
        self.blobs = SentFiles()
        self.metrics = Metrics()
        self.bots = {name: self.world.add_bot(name, token_of(name)) for name in agents}
        self.most_events = 2_000
        self._more = more

    def make(self) -> DiscordTransport:
        """Make the transport, as a new process would."""
        self.metrics = Metrics()
        tokens = {name: Secret(token_of(name)) for name in self.bots}
        given: dict[str, Any] = {
            "accounts": {
                name: DiscordAccountConfig(token=token)
                for name, token in tokens.items()
            },
            "api": f"{self.server.url}/api/v10",
            "gateway": self.server.gateway.url,
            "files": (self.server.url,),
            **self._more,
        }
        self.transport = DiscordTransport(
            "discord",
            DiscordConfig(**given),
            transport_parts(bridge=self.bridge, metrics=self.metrics, blobs=self.blobs),
            self.bookmarks,
            ready_after=READY_AFTER,
            most_events=self.most_events,
        )
        return self.transport

    @asynccontextmanager
    async def listening(self) -> AsyncGenerator[DiscordServer]:
        """Listen until the block ends; begins when all bots hear."""
        async with self.listening_when(self.all_hear) as server:
            yield server

    @asynccontextmanager
    async def listening_when(
        self, is_so: Callable[[], bool]
    ) -> AsyncGenerator[DiscordServer]:
        """Listen until the block ends; begins when something is true."""
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self.transport.listen, self.ingress)
            await self.wait(is_so)
            yield self.server
            nursery.cancel_scope.cancel()

    def all_hear(self) -> bool:
        """Whether every bot hears its gateway."""
        return not any(each.trouble for each in self.transport.accounts.values())

    async def say(
        self, text: str, author: str = ZOE, channel: str = CHANNEL, **more: Any
    ) -> str:
        """Have somebody say something; give its id."""
        act = partial(self.server.say, channel, author, text, **more)
        return await self.bridge.call(act)

    async def wait(self, is_so: Callable[[], bool], within: float = 20) -> None:
        """Wait for something to become true."""
        with trio.fail_after(within):
            while not is_so():  # noqa: ASYNC110  it changes on another thread
                await trio.sleep(0.01)

    def said(self, channel: str = CHANNEL) -> list[str]:
        """Give what our bots have said in a channel, with who said it."""
        ours = set(self.bots.values())
        return [
            f"{each['author']['username']}: {each['content']}"
            for each in list(self.world.messages[channel])
            if each["author"]["id"] in ours
        ]

    def heard(self) -> list[str]:
        """Give the texts that were accepted."""
        return [each.text for each in self.ingress.accepted]

    def counted(self, name: str, **labels: str) -> float:
        """Give a figure; 0 if there is none."""
        return figure(self.metrics, f"discord_{name}", **labels)


def token_of(name: str) -> str:
    """Give the token of an agent's bot."""
    return f"token.of.{name}"


@asynccontextmanager
async def open_bed(*agents: str, **more: Any) -> AsyncGenerator[DiscordBed]:
    """Open a Discord with the bots of some agents; nobody listens yet."""
    bridge = Bridge()
    await bridge.start()
    try:
        bed = DiscordBed(bridge, agents or ("anna", "ben"), **more)
        await bridge.call(bed.server.start)
        bed.make()
        try:
            yield bed
        finally:
            with trio.CancelScope(shield=True), trio.move_on_after(10):
                await bridge.call(bed.server.stop)
    finally:
        await bridge.aclose()
        await wait_no_heart_beats()


async def wait_no_heart_beats() -> None:
    """Wait for discord.py's threads, which end a moment after they were told to."""
    with trio.move_on_after(5):
        while any(each.name.startswith(HEART) for each in threading.enumerate()):  # noqa: ASYNC110  threads
            await trio.sleep(0.01)


delivery = partial(delivery_to, Address("discord", CHANNEL))
"""Makes something to say in the channel."""
