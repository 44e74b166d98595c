"""The WebSocket to QQ's gateway bears what servers and networks do."""

from __future__ import annotations

import pytest
import trio
import trio.testing
from trio.testing import MockClock
from wsproto import ConnectionType, WSConnection
from wsproto.events import (
    AcceptConnection,
    BytesMessage,
    Event,
    Ping,
    Pong,
    RejectConnection,
    TextMessage,
)

from connectors.chat.qq.listener import MOST_MESSAGE, GatewaySocket, open_socket
from connectors.chat.requests import BusyError, LostError


class Server:
    """The other end of one WebSocket."""

    def __init__(self) -> None:
        ours, self.stream = trio.testing.memory_stream_pair()
        self.socket = GatewaySocket(ours)
        self._protocol = WSConnection(ConnectionType.SERVER)

    async def say(self, *events: Event) -> None:
        """Send events, in one piece."""
        await self.stream.send_all(b"".join(map(self._protocol.send, events)))

    async def hear(self) -> list[Event]:
        """Give what came."""
        self._protocol.receive_data(bytes(await self.stream.receive_some()))
        return list(self._protocol.events())

    async def open(self) -> GatewaySocket:
        """Let the client in."""
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self.socket.begin, "qq.test", "/websocket")
            await self.hear()
            await self.say(AcceptConnection())
        return self.socket


async def test_messages_come_in_pieces_and_several_at_once() -> None:
    server = Server()
    socket = await server.open()
    half = TextMessage('{"op": ', message_finished=False)
    odd = (TextMessage("no JSON"), BytesMessage(b"\x00"))
    await server.say(half, TextMessage("10}"), *odd, TextMessage('{"op": 11}'))
    assert await socket.hear(5) == {"op": 10}
    assert await socket.hear(5) == {"op": 11}


async def test_a_ping_is_answered() -> None:
    server = Server()
    socket = await server.open()
    await server.say(Ping(b"there?"), TextMessage("{}"))
    assert await socket.hear(5) == {}
    (pong,) = await server.hear()
    assert isinstance(pong, Pong)
    assert bytes(pong.payload) == b"there?"


async def test_silence_means_that_nobody_is_there(autojump_clock: MockClock) -> None:
    del autojump_clock
    socket = await Server().open()
    with pytest.raises(LostError, match="said nothing for 95 s"):
        await socket.hear(95)


async def test_a_message_without_an_end_is_not_waited_for() -> None:
    server = Server()
    socket = await server.open()
    await server.say(TextMessage("x" * (MOST_MESSAGE + 1), message_finished=False))
    with pytest.raises(LostError, match="a message of more than"):
        await socket.hear(5)


@pytest.mark.parametrize("junk", [b"SSH-2.0-x\r\n\r\n", b""])
async def test_what_is_no_websocket_is_left(junk: bytes) -> None:
    server = Server()
    if junk:
        await server.stream.send_all(junk)
    else:
        await server.stream.send_eof()
    with pytest.raises(LostError):
        await server.socket.begin("qq.test", "/")


async def test_who_is_refused_says_how() -> None:
    server = Server()

    async def refuse() -> None:
        await server.hear()
        await server.say(RejectConnection(status_code=403))

    async with trio.open_nursery() as nursery:
        nursery.start_soon(refuse)
        with pytest.raises(LostError, match="HTTP 403"):
            await server.socket.begin("qq.test", "/")


async def test_where_nobody_listens_is_told() -> None:
    with pytest.raises(BusyError, match="is not reached"):
        async with open_socket("wss://127.0.0.1:1/websocket", 5):
            pass
