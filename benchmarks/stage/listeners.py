"""Clients of Socket.IO that join channels, and one who speaks in each, over HTTP.

`python -m benchmarks.stage.listeners` is the other end of `hear`: a process of its own,
so that what the clients cost is not counted as the server's. They speak Engine.IO 4
over WebSocket by hand, as far as is needed: a client library would take longer than the
server.
"""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from functools import partial

import msgspec

from benchmarks.machine import ROOT, resident
from benchmarks.stage.programs import module
from benchmarks.stage.visitors import Person, place_of
from benchmarks.stopwatch import now, now_ns

TOLD = b"messageBroadcast"
ENDS = b"\r\n\r\n"
ENTITY = "00000000-0000-0000-0000-0000000000aa"
AT_ONCE = 50
"""Clients that connect together."""


class Hear(msgspec.Struct, frozen=True):
    """What a group of clients does."""

    address: str
    channels: tuple[str, ...]
    listeners: int
    """In each channel."""

    share: int
    """Messages said in each channel, each when the last was heard by all."""

    post: str
    """Where they are said: `{channel}` and `{number}` are filled in."""

    body: str
    """What is posted: JSON, in which the same is filled in."""

    server: int
    """Process whose memory is looked at."""


class Heard(msgspec.Struct, frozen=True):
    """How it went."""

    seconds: float
    taken: list[int]
    """From the beginning of each request until the last had heard it, in ns."""

    bytes_each: float
    """What the server's memory grew by for each listener."""


def hear(plan: Hear) -> Heard:
    """Have clients listen from another process.

    Raises:
        subprocess.CalledProcessError: something was not as expected.
    """
    done = subprocess.run(  # noqa: S603  this Python, this module
        module("benchmarks.stage.listeners", msgspec.json.encode(plan).decode()),
        cwd=ROOT,
        stdout=subprocess.PIPE,
        check=True,
    )
    return msgspec.json.decode(done.stdout, type=Heard)


class Room:
    """One channel, as its listeners hear it."""

    def __init__(self, channel: str, listeners: int) -> None:
        self.channel = channel
        self.listeners = listeners
        self._left = 0
        self._all: asyncio.Future[int] | None = None

    def expect(self) -> asyncio.Future[int]:
        """Give what is set to the moment when the last has heard the next message."""
        self._left = self.listeners
        self._all = asyncio.get_running_loop().create_future()
        return self._all

    def heard(self) -> None:
        """Count one that has heard it."""
        self._left -= 1
        if self._left == 0 and self._all is not None:
            self._all.set_result(now_ns())


class Listener(asyncio.Protocol):
    """One client."""

    def __init__(self, room: Room, host: str) -> None:
        self._room = room
        self._host = host
        self._bytes = bytearray()
        self._is_open = False
        self._transport: asyncio.Transport | None = None
        self.joined: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Ask for a WebSocket."""
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        transport.write(
            b"GET /socket.io/?EIO=4&transport=websocket HTTP/1.1\r\n"
            b"host: " + self._host.encode() + b"\r\nupgrade: websocket\r\n"
            b"connection: Upgrade\r\nsec-websocket-version: 13\r\n"
            b"sec-websocket-key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n"
        )

    def data_received(self, data: bytes) -> None:
        """Take whole frames."""
        self._bytes += data
        if not self._is_open:
            end = self._bytes.find(ENDS)
            if end < 0:
                return
            assert self._bytes.startswith(b"HTTP/1.1 101"), bytes(self._bytes[:200])
            del self._bytes[: end + len(ENDS)]
            self._is_open = True
        while (frame := self._frame()) is not None:
            self._take(frame)

    def _frame(self) -> bytes | None:
        if len(self._bytes) < 2:
            return None
        length, start = self._bytes[1] & 127, 2
        if length == 126:
            length, start = int.from_bytes(self._bytes[2:4], "big"), 4
        if len(self._bytes) < start + length:
            return None
        payload = bytes(self._bytes[start : start + length])
        del self._bytes[: start + length]
        return payload

    def _take(self, frame: bytes) -> None:
        if frame.startswith(b"0{"):
            self._send("40" + json.dumps({"entityId": ENTITY}))
        elif frame.startswith(b"40"):
            join = {"roomId": self._room.channel}
            self._send("42" + json.dumps(["1", join]))
        elif frame == b"2":
            self._send("3")
        elif b"room_joined" in frame:
            self.joined.set_result(None)
        elif TOLD in frame:
            self._room.heard()

    def _send(self, text: str) -> None:
        body = text.encode()
        assert len(body) < 126
        assert self._transport is not None
        # A mask of zeros changes nothing, and is one.
        self._transport.write(bytes((0x81, 0x80 | len(body), 0, 0, 0, 0)) + body)


async def listen(plan: Hear) -> Heard:
    """Join all channels, then speak in them."""
    host, port = place_of(plan.address)
    loop = asyncio.get_running_loop()
    before = resident(plan.server)
    rooms = [Room(each, plan.listeners) for each in plan.channels]
    everybody = [room for room in rooms for _ in range(plan.listeners)]
    for first in range(0, len(everybody), AT_ONCE):
        made = [
            await loop.create_connection(partial(Listener, room, host), host, port)
            for room in everybody[first : first + AT_ONCE]
        ]
        await asyncio.wait_for(asyncio.gather(*(each.joined for _, each in made)), 60)
    grown = resident(plan.server) - before
    begin = now()
    taken = await asyncio.gather(*(speak(plan, room, host, port) for room in rooms))
    return Heard(
        seconds=now() - begin,
        taken=[each for some in taken for each in some],
        bytes_each=grown / len(everybody),
    )


async def speak(plan: Hear, room: Room, host: str, port: int) -> list[int]:
    """Say so many messages in a channel, each when all have heard the last."""
    loop = asyncio.get_running_loop()
    transport, person = await loop.create_connection(Person, host, port)
    taken: list[int] = []
    for number in range(plan.share):
        body = plan.body.replace("{channel}", room.channel)
        body = body.replace("{number}", str(number))
        head = (
            f"POST {plan.post.replace('{channel}', room.channel)} HTTP/1.1\r\n"
            f"host: {host}\r\ncontent-type: application/json\r\n"
            f"content-length: {len(body.encode())}\r\n\r\n"
        )
        heard, begin = room.expect(), now_ns()
        answer = await person.ask(transport, (head + body).encode())
        assert answer.startswith(b"HTTP/1.1 2"), answer[:300]
        taken.append(await asyncio.wait_for(heard, 60) - begin)
    transport.close()
    return taken


def main() -> None:
    """Be the other process."""
    plan = msgspec.json.decode(sys.argv[1], type=Hear)
    heard = asyncio.run(listen(plan))
    sys.stdout.buffer.write(msgspec.json.encode(heard))


if __name__ == "__main__":
    main()
