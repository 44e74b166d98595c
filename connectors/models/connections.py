"""HTTP/1.1 connections to one server, kept open between requests.

An `httpx` transport: requests, responses, errors and the seam for tests are httpx's,
sockets and encryption are trio's, and llhttp reads the responses
(`http_response.py`). Why not httpx's own: with its pool, its locks and h11, a model
call took four times the processor time, a quarter of what a whole message took. It
does what a model call needs and no more: no proxies, no HTTP/2, no redirects.
"""

from __future__ import annotations

import re
from collections import deque
from typing import TYPE_CHECKING, NamedTuple

import httpx
import trio

from connectors.models.http_response import HttpResponse

if TYPE_CHECKING:
    import ssl

KEPT_FOR = 5.0
"""Seconds an unused connection is kept; as httpx. Servers keep theirs longer."""

PIECE = 64 * 1024
"""Most bytes read at once."""

UNSENDABLE = re.compile(rb"[^\t\x20-\x7e\x80-\xff]")
"""What would end a line of a request's head early."""


class Line(NamedTuple):
    """One connection."""

    stream: trio.abc.Stream
    socket: trio.socket.SocketType
    """Below the encryption, if there is any."""


class KeptConnections(httpx.AsyncBaseTransport):
    """Carries requests to one server, each on a connection of its own meanwhile.

    Args:
        server: any address on it.
        most: most connections at once; further requests wait for a free one.
        connect_timeout: seconds to wait for a free one, and again to connect.
        write_timeout: seconds for sending a request. Reading has no deadline here;
            who asks knows how long an answer may take.
        encryption: how an encrypted server is believed; None: by certifi's list.
    """

    def __init__(
        self,
        server: httpx.URL,
        *,
        most: int,
        connect_timeout: float,
        write_timeout: float,
        encryption: ssl.SSLContext | None = None,
    ) -> None:
        is_encrypted = server.scheme == "https"
        self._host = server.raw_host.decode("ascii")
        self._port = server.port or (443 if is_encrypted else 80)
        # Loading the certificates takes 30 ms, which plain HTTP can spare.
        self._encryption = (
            (encryption or default_encryption()) if is_encrypted else None
        )
        self._most = most
        self._room = trio.Semaphore(most)
        self._connect_timeout = connect_timeout
        self._write_timeout = write_timeout
        self._kept: deque[tuple[float, Line]] = deque()
        """Unused ones and since when; the latest last."""

        self._is_closed = False

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        """Send a request; returns when the head of its response has come.

        Raises:
            httpx.PoolTimeout: no connection became free in time.
            httpx.ConnectTimeout: no connection was made in time.
            httpx.ConnectError: none could be made.
            httpx.WriteTimeout: the request could not be sent in time.
            httpx.ReadError: the connection broke.
            httpx.LocalProtocolError: the request's head cannot be sent.
            httpx.RemoteProtocolError: what came back is no HTTP/1.1 response.
        """
        sent = request_head(request) + await request.aread()
        await self._take_room()
        line: Line | None = None
        response = HttpResponse()
        is_answered = False
        try:
            line = await self._unused() or await self._connect()
            has_been_read = await self._send(line, sent)
            while not response.has_begun:
                response.feed(await read(line))
                response.check()
            response.may_follow &= has_been_read
            is_answered = True
            return httpx.Response(
                response.status,
                headers=response.headers,
                stream=Body(self, line, response),
            )
        finally:
            if not is_answered:
                self._room.release()
                if line is not None:
                    await trio.aclose_forcefully(line.stream)

    async def release(self, line: Line, response: HttpResponse) -> None:
        """Take a connection back, for the next request if it can carry one."""
        self._room.release()
        now = trio.current_time()
        if response.is_complete and response.may_follow and not self._is_closed:
            self._kept.append((now, line))
        else:
            await trio.aclose_forcefully(line.stream)
        while self._kept and self._kept[0][0] < now - KEPT_FOR:
            await trio.aclose_forcefully(self._kept.popleft()[1].stream)

    async def aclose(self) -> None:
        """Close what is unused now, and the others when they are released."""
        self._is_closed = True
        # Cancelled after the first, it would leave the others open.
        with trio.CancelScope(shield=True):
            while self._kept:
                await trio.aclose_forcefully(self._kept.pop()[1].stream)

    async def _take_room(self) -> None:
        try:
            self._room.acquire_nowait()
        except trio.WouldBlock:
            with trio.move_on_after(self._connect_timeout) as scope:
                await self._room.acquire()
            if scope.cancelled_caught:
                raise httpx.PoolTimeout(
                    f"none of {self._most} connections became free within "
                    f"{self._connect_timeout:g} s"
                ) from None

    async def _unused(self) -> Line | None:
        """Give a connection that is open still, as far as one can see."""
        while self._kept:
            since, line = self._kept.pop()
            is_fresh = trio.current_time() - since <= KEPT_FOR
            # Nothing can come unasked but the end.
            if is_fresh and not line.socket.is_readable():
                return line
            await trio.aclose_forcefully(line.stream)
        return None

    async def _connect(self) -> Line:
        try:
            with trio.move_on_after(self._connect_timeout):
                plain = await trio.open_tcp_stream(self._host, self._port)
                if self._encryption is None:
                    return Line(plain, plain.socket)
                return await self._encrypt(plain, self._encryption)
        except (OSError, trio.BrokenResourceError) as error:
            raise httpx.ConnectError(reason(error)) from error
        raise httpx.ConnectTimeout(f"not connected after {self._connect_timeout:g} s")

    async def _encrypt(self, plain: trio.SocketStream, context: ssl.SSLContext) -> Line:
        stream = trio.SSLStream(
            plain, context, server_hostname=self._host, https_compatible=True
        )
        is_done = False
        try:
            await stream.do_handshake()
            is_done = True
        finally:
            if not is_done:
                await trio.aclose_forcefully(plain)
        return Line(stream, plain.socket)

    async def _send(self, line: Line, sent: bytes) -> bool:
        """Send a request; gives back whether all of it was taken."""
        with trio.move_on_after(self._write_timeout) as scope:
            try:
                await line.stream.send_all(sent)
            except (trio.BrokenResourceError, trio.ClosedResourceError):
                # A server may refuse a request before it has read it all.
                return False
        if scope.cancelled_caught:
            raise httpx.WriteTimeout(f"not sent after {self._write_timeout:g} s")
        return True


