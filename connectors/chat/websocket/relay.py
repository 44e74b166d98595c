"""Passes a client on to the node that works on its chat.

Only a client's first frame says which chat that is. So the node to which it connected
lets it in, and then sends the other node all that it has read, as it came. From there
on bytes go to and fro. What the other node says is handed on in whole frames: when that
node is gone, the client can still be told to connect again (close code 1012). Then it
sends again what nobody said to have received, and nothing is lost or taken twice.
"""

from __future__ import annotations

import contextlib
import hmac
import re
from functools import partial
from typing import TYPE_CHECKING

import trio

from connectors.chat.websocket.connection import (
    LONGEST_HEAD,
    PING_EVERY,
    PONG_WITHIN,
    ClientConnection,
    Head,
)
from connectors.chat.websocket.frames import (
    CODES,
    MOVED,
    NORMAL,
    ClientGoneError,
    ClientRefusedError,
)

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from connectors.web.peers import NodePlace, Peers

CLIENT = "x-callboard-client"
"""Header that a node adds: its seal, and the address of the client."""

HELD_FOR = 30.0
"""Seconds that a client waits for a node that can serve it."""

CONNECT_WITHIN = 2.0
AGAIN = 0.05
"""Seconds between two looks where a chat is worked on."""

LOOK_EVERY = 0.5
"""Seconds between two looks whether it is worked on there still."""

SILENT_AFTER = PING_EVERY + PONG_WITHIN
"""Seconds after which a node that says nothing is gone: it pings all its clients."""

BLOCK = 65_536
HEAD_END = re.compile(rb"\r?\n\r?\n")
TAKEN = b" 101 "


def client_of(head: Head, peers: Peers | None) -> str | None:
    """Give the address of a client that another node passes on; None: none does."""
    seal, _, where = head.headers.get(CLIENT, "").partition(" ")
    if peers is None or not seal:
        return None
    is_node = hmac.compare_digest(seal.encode(), peers.seal(where).encode())
    return where if is_node else None


def with_seal(start: bytes, seal: str, where: str) -> tuple[bytes, bytes]:
    """Put a node's seal behind the headers of a client's request.

    Returns:
        The request, and what the client sent behind it.
    """
    end = HEAD_END.search(start)
    at, after = (len(start), len(start)) if end is None else end.span()
    added = f"\r\n{CLIENT}: {seal} {where}".encode()
    return start[:at] + added + start[at:after], start[after:]


class WholeFrames:
    """Cuts what a server of WebSockets sends into whole frames; pure.

    Source: RFC 6455 5.2.
    """

    def __init__(self) -> None:
        self._rest = bytearray()
        self.has_closed = False
        """Whether the server has said that it ends the connection."""

    def feed(self, block: bytes) -> bytes:
        """Take bytes in; gives those of all frames that are whole."""
        self._rest += block
        end = 0
        while end + (length := frame_length(self._rest, end)) <= len(self._rest):
            self.has_closed |= self._rest[end] & 0x0F == 8
            end += length
        whole = bytes(self._rest[:end])
        del self._rest[:end]
        return whole


def frame_length(block: bytearray, at: int) -> int:
    """Give the bytes of the frame that begins at a place, or of its head at least."""
    size = block[at + 1] & 0x7F if len(block) > at + 1 else 0
    head = 2 + {126: 2, 127: 8}.get(size, 0)
    if size > 125 and len(block) >= at + head:
        size = int.from_bytes(block[at + 2 : at + head])
    return head + size


