"""A client of the plain WebSocket, by wsproto's other half."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import Any

import msgspec
import trio
from wsproto import ConnectionType, WSConnection
from wsproto.events import (
    AcceptConnection,
    CloseConnection,
    Event,
    Ping,
    RejectConnection,
    RejectData,
    Request,
    TextMessage,
)

Json = dict[str, Any]


class SocketClient:
    """One connection; what is told to it stands in `frames`.

    Args:
        stream: to the server.
    """

    def __init__(self, stream: trio.abc.Stream) -> None:
        self._stream = stream
        self._protocol = WSConnection(ConnectionType.CLIENT)
        self._changed = trio.Event()
        self._sending = trio.Lock()
        self._text = ""
        self.frames: list[Json] = []
        self.is_accepted = False
        self.status = 0
        """Of HTTP, where the connection was refused."""

        self.refusal = ""
        self.closed: tuple[int, str] | None = None
        """Why the server let it go."""

        self.has_ended = False
        self.pongs = True
        """Whether it answers pings."""

        self.reads = trio.Event()
        """Cleared by a test of clients that do not read."""

        self.reads.set()

    async def run(self) -> None:
        """Read until the server ends the connection."""
        gone = (trio.BrokenResourceError, trio.ClosedResourceError)
        async with self._stream, contextlib.AsyncExitStack() as stack:
            stack.enter_context(contextlib.suppress(*gone))
            while True:
                await self.reads.wait()
                block = bytes(await self._stream.receive_some(65_536))
                if not block:
                    break
                self._protocol.receive_data(block)
                for event in self._protocol.events():
                    await self._take(event)
                self._note()
        self.has_ended = True
        self._note()

    async def ask(self, target: str = "/", **headers: str) -> None:
        """Ask for a WebSocket; does not wait."""
        more = [
            (name.replace("_", "-").encode(), value.encode())
            for name, value in headers.items()
        ]
        request = Request(host="127.0.0.1", target=target, extra_headers=more)
        await self.put(self._protocol.send(request))

    async def open(self, target: str = "/", **headers: str) -> None:
        """Ask for a WebSocket, and wait for the answer."""
        await self.ask(target, **headers)
        await self.wait(lambda: self.is_accepted or bool(self.status))

    async def send(self, kind: str, **fields: object) -> None:
        """Send a frame."""
        await self.write(msgspec.json.encode({"type": kind, **fields}).decode())

    async def write(self, text: str) -> None:
        """Send a text as it is."""
        await self.event(TextMessage(text))

    async def event(self, event: Event) -> None:
        """Send anything that wsproto knows."""
        await self.put(self._protocol.send(event))

    async def put(self, block: bytes) -> None:
        """Send bytes as they are."""
        async with self._sending:
            await self._stream.send_all(block)

    async def drop(self) -> None:
        """Be gone, without a word."""
        await trio.aclose_forcefully(self._stream)

    async def wait(self, is_so: Callable[[], bool]) -> None:
        """Wait for something to be told."""
        with trio.fail_after(300):
            while not is_so():
                await self._changed.wait()

    async def next_of(self, kind: str, count: int = 1) -> Json:
        """Wait until so many frames of a type have come; give the last of them."""
        await self.wait(lambda: len(self.of(kind)) >= count)
        return self.of(kind)[count - 1]

    async def wait_ended(self) -> None:
        """Wait until the server has ended the connection."""
        await self.wait(lambda: self.has_ended)

    def of(self, kind: str) -> list[Json]:
        """Give the frames of a type."""
        return [each for each in self.frames if each["type"] == kind]

    def said(self) -> list[str]:
        """Give what was said."""
        return [each["content"] for each in self.of("message")]

    async def wait_change(self) -> None:
        """Wait until something comes."""
        await self._changed.wait()

    async def _take(self, event: Event) -> None:
        match event:
            case AcceptConnection():
                self.is_accepted = True
            case RejectConnection():
                self.status = event.status_code
            case RejectData():
                self.refusal += bytes(event.data).decode()
            case TextMessage():
                self._text += event.data
                if event.message_finished:
                    self.frames.append(msgspec.json.decode(self._text))
                    self._text = ""
            case Ping() if self.pongs:
                await self.event(event.response())
            case CloseConnection():
                self.closed = (event.code, event.reason or "")
                await self.event(event.response())
                await self._stream.aclose()
            case _:
                pass

    def _note(self) -> None:
        self._changed.set()
        self._changed = trio.Event()