class Body(httpx.AsyncByteStream):
    """The body of a response, while it comes.

    Args:
        home: where its connection goes afterwards.
        line: its connection.
        response: what has come of it.
    """

    def __init__(
        self, home: KeptConnections, line: Line, response: HttpResponse
    ) -> None:
        self._home = home
        self._line = line
        self._response = response
        self._is_open = True

    def __aiter__(self) -> Body:
        """Read the body: all that came at once is one piece."""
        return self

    async def __anext__(self) -> bytes:
        """Give the next piece.

        Raises:
            httpx.ReadError: the connection broke.
            httpx.RemoteProtocolError: the response makes no sense, or ended early.
        """
        response = self._response
        while True:
            if piece := response.take():
                return piece
            if response.is_complete:
                raise StopAsyncIteration
            response.feed(await read(self._line))

    async def aclose(self) -> None:
        """End the response, whether it has come or not; safe to repeat."""
        if self._is_open:
            self._is_open = False
            await self._home.release(self._line, self._response)


async def read(line: Line) -> bytes:
    """Wait for bytes; none are the end of the connection."""
    try:
        return bytes(await line.stream.receive_some(PIECE))
    except (trio.BrokenResourceError, trio.ClosedResourceError) as error:
        raise httpx.ReadError(reason(error)) from error


def reason(error: BaseException) -> str:
    """Say what went wrong; trio sometimes leaves that to the cause."""
    return str(error) or str(error.__cause__ or "")


def request_head(request: httpx.Request) -> bytes:
    """Write request line and headers.

    Raises:
        httpx.LocalProtocolError: there is a line break where none may be.
    """
    lines = [b"%s %s HTTP/1.1" % (request.method.encode(), request.url.raw_path)]
    lines += [b"%s: %s" % header for header in request.headers.raw]
    if UNSENDABLE.search(b" ".join(lines)):
        raise httpx.LocalProtocolError("a header holds a line break or the like")
    return b"\r\n".join([*lines, b"", b""])


def default_encryption() -> ssl.SSLContext:
    """Say what certificates are trusted: certifi's, whatever the environment says.

    Why not the environment's: a variable must not send a conversation elsewhere.
    """
    context = httpx.create_ssl_context(trust_env=False)
    context.set_alpn_protocols(["http/1.1"])
    return context
