"""One stage for each transport, so that one suite can play on all of them."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Protocol

import httpx
import pytest
import trio
import trio.testing

from actors.transport import Transport
from connectors.chat import accounts, inbound
from connectors.chat.qq import transport as qq
from connectors.chat.telegram import senders as telegram
from connectors.chat.terminal.playback import Cue, PlayingTransport, RoomSettings
from runtime.clock import SystemClock
from runtime.ids import IdSource
from tests.fakes.chat.console import FakeConsole
from tests.fakes.chat.ingress import FakeIngress
from tests.fakes.chat.transport import FakeTransport
from tests.fakes.discord.stage import DiscordStage
from tests.fakes.matrix.homeserver import place_of
from tests.fakes.qq.stage import QQStage
from tests.fakes.slack.stage import SlackStage
from tests.fakes.telegram.stage import TelegramStage
from tests.fakes.tools.sent_files import SentFiles
from tests.fakes.web.channel import Channel, content_of, open_channel
from tests.fakes.web.channel_stage import WebStage
from tests.fakes.web.eliza import ANNA as ANNA_ID, ZOE as ZOE_ID, open_web
from tests.fakes.web.page_stage import open_page_stage
from tests.fakes.websocket.stage import SocketStage
from tests.fakes.whatsapp.stage import open_whatsapp
from tests.support.chat.discord_bed import open_bed
from tests.support.chat.matrix_bed import ANNA, ROOM, ZOE, MatrixBed
from tests.support.chat.qq_bed import open_qq
from tests.support.chat.terminal_bed import TYPED, Chat
from tests.support.chat.websocket_bed import open_sockets
from tests.support.postcard.stage import PostcardStage
from tests.support.transport_parts import transport_parts


class Stage(Protocol):
    """A person in front of a transport."""

    ingress: FakeIngress
    listening: trio.CancelScope
    """Cancelling it cancels `listen`."""

    ended: trio.Event
    """Set when `listen` has returned."""

    can_repeat: bool
    """True if the platform can send a message twice (they have ids)."""

    @property
    def transport(self) -> Transport:
        """The transport under test."""
        ...

    async def write(self, text: str, key: str = "") -> None:
        """Have the person write; does not wait for anything."""
        ...

    def acknowledged(self) -> int:
        """Count the messages that the platform takes for accepted."""
        ...

    def shown(self) -> str:
        """Give all that the person sees of answers and errors."""
        ...

    async def wait_change(self) -> None:
        """Wait until `acknowledged` or `shown` may have changed."""
        ...


class FakeStage:
    """The fake transport."""

    can_repeat = True

    def __init__(self) -> None:
        self.transport = FakeTransport()
        self.ingress = FakeIngress()
        self.listening = trio.CancelScope()
        self.ended = trio.Event()

    async def write(self, text: str, key: str = "") -> None:
        self.transport.write(text, key=key)

    def acknowledged(self) -> int:
        return len(self.transport.acknowledged)

    def shown(self) -> str:
        said = [f"{d.agent}: {d.text}" for d in self.transport.deliveries]
        return "\n".join(said + [str(error) for _, error in self.transport.refused])

    async def wait_change(self) -> None:
        await self.transport.wait_change()


class TerminalStage:
    """The terminal, with a person who types."""

    can_repeat = False

    def __init__(self) -> None:
        self.console = FakeConsole()
        self.bed = Chat(TYPED, self.console)
        self.transport = self.bed.terminal
        self.ingress = self.bed.ingress
        self.listening = trio.CancelScope()
        self.ended = trio.Event()

    async def write(self, text: str, key: str = "") -> None:
        assert not key
        self.console.type(text)

    def acknowledged(self) -> int:
        """Count the messages of which the terminal knows that they are stored."""
        return self.bed.taken

    def shown(self) -> str:
        return self.console.screen

    async def wait_change(self) -> None:
        """Wait until something is printed, or was handed in."""
        await self.console.wait_change()


class PlayingStage:
    """A room that is played, with one person in it."""

    can_repeat = False

    def __init__(self) -> None:
        clock = SystemClock()
        self.console = FakeConsole()
        self.transport = PlayingTransport(
            RoomSettings(agents=("anna", "ben")), self.console, clock, IdSource(clock)
        )
        self.ingress = FakeIngress()
        self.listening = trio.CancelScope()
        self.ended = trio.Event()
        self._handed_in: list[trio.Event] = []

    async def write(self, text: str, key: str = "") -> None:
        assert not key
        cue = Cue(len(self._handed_in) + 1, "Zoe", text)
        self._handed_in.append(self.transport.put(cue))

    def acknowledged(self) -> int:
        return sum(each.is_set() for each in self._handed_in)

    def shown(self) -> str:
        return self.console.screen

    async def wait_change(self) -> None:
        """Wait until something is printed, or was handed in."""
        waits = [each.wait for each in self._handed_in if not each.is_set()]
        async with trio.open_nursery() as nursery:
            for wait in (self.console.wait_change, *waits):
                nursery.start_soon(self._end, wait, nursery.cancel_scope)

    async def _end(
        self, wait: Callable[[], Awaitable[object]], scope: trio.CancelScope
    ) -> None:
        await wait()
        scope.cancel()


class HttpStage:
    """The HTTP channel on a real socket, with a client that streams."""

    can_repeat = True

    def __init__(self, channel: Channel, nursery: trio.Nursery) -> None:
        self.channel = channel
        self.transport = channel.transport
        self.ingress = channel.ingress
        self.listening = channel.serving
        self._nursery = nursery
        self.ended = channel.ended
        self._changed = trio.Event()
        self._begun = 0
        self._shown = ""

    async def write(self, text: str, key: str = "") -> None:
        self._nursery.start_soon(self._post, text, key)

    def acknowledged(self) -> int:
        """Count the responses that have begun."""
        return self._begun

    def shown(self) -> str:
        return self._shown

    async def wait_change(self) -> None:
        await self._changed.wait()

    async def _post(self, text: str, key: str) -> None:
        body = {
            "model": "anna",
            "stream": True,
            "user": "zoe",
            "messages": [{"role": "user", "content": text}],
        }
        headers = {"idempotency-key": key} if key else {}
        async with (
            httpx.AsyncClient(base_url=self.channel.url, timeout=10) as client,
            client.stream(
                "POST", "/v1/chat/completions", json=body, headers=headers
            ) as response,
        ):
            self._begun += 1
            self._note_change()
            async for line in response.aiter_lines():
                self._shown += content_of(line)
                self._note_change()

    def _note_change(self) -> None:
        self._changed.set()
        self._changed = trio.Event()


class MatrixStage:
    """Matrix, with a homeserver in memory and a person alone with one agent."""

    can_repeat = True

    def __init__(self) -> None:
        self.bed = MatrixBed("anna")
        self.transport = self.bed.transport
        self.ingress = self.bed.ingress
        self.listening = trio.CancelScope()
        self.ended = trio.Event()
        self.bed.server.room(ROOM, ZOE, ANNA)
        self.bed.bookmarks.tokens[ANNA] = f"s{len(self.bed.server.events)}"
        self.bed.bookmarks.on_write = self.bed.server.note_change

    async def write(self, text: str, key: str = "") -> None:
        said = {"msgtype": "m.text", "body": text}
        event_id = f"${key}" if key else ""
        self.bed.server.add(ROOM, ZOE, "m.room.message", said, event_id)

    def acknowledged(self) -> int:
        """Count the messages behind the place where the account reads on."""
        place = place_of(self.bed.bookmarks.tokens[ANNA])
        return sum(event["sender"] == ZOE for event in self.bed.server.events[2:place])

    def shown(self) -> str:
        said = self.bed.server.said(ROOM, ANNA)
        return "\n".join(
            f"{each['sender']}: {each['content']['body']}" for each in said
        )

    async def wait_change(self) -> None:
        await self.bed.server.wait_change()


@asynccontextmanager
async def open_qq_stage() -> AsyncGenerator[QQStage]:
    """Listen on a bot of QQ's until the block ends."""
    async with open_qq() as bed, trio.open_nursery() as nursery:
        stage = QQStage(bed)
        nursery.start_soon(listen, stage)
        await bed.server.wait(bed.all_hear)
        yield stage
        nursery.cancel_scope.cancel()


