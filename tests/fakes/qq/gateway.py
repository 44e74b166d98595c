"""The gateway of a QQ in memory, on loopback: sessions that go on, and are replayed."""

from __future__ import annotations

import json
from contextlib import asynccontextmanager
from functools import partial
from typing import TYPE_CHECKING, Any

import trio
from wsproto import ConnectionType, WSConnection
from wsproto.events import (
    AcceptConnection,
    CloseConnection,
    Event,
    Request,
    TextMessage,
)
from wsproto.utilities import LocalProtocolError

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from tests.fakes.qq.server import FakeQQ, Json

DISPATCH, HEARTBEAT, IDENTIFY, RESUME = 0, 1, 2, 6
RECONNECT, INVALID, HELLO, ACK = 7, 9, 10, 11
GONE = (trio.BrokenResourceError, trio.ClosedResourceError, LocalProtocolError)


class Line:
    """One connection of a bot."""

    def __init__(self, stream: trio.SocketStream) -> None:
        self.stream = stream
        self.protocol = WSConnection(ConnectionType.SERVER)
        self._sending = trio.Lock()

    async def send(self, event: Event) -> None:
        """Send an event, if anybody is there."""
        async with self._sending:
            try:
                await self.stream.send_all(self.protocol.send(event))
            except GONE:
                await trio.aclose_forcefully(self.stream)

    async def tell(self, frame: Json) -> None:
        """Send a frame."""
        await self.send(TextMessage(json.dumps(frame)))


class Session:
    """One bot's session, with or without a connection."""

    def __init__(self, known: str, bot: str, intents: int) -> None:
        self.id = known
        self.bot = bot
        self.intents = intents
        self.log: list[Json] = []
        self.line: Line | None = None

    async def tell(self, kind: str, said: Json) -> None:
        """Tell of something; kept, so that it can be told again."""
        event = {"op": DISPATCH, "t": kind, "s": len(self.log) + 1, "d": said}
        self.log.append(event)
        if self.line is not None:
            await self.line.tell(event)


class Gateway:
    """All sessions.

    Args:
        server: whose gateway it is.
    """

    heartbeat_ms = 45_000

    def __init__(self, server: FakeQQ) -> None:
        self.server = server
        self.url = ""
        self.sessions: dict[str, Session] = {}
        """By AppID."""

        self.identified = 0
        self.resumed: list[int] = []
        """From which events on."""

        self.beats: list[int | None] = []
        self.refuses_with = 0
        """With which code whoever begins a session is sent away."""

        self.is_deaf = False
        """Whether connections are taken, and nothing is said."""

    async def serve(self, stream: trio.SocketStream) -> None:
        """Serve one connection."""
        line = Line(stream)
        async with stream:
            while True:
                try:
                    block = await stream.receive_some()
                except GONE:
                    return
                line.protocol.receive_data(block or None)
                for event in list(line.protocol.events()):
                    await self._take(event, line)
                if not block:
                    return

    async def _take(self, event: Event, line: Line) -> None:
        if isinstance(event, Request):
            await line.send(AcceptConnection())
            hello = {"heartbeat_interval": self.heartbeat_ms}
            if not self.is_deaf:
                await line.tell({"op": HELLO, "d": hello})
        elif isinstance(event, TextMessage):
            await self._hear(json.loads(event.data), line)

    async def _hear(self, frame: Json, line: Line) -> None:
        said: Any = frame.get("d")
        if frame["op"] == HEARTBEAT:
            self.beats.append(said)
            await line.tell({"op": ACK})
        elif frame["op"] == IDENTIFY:
            await self._identify(said, line)
        elif frame["op"] == RESUME:
            await self._resume(said, line)
        self.server.note_change()

    async def _identify(self, said: Json, line: Line) -> None:
        bot = self.server.tokens.get(said["token"].removeprefix("QQBot "))
        self.identified += 1
        if bot is None or self.refuses_with:
            await line.send(CloseConnection(self.refuses_with or 4004, "no"))
            return
        session = Session(f"s{self.identified}", bot, said["intents"])
        session.line = line
        self.sessions[bot] = session
        user = {"id": f"u{bot}", "username": "anna", "bot": True}
        ready = {"version": 1, "session_id": session.id, "user": user, "shard": [0, 1]}
        await session.tell("READY", ready)

    async def _resume(self, said: Json, line: Line) -> None:
        for session in self.sessions.values():
            if session.id == said["session_id"]:
                self.resumed.append(said["seq"])
                session.line = line
                for event in session.log[said["seq"] :]:
                    await line.tell(event)
                await session.tell("RESUMED", {})
                return
        await line.tell({"op": INVALID, "d": False})

    async def drop(self) -> None:
        """Cut all connections without a word."""
        for session in self.sessions.values():
            if session.line is not None:
                await trio.aclose_forcefully(session.line.stream)
                session.line = None

    async def close(self, code: int) -> None:
        """Close all connections with a code."""
        for session in self.sessions.values():
            if session.line is not None:
                await session.line.send(CloseConnection(code, "bye"))
                session.line = None

    async def send(self, frame: Json) -> None:
        """Send a frame on all connections."""
        for session in self.sessions.values():
            if session.line is not None:
                await session.line.tell(frame)


@asynccontextmanager
async def open_gateway(server: FakeQQ) -> AsyncGenerator[Gateway]:
    """Serve until the block ends."""
    gateway = server.gateway = Gateway(server)
    async with trio.open_nursery() as nursery:
        serve = partial(trio.serve_tcp, gateway.serve, 0, host="127.0.0.1")
        listeners = await nursery.start(serve)
        port = listeners[0].socket.getsockname()[1]
        gateway.url = f"ws://127.0.0.1:{port}/websocket?v=1"
        yield gateway
        nursery.cancel_scope.cancel()
