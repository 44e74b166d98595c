"""HTTP/1.1 connections to one server, kept open between requests.

An `httpx` transport: requests, responses, errors and the seam for tests are httpx's,
sockets and encryption are trio's, and llhttp (httptools), the parser of Node and of our
own server, reads the responses, sans-I/O. Why not httpx's own: with its pool, its locks
and h11, a model call took four times the processor time, a quarter of what a whole
message took; h11 alone took a third of a call's. It does what a model call needs and no
more: no proxies, no HTTP/2, no redirects.

Where an account's requests go and what every one of them carries (headers, keys,
certificates) is worked out at the end of this file.
"""

from __future__ import annotations

import base64
import re
from collections import deque
from functools import cache, lru_cache
from typing import TYPE_CHECKING, NamedTuple

import httptools
import httpx
import msgspec
import trio

from connectors.config.models import (
    ConnectionConfig,
    HttpEmbedderConfig,
    HttpModelConfig,
    merged,
)
from runtime.errors import SettingsError

if TYPE_CHECKING:
    import ssl

    from connectors.config.tools import SpeakerConfig, TranscriberConfig
    from connectors.models.format import Format


MAX_SILENT_BYTES = 100 * 1024
"""Most bytes, a piece aside, that may come without a byte of the body: heads, lines
around chunks, trailers. As httpcore's bound on a head."""


class HttpResponse:
    """One response in the making.

    What has come before a mistake is kept: an answer may be whole by then.
    """

    def __init__(self) -> None:
        self.status = 0
        self.headers: list[tuple[bytes, bytes]] = []
        self.has_begun = False
        """Whether the head has come, so that `status` and `headers` are known."""

        self.is_complete = False
        self.may_follow = False
        """Whether the connection may carry another request once this is complete."""

        self._parser: httptools.HttpResponseParser | None = (
            httptools.HttpResponseParser(self)
        )
        self._body: list[bytes] = []
        self._silent_bytes = 0
        self._ends_with_connection = True
        self._mistake: httpx.RemoteProtocolError | None = None

    def feed(self, piece: bytes) -> None:
        """Take what came next; no bytes: the connection has ended.

        A mistake is raised by `take` and by `check`.
        """
        if self._parser is None:
            return
        if piece:
            self._parse(self._parser, piece)
        else:
            self._end()
        if self.is_complete or self._mistake is not None:
            # It knows us, we know it: let go, neither waits for the collector.
            self._parser = None

    def _parse(self, parser: httptools.HttpResponseParser, piece: bytes) -> None:
        bodies = len(self._body)
        try:
            parser.feed_data(piece)
        except (httptools.HttpParserError, httptools.HttpParserUpgrade) as error:
            self.may_follow = False
            self._fail(f"this is not HTTP/1.1: {error}")
        if len(self._body) > bodies:
            self._silent_bytes = 0
            return
        self._silent_bytes += len(piece)
        if self._silent_bytes > MAX_SILENT_BYTES:
            self._fail(f"more than {MAX_SILENT_BYTES} bytes without any of the body")

    def take(self) -> bytes:
        """Give what has come of the body since last asked; often nothing.

        Raises:
            httpx.RemoteProtocolError: nothing more will come that makes sense.
        """
        if self._body:
            body = b"".join(self._body)
            self._body.clear()
            return body
        self.check()
        return b""

    def check(self) -> None:
        """Raise the mistake that was found, if one was.

        Raises:
            httpx.RemoteProtocolError: what came is no response, or half of one.
        """
        if self._mistake is not None:
            raise self._mistake

    def on_message_begin(self) -> None:
        """See httptools: a response begins."""
        # After a complete one: nobody has asked for it.
        if self.is_complete:
            self.may_follow = False

    def on_header(self, name: bytes, value: bytes) -> None:
        """See httptools: one header, or one trailer."""
        if not self.has_begun:
            self.headers.append((name, value))

    def on_headers_complete(self) -> None:
        """See httptools: the head is complete."""
        if self.has_begun or self._parser is None:
            return
        self.status = self._parser.get_status_code()
        if self.status < httpx.codes.OK:
            # Source: RFC 9110, 15.2: any number of them come before the response.
            self.headers.clear()
            return
        self.has_begun = True
        self.may_follow = self._parser.should_keep_alive()
        lengths = {b"content-length", b"transfer-encoding"}
        self._ends_with_connection = not any(
            name.lower() in lengths for name, _ in self.headers
        )

    def on_body(self, body: bytes) -> None:
        """See httptools: a piece of the body."""
        if not self.is_complete:
            self._body.append(body)

    def on_message_complete(self) -> None:
        """See httptools: the response is complete, or it was an interim one."""
        self.is_complete = self.has_begun

    def _end(self) -> None:
        self.may_follow = False
        if not self.has_begun:
            self._fail("the server closed the connection without a response")
        elif self._ends_with_connection:
            self.is_complete = True
        else:
            self._fail("the server closed the connection before the end of the body")

    def _fail(self, why: str) -> None:
        if not self.is_complete and self._mistake is None:
            self._mistake = httpx.RemoteProtocolError(why)