OPENED: dict[str, Callable[[], AbstractAsyncContextManager[Stage]]] = {
    "page": open_page_stage,
    "qq": open_qq_stage,
    "whatsapp": open_whatsapp,
}
"""What opens a stage by itself."""


SOON = 0.05
"""Seconds to the next try, in place of one: these servers are real, and so is time."""


@asynccontextmanager
async def open_stage(name: str) -> AsyncGenerator[Stage]:
    """Listen on a transport until the block ends; it waits for no next try for long."""
    with pytest.MonkeyPatch.context() as patch:
        for module, constant in (
            (inbound, "FIRST_WAIT"),
            (accounts, "SOON"),
            (qq, "SOON"),
            (telegram, "SOON"),
        ):
            patch.setattr(module, constant, SOON)
        async with stage_of(name) as stage:
            yield stage


@asynccontextmanager
async def stage_of(name: str) -> AsyncGenerator[Stage]:
    """Listen on a transport until the block ends."""
    if name == "http":
        async with open_channel() as channel, trio.open_nursery() as nursery:
            yield HttpStage(channel, nursery)
            nursery.cancel_scope.cancel()
        return
    if name == "web":
        async with open_web() as bed, trio.open_nursery() as nursery:
            yield WebStage(bed, await bed.channel(ZOE_ID, ANNA_ID, kind="DM"), nursery)
            nursery.cancel_scope.cancel()
        return
    if name == "websocket":
        async with open_sockets() as sockets:
            yield SocketStage(sockets, await sockets.join(drafts=True))
        return
    if name in OPENED:
        async with OPENED[name]() as opened:
            yield opened
        return
    if name == "discord":
        async with open_bed("anna") as bed, trio.open_nursery() as nursery:
            discord = DiscordStage(bed)
            nursery.start_soon(listen, discord)
            await bed.wait(bed.all_hear)
            yield discord
            nursery.cancel_scope.cancel()
        return
    stages: dict[str, Callable[[], Stage]] = {
        "postcard": lambda: PostcardStage(transport_parts(blobs=SentFiles())),
        "fake": FakeStage,
        "room": PlayingStage,
        "terminal": TerminalStage,
        "matrix": MatrixStage,
        "slack": SlackStage,
        "telegram": TelegramStage,
    }
    stage = stages[name]()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(listen, stage)
        if isinstance(stage, TerminalStage):
            nursery.start_soon(stage.bed.sit)
        await trio.testing.wait_all_tasks_blocked()
        yield stage
        nursery.cancel_scope.cancel()


async def listen(stage: Stage) -> None:
    """Listen until the stage's scope is cancelled or the platform ends."""
    with stage.listening:
        await stage.transport.listen(stage.ingress)
    stage.ended.set()
