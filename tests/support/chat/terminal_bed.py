"""A terminal with a fake person at it, and a test that plays the company."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import trio
import trio.testing

from actors.messages.deliveries import Delivery, Draft
from actors.messages.inbound import Inbound
from connectors.chat.terminal.client import (
    Face,
    FromCompany,
    TerminalClient,
    TerminalHello,
    TerminalTaken,
)
from connectors.chat.terminal.plain import PlainChat, PlainSettings
from connectors.chat.terminal.platform import TerminalConfig
from connectors.chat.terminal.transport import TerminalTransport
from runtime import __version__
from runtime.clock import SystemClock
from runtime.ids import IdSource
from tests.fakes.chat.console import FakeConsole
from tests.fakes.chat.ingress import FakeIngress
from tests.fakes.store.in_memory import MemoryStore
from tests.fakes.tools.sent_files import SentFiles
from tests.fakes.web.backstage import FakeCompany
from tests.support.transport_parts import transport_parts

PIPE = PlainSettings(is_interactive=False)
TYPED = PlainSettings()
HELLO = TerminalHello(__version__)


class TerminalBed:
    """The company's end of terminals, and what agents do there."""

    def __init__(
        self, called: dict[str, str] | None = None, database: Path | None = None
    ) -> None:
        store = MemoryStore()
        self.company = company = FakeCompany(store, shown=called or {})
        self.ingress = FakeIngress()
        self.ingress.remembers = True
        self.parts = transport_parts(
            store=store,
            backstage=company.backstage(),
            blobs=SentFiles(),
            database=database,
        )
        self.terminal = TerminalTransport("terminal", TerminalConfig(), self.parts)
        self._lengths: dict[str, int] = {}
        self._nursery: trio.Nursery
        self._seats: list[trio.abc.Stream] = []

    async def listen(
        self, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED
    ) -> None:
        """Serve terminals until cancelled."""
        async with trio.open_nursery() as self._nursery:
            self._nursery.start_soon(self.terminal.listen, self.ingress)
            await self.terminal.wait_listening()
            task_status.started()

    async def dial(self) -> trio.abc.Stream:
        """Connect in memory, for tests on virtual time."""
        await trio.lowlevel.checkpoint()
        here, there = trio.testing.memory_stream_pair()
        self._nursery.start_soon(self.terminal.serve, there)
        self._seats.append(there)
        return here

    async def cut(self) -> None:
        """Cut all connections."""
        for each in self._seats:
            await each.aclose()
        self._seats.clear()

    def client(self, face: Face, hello: TerminalHello = HELLO) -> TerminalClient:
        """Make a terminal's end."""
        return TerminalClient(self.dial, hello, face, IdSource(SystemClock()))

    def draft(self, inbound: Inbound, agent: str, text: str, gap: int = 0) -> None:
        """Show a piece of an answer, behind those before and a gap."""
        turn = f"{inbound.id}/{agent}"
        at = self._lengths.get(turn, 0) + gap
        self._lengths[turn] = at + len(text)
        self.terminal.show_draft(
            Draft(
                correlation_id=inbound.correlation_id,
                turn_id=turn,
                address=inbound.address,
                agent=agent,
                text=text,
                begins_at=at,
            )
        )

    async def say(
        self, inbound: Inbound, agent: str, text: str, *, left: int = 0
    ) -> str:
        return await self.terminal.deliver(
            Delivery(
                id=f"{inbound.id}-{agent}-{text}",
                correlation_id=inbound.correlation_id,
                address=inbound.address,
                agent=agent,
                text=text,
                answers_left=left,
                reply_to=inbound.platform_id,
            )
        )


class CountingChat(PlainChat):
    """A terminal that knows how many of its messages were stored."""

    taken = 0

    def hear(self, frame: FromCompany) -> None:
        if isinstance(frame, TerminalTaken) and not frame.refused:
            self.taken += 1
        super().hear(frame)
        if isinstance(self._console, FakeConsole):
            self._console.note_change()


class Chat(TerminalBed):
    """One person at a plain terminal."""

    def __init__(
        self,
        settings: PlainSettings,
        console: FakeConsole,
        hello: TerminalHello = HELLO,
        called: dict[str, str] | None = None,
    ) -> None:
        super().__init__(called)
        self.console = console
        self.face = CountingChat(settings, console)
        self.face.client = self.client(self.face, hello)
        self.ended = trio.Event()

    @property
    def taken(self) -> int:
        """Count the messages that were stored."""
        return self.face.taken

    async def talk(self) -> None:
        """Converse until the person leaves."""
        listening = trio.CancelScope(shield=True)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self._hear, listening)
            try:
                await self.face.run()
            finally:
                listening.cancel()
        self.ended.set()

    async def sit(self) -> None:
        """Converse, with a transport that somebody else has listen."""
        await self.terminal.wait_listening()
        async with trio.open_nursery() as self._nursery:
            await self.talk()
            self._nursery.cancel_scope.cancel()

    async def run(self) -> None:
        """Serve terminals until the person leaves."""
        async with trio.open_nursery() as nursery:
            await nursery.start(self.listen)
            await self.talk()
            nursery.cancel_scope.cancel()

    async def _hear(self, listening: trio.CancelScope) -> None:
        with listening:
            await self.face.ready.wait()
            await self.face.client.run()

    async def rest(self) -> None:
        """Wait until the person has left, or waits for something to type."""
        with trio.fail_after(5):
            while not self.ended.is_set() and not self.console.is_waiting:
                await trio.lowlevel.checkpoint()
            await trio.testing.wait_all_tasks_blocked()


@asynccontextmanager
async def open_chat(
    settings: PlainSettings,
    console: FakeConsole,
    hello: TerminalHello = HELLO,
    called: dict[str, str] | None = None,
) -> AsyncGenerator[Chat]:
    """Converse until the block ends or the person leaves."""
    chat = Chat(settings, console, hello, called)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(chat.run)
        yield chat
        await chat.rest()
        nursery.cancel_scope.cancel()