KEPT_FOR = 5.0
"""Seconds an unused connection is kept; as httpx. Servers keep theirs longer."""

PIECE = 64 * 1024
"""Most bytes read at once."""

UNSENDABLE = re.compile(rb"[^\t\x20-\x7e\x80-\xff]")
"""What would end a line of a request's head early."""


class OpenConnection(NamedTuple):
    """One connection."""

    stream: trio.abc.Stream
    socket: trio.socket.SocketType
    """Below the encryption, if there is any."""


class KeptConnections(httpx.AsyncBaseTransport):
    """Carries requests to one server, each on a connection of its own meanwhile.

    Args:
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
        self._kept: deque[tuple[float, OpenConnection]] = deque()
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
        line: OpenConnection | None = None
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
                stream=ResponseBody(self, line, response),
            )
        finally:
            if not is_answered:
                self._room.release()
                if line is not None:
                    await trio.aclose_forcefully(line.stream)

    async def release(self, line: OpenConnection, response: HttpResponse) -> None:
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

    async def _unused(self) -> OpenConnection | None:
        """Give a connection that is open still, as far as one can see."""
        while self._kept:
            since, line = self._kept.pop()
            is_fresh = trio.current_time() - since <= KEPT_FOR
            # Nothing can come unasked but the end.
            if is_fresh and not line.socket.is_readable():
                return line
            await trio.aclose_forcefully(line.stream)
        return None

    async def _connect(self) -> OpenConnection:
        try:
            with trio.move_on_after(self._connect_timeout):
                plain = await trio.open_tcp_stream(self._host, self._port)
                if self._encryption is None:
                    return OpenConnection(plain, plain.socket)
                return await self._encrypt(plain, self._encryption)
        except (OSError, trio.BrokenResourceError) as error:
            raise httpx.ConnectError(reason(error)) from error
        raise httpx.ConnectTimeout(f"not connected after {self._connect_timeout:g} s")

    async def _encrypt(
        self, plain: trio.SocketStream, context: ssl.SSLContext
    ) -> OpenConnection:
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
        return OpenConnection(stream, plain.socket)

    async def _send(self, line: OpenConnection, sent: bytes) -> bool:
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


class ResponseBody(httpx.AsyncByteStream):
    """The body of a response, while it comes."""

    def __init__(
        self, home: KeptConnections, line: OpenConnection, response: HttpResponse
    ) -> None:
        self._home = home
        self._line = line
        self._response = response
        self._is_open = True

    def __aiter__(self) -> ResponseBody:
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


async def read(line: OpenConnection) -> bytes:
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


@cache
def default_encryption() -> ssl.SSLContext:
    """Say what certificates are trusted: certifi's, whatever the environment says.

    Read once, as that takes 20 ms. Why not the environment's: a variable must not send
    a conversation elsewhere.
    """
    context = httpx.create_ssl_context(trust_env=False)
    context.set_alpn_protocols(["http/1.1"])
    return context


EXAMPLE = "https://api.openai.com/v1"


def check_address(base_url: str) -> httpx.URL:
    """Read the address that an account's requests begin with.

    Raises:
        SettingsError: `base_url` is no HTTP address.
    """
    try:
        url = httpx.URL(base_url.strip())
    except httpx.InvalidURL as error:
        raise SettingsError(f"base_url is no address: {error}") from error
    if url.scheme not in {"http", "https"} or not url.host:
        raise SettingsError(
            "base_url must start with http:// or https:// and name a host, as in "
            f"{EXAMPLE}"
        )
    return url


VERSION = re.compile(r"/v[0-9][a-z0-9]*(?=/|$)")
ENDPOINT = re.compile(
    r"/((chat/)?completions|responses|messages|models|api/(chat|tags))$"
)


def likely_base(
    config: ConnectionConfig | HttpEmbedderConfig | SpeakerConfig | TranscriberConfig,
) -> str:
    """Return the base_url that was probably meant, where nothing is under this one.

    It has the version that this kind of provider documents (`/v1`), or none where that
    has none, and no endpoint at its end. Empty: it looks right as it is. Without a
    password, and without what stands behind its `?`.
    """
    given = httpx.URL(config.base_url.strip()).copy_with(userinfo=b"", query=None)
    defaults = {each.name: each.default for each in msgspec.structs.fields(config)}
    usual = httpx.URL(str(defaults["base_url"])).path.rstrip("/")
    path = ENDPOINT.sub("", given.path.rstrip("/"))
    if not usual:
        path = VERSION.sub("", path)
    elif not VERSION.search(path):
        path += usual
    is_same = path == given.path.rstrip("/")
    return "" if is_same else str(given.copy_with(path=path or "/")).rstrip("/")


@lru_cache(maxsize=256)
def address(base_url: str, path: str) -> httpx.URL:
    """Find where to ask; kept, because parsing costs as much as a small answer.

    Args:
        base_url: of the account; what stands behind its `?` goes with each request.
    """
    base, _, query = base_url.strip().partition("?")
    url = base.rstrip("/") + path
    if not query:
        return httpx.URL(url)
    return httpx.URL(f"{url}{'&' if '?' in path else '?'}{query}")


def sendable_key(config: HttpModelConfig) -> str:
    """Strip the space around a key, which files end with; empty if there is none.

    Raises:
        SettingsError: it holds characters that no header may carry.
    """
    return sendable("api_key", config.api_key.reveal()) if config.api_key else ""


def sendable(name: str, value: str) -> str:
    """Strip the space around what goes into a header.

    Raises:
        SettingsError: it holds characters that no header may carry.
    """
    value = value.strip()
    if not (value.isascii() and value.isprintable()):
        raise SettingsError(
            f"{name} holds characters that cannot be sent; copy it again"
        )
    return value


def with_extra(body: bytes, extra: bytes) -> bytes:
    """Merge further parameters into a request's body; both are JSON objects."""
    table = dict[str, object]
    own = msgspec.json.decode(body, type=table)
    return msgspec.json.encode(merged(own, msgspec.json.decode(extra, type=table)))


def request_headers(
    config: HttpModelConfig, url: httpx.URL, key: str, form: Format
) -> dict[str, str]:
    """Make the headers of every request; those of the settings count most.

    Raises:
        SettingsError: one holds characters that cannot be sent.
    """
    headers = {
        "Host": url.netloc.decode("ascii"),
        "Accept": form.stream_type if config.stream else "application/json",
        "Accept-Encoding": "identity",
        "Content-Type": "application/json",
        "User-Agent": "callboard",
    } | form.headers(key)
    if url.userinfo:
        # Some servers at home stand behind a name and a password in their address.
        word = base64.b64encode(f"{url.username}:{url.password}".encode()).decode()
        headers |= {"Authorization": f"Basic {word}"}
    return headers | {n: sendable(n, x.reveal()) for n, x in config.headers.items()}
