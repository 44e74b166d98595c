"""One WebSocket over one connection: handshake, frames within their bounds, pings.

wsproto says what the bytes mean; here they are read and written, each within its time.
Nothing that a client sends is kept beyond one message.
"""

from __future__ import annotations

import contextlib

import h11
import msgspec
import trio
from wsproto import ConnectionType, WSConnection
from wsproto.connection import ConnectionState
from wsproto.events import (
    AcceptConnection,
    BytesMessage,
    CloseConnection,
    Event,
    Ping,
    Pong,
    Request,
    TextMessage,
)
from wsproto.frame_protocol import CloseReason
from wsproto.utilities import LocalProtocolError, RemoteProtocolError

from connectors.chat.websocket.frames import ClientGoneError, ClientRefusedError

BLOCK = 16_384
"""Bytes that are read at once."""

# Chosen: shorter than the 60 s after which proxies close a connection that is silent.
PING_EVERY = 20.0
"""Seconds between the pings by which it is seen whether a client is there."""

PONG_WITHIN = 20.0
"""Seconds a client has to answer one."""

LONGEST_HEAD = 16_384
"""Bytes of the request that asks for a WebSocket."""

CLOSE_WITHIN = 1.0
"""Seconds that a client has to answer a close."""

REASONS = {400: "Bad Request", 401: "Unauthorized", 403: "Forbidden"} | {
    426: "Upgrade Required",
    503: "Service Unavailable",
}
LONGEST_REASON = 120
"""Bytes of a close's reason. Source: RFC 6455 5.5: 125, less two for the code."""


class Head(msgspec.Struct, frozen=True):
    """What a client said when it connected."""

    headers: dict[str, str]
    """By names in small letters."""

    target: str

    @property
    def query(self) -> str:
        """What stands behind the path's question mark."""
        # Why not `urlsplit`: whoever connects writes here what they like, and it
        # raises for some of that.
        return self.target.partition("#")[0].partition("?")[2]

    @property
    def key(self) -> str:
        """The key that it sent; empty: none."""
        scheme, _, key = self.headers.get("authorization", "").partition(" ")
        if scheme.lower() == "bearer":
            return key.strip()
        return self.headers.get("x-api-key", "")