class ClientRelay:
    """Serves one client by another node.

    Args:
        wire: to the client; it has kept what it read.
    """

    def __init__(self, wire: ClientConnection, peers: Peers, connector: str) -> None:
        self._wire = wire
        self._peers = peers
        self._connector = connector
        self._frames = WholeFrames()
        self._why = ""

    async def pass_on(self, chat: str, where: str, *, may_pass_on: bool) -> str:
        """Have a client served by the node that works on its chat.

        Args:
            may_pass_on: False: another node has passed it on to this one.

        Returns:
            Why that ended, in one bounded word; empty: this node is to serve it.

        Raises:
            ClientRefusedError: nobody can now.
        """
        look = partial(self._peers.where, self._connector, chat)
        place, node = await self._reach(look, may_pass_on=may_pass_on)
        if place.is_here:
            return ""
        try:
            if node is None:
                self._why = MOVED
            else:
                sent = with_seal(self._wire.start, self._peers.seal(where), where)
                await self._relay(node, sent, partial(wait_moved, place, look))
        finally:
            self._why = self._why or "stopping"
            # Why a shield: the client gets its close frame when all ends, too.
            with trio.CancelScope(shield=True):
                if not self._frames.has_closed:
                    await self._wire.close(CODES.get(self._why, NORMAL), self._why)
        return self._why

    async def _reach(
        self, look: Callable[[], NodePlace], *, may_pass_on: bool
    ) -> tuple[NodePlace, trio.SocketStream | None]:
        """Connect to the node that works on a chat, unless it is this one."""
        with trio.move_on_after(HELD_FOR):
            while True:
                place = look()
                if place.is_here or (place.port and not may_pass_on):
                    return place, None
                if place.port:
                    with (
                        trio.move_on_after(CONNECT_WITHIN),
                        contextlib.suppress(OSError),
                    ):
                        node = await trio.open_tcp_stream(place.host, place.port)
                        return place, node
                await trio.sleep(AGAIN)
        text = "no node can take this conversation now"
        raise ClientRefusedError("unavailable", text, "connect again later")

    async def _relay(
        self,
        node: trio.SocketStream,
        start: tuple[bytes, bytes],
        wait_over: Callable[[], Awaitable[object]],
    ) -> None:
        """Hand bytes on until one side has gone, or another node has the chat."""
        async with node, trio.open_nursery() as nursery:

            async def until_over(do: Callable[[], Awaitable[object]]) -> None:
                why = MOVED
                try:
                    await do()
                except ClientGoneError as error:
                    why = str(error)
                except (trio.BrokenResourceError, trio.ClosedResourceError):
                    pass  # the other node has gone
                self._why = self._why or ("closed" if self._frames.has_closed else why)
                nursery.cancel_scope.cancel()

            nursery.start_soon(until_over, wait_over)
            is_taken = trio.Event()
            nursery.start_soon(until_over, partial(self._to_client, node, is_taken))
            sending = partial(self._to_node, node, start, is_taken)
            nursery.start_soon(until_over, sending)

    async def _to_client(self, node: trio.SocketStream, is_taken: trio.Event) -> None:
        head = bytearray()
        while (end := HEAD_END.search(head)) is None and len(head) <= LONGEST_HEAD:
            head += await heard(node)
        if end is None or TAKEN not in head.partition(b"\n")[0]:
            raise ClientGoneError("full")
        is_taken.set()
        block = bytes(head[end.end() :])
        while True:
            if whole := self._frames.feed(block):
                await self._wire.write(whole)
            block = await heard(node)

    async def _to_node(
        self,
        node: trio.SocketStream,
        start: tuple[bytes, bytes],
        is_taken: trio.Event,
    ) -> None:
        request, block = start
        await node.send_all(request)
        await is_taken.wait()  # before, a server need not keep what comes
        while True:
            await node.send_all(block)
            block = await self._wire.receive()


async def heard(node: trio.SocketStream) -> bytes:
    """Read what a node says.

    Raises:
        BrokenResourceError: it has gone.
    """
    block = b""
    with trio.move_on_after(SILENT_AFTER):
        block = bytes(await node.receive_some(BLOCK))
    if not block:
        raise trio.BrokenResourceError
    return block


async def wait_moved(place: NodePlace, look: Callable[[], NodePlace]) -> None:
    """Wait until another node works on a chat, or none."""
    while look().owner == place.owner:  # noqa: ASYNC110  the leases tell nobody
        await trio.sleep(LOOK_EVERY)