class ClientConnection:
    """One connection.

    Args:
        most: bytes of one message.
        stall: seconds that a client may leave what is sent to it unread.
        keeps_start: whether what is read is kept, until `forget_start`.
    """

    def __init__(
        self,
        stream: trio.abc.Stream,
        most: int,
        stall: float,
        *,
        keeps_start: bool = False,
    ) -> None:
        self._stream = stream
        self._start: bytearray | None = bytearray() if keeps_start else None
        self._most = most
        self._stall = stall
        self._protocol = WSConnection(ConnectionType.SERVER)
        self._sending = trio.Lock()
        self._part = ""
        self._part_bytes = 0
        self.bytes_in = 0
        self.bytes_out = 0
        self.is_open = False
        self._bye = ""
        self._is_torn = False

    async def hear_head(self) -> Head:
        """Read what the client asks for.

        Raises:
            RefusedError: it is no WebSocket.
            GoneError: nobody is there.
        """
        while True:
            block = await self._read()
            if self.bytes_in > LONGEST_HEAD:
                text = f"a request of more than {LONGEST_HEAD} bytes"
                raise ClientRefusedError("too_long", text, "send fewer headers")
            try:
                self._protocol.receive_data(block)
                for event in self._protocol.events():
                    if isinstance(event, Request):
                        return head_of(event)
            except (RemoteProtocolError, UnicodeError) as error:
                # wsproto reads some headers as ASCII, whatever stands there. What h11
                # does not read is no HTTP at all, such as HTTP/1.1 without a Host.
                is_http = not isinstance(error.__context__, h11.RemoteProtocolError)
                text = "this address speaks WebSocket, not HTTP"
                cure = "connect with ws://"
                raise ClientRefusedError(
                    "no_websocket", text, cure, status=426 if is_http else 400
                ) from error

    async def accept(self) -> None:
        """Let the client in.

        Raises:
            GoneError: it has gone.
        """
        await self._send(AcceptConnection())
        self.is_open = True

    async def refuse(self, error: ClientRefusedError) -> None:
        """Answer the request for a WebSocket with why there is none."""
        body = f"{error.text}; {error.cure}\n".encode()
        lines = [
            f"HTTP/1.1 {error.status} {REASONS.get(error.status, 'Refused')}",
            "server: callboard",
            "content-type: text/plain; charset=utf-8",
            f"content-length: {len(body)}",
            "connection: close",
        ]
        if error.retry_after is not None:
            lines.append(f"retry-after: {error.retry_after:.0f}")
        head = "\r\n".join([*lines, "", ""]).encode()
        with contextlib.suppress(ClientGoneError):
            await self._write(head + body)
        await self.aclose()

    async def hear(self) -> list[str | Pong]:
        """Wait for messages and pongs; give those that have come.

        Raises:
            RefusedError: it sends what is not taken; it is to be let go.
            GoneError: nobody is there.
        """
        heard: list[str | Pong] = []
        while True:
            for event in self._events():  # those, too, that came with the head
                await self._take(event, heard)
            if heard:
                return heard
            if self._bye:
                raise ClientGoneError(self._bye)
            self._receive(await self._read())

    async def _take(self, event: Event, heard: list[str | Pong]) -> None:
        match event:
            case Ping():
                await self._send(event.response())
            case Pong():
                heard.append(event)
            case CloseConnection():
                # wsproto says so, too, where what came is no frame.
                is_theirs = self._protocol.state is ConnectionState.REMOTE_CLOSING
                self._bye = "closed" if is_theirs else "protocol"
                with contextlib.suppress(ClientGoneError):
                    await self._send(event.response())
            case TextMessage():
                text = self._whole(event)
                if text is not None:
                    heard.append(text)
            case BytesMessage():
                text = "a binary frame"
                raise ClientRefusedError("binary", text, "send text frames of JSON")
            case _:
                pass

    @property
    def start(self) -> bytes:
        """All that the client has sent so far, if that is kept."""
        return bytes(self._start or b"")

    def forget_start(self) -> None:
        """Keep no longer what the client sends."""
        self._start = None

    async def receive(self) -> bytes:
        """Read what the client sends, as it comes.

        Raises:
            GoneError: it has gone.
        """
        self.forget_start()
        return await self._read()

    async def write(self, block: bytes) -> None:
        """Send whole frames as they are.

        Raises:
            GoneError: the client has gone, or does not read.
        """
        async with self._sending:
            if self._is_torn:
                raise ClientGoneError("broken")
            await self._write(block)

    async def tell(self, text: str) -> None:
        """Send a message.

        Raises:
            GoneError: the client has gone, or does not read.
        """
        await self._send(TextMessage(text))

    async def ping(self, payload: bytes) -> None:
        """Ask whether the client is there; it answers with the same bytes.

        Raises:
            GoneError: it has gone, or does not read.
        """
        await self._send(Ping(payload))

    async def close(self, code: int, reason: str) -> None:
        """Say good-bye, and end the connection within a moment."""
        short = reason.encode()[:LONGEST_REASON].decode(errors="ignore")
        with trio.move_on_after(CLOSE_WITHIN), contextlib.suppress(ClientGoneError):
            if self.is_open:
                await self._send(CloseConnection(code, short))
                while True:  # whatever it still sends is nobody's
                    await self._read()
        await self.aclose()

    async def aclose(self) -> None:
        """End the connection at once."""
        self.is_open = False
        await trio.aclose_forcefully(self._stream)

    def _whole(self, event: TextMessage) -> str | None:
        """Put the pieces of a message together; None: it is not whole yet."""
        self._part += event.data
        self._part_bytes += len(event.data.encode())
        if self._part_bytes > self._most:
            text = f"a frame of more than {self._most} bytes"
            raise ClientRefusedError("too_long", text, "send less at once")
        if not event.message_finished:
            return None
        whole, self._part, self._part_bytes = self._part, "", 0
        return whole

    def _events(self) -> list[Event]:
        try:
            return list(self._protocol.events())
        except RemoteProtocolError as error:
            raise ClientGoneError("protocol") from error

    def _receive(self, block: bytes) -> None:
        try:
            self._protocol.receive_data(block)
        except (RemoteProtocolError, LocalProtocolError) as error:
            raise ClientGoneError("protocol") from error

    async def _read(self) -> bytes:
        try:
            block = bytes(await self._stream.receive_some(BLOCK))
        except (trio.BrokenResourceError, trio.ClosedResourceError) as error:
            raise ClientGoneError("broken") from error
        if not block:
            raise ClientGoneError("broken")
        self.bytes_in += len(block)
        if self._start is not None:
            self._start += block
            if (read := len(self._start)) > LONGEST_HEAD + 2 * self._most + BLOCK:
                self.forget_start()
                text = f"{read} bytes before the first frame was whole"
                raise ClientRefusedError("too_long", text, "send less at once")
        return block

    async def _send(self, event: Event) -> None:
        async with self._sending:
            if self._is_torn:
                raise ClientGoneError("broken")
            try:
                block = self._protocol.send(event)
            except LocalProtocolError as error:
                raise ClientGoneError("closed") from error
            await self._write(block)

    async def _write(self, block: bytes) -> None:
        # Until it is sent whole: whoever is cancelled meanwhile leaves a part of a
        # frame behind, after which nothing can follow.
        self._is_torn = True
        try:
            with trio.fail_after(self._stall):
                await self._stream.send_all(block)
        except (trio.BrokenResourceError, trio.ClosedResourceError) as error:
            raise ClientGoneError("broken") from error
        except trio.TooSlowError as error:
            raise ClientGoneError("slow") from error
        self._is_torn = False
        self.bytes_out += len(block)


def head_of(request: Request) -> Head:
    """Read a request for a WebSocket."""
    pairs = request.extra_headers
    headers = {name.decode().lower(): value.decode("latin-1") for name, value in pairs}
    return Head(headers | {"host": request.host}, request.target)


def close_code(error: ClientRefusedError) -> int:
    """Say why a client is let go, in WebSocket's terms."""
    codes = {
        "binary": CloseReason.UNSUPPORTED_DATA,
        "too_long": CloseReason.MESSAGE_TOO_BIG,
        "full": CloseReason.TRY_AGAIN_LATER,
        "unavailable": CloseReason.TRY_AGAIN_LATER,
    }
    return int(codes.get(error.code, CloseReason.POLICY_VIOLATION))
