"""Fetches one answer from an address that a person or a model gave.

Everything that can go wrong is a `FetchError` whose text may be shown. Time, size,
redirects and connections are bounded. `GuardedNetwork` connects only to addresses that
were checked, again for every hop: a name is resolved once, every address it has is
checked, and the connection is made to one of those, not to the name. Between the check
and the connection no DNS server can change its mind; TLS and `Host` still carry the
name. A few kilobytes can unpack to gigabytes, so a compressed body is counted while it
is unpacked, and at the limit nothing more is.
"""

from __future__ import annotations

import ipaddress
import math
import ssl
import zlib
from collections.abc import (
    AsyncIterator,
    Awaitable,
    Callable,
    Generator,
    Iterable,
    Sequence,
)
from contextlib import contextmanager, suppress
from functools import cache
from typing import Any, Protocol, cast

import httpcore
import httpx
import trio

from connectors.config.tools import FetchConfig
from connectors.fetch.addresses import AddressRules, IPAddress, Target, follow, read_url
from connectors.fetch.messages import (
    Fetched,
    FetchError,
    FetchFailedError,
    FetchRefusedError,
    FetchRequest,
    FetchTimeoutError,
    FetchTooLargeError,
    Headers,
    media_type,
)
from runtime.fairness import FairLimiter

__all__ = ["FetchRequest", "Fetched", "Fetcher"]


Resolve = Callable[[str, int], Awaitable[Sequence[str]]]
"""Gives every IP address of a host, as text; raises OSError if it has none."""

MAX_ADDRESSES = 32
"""Most answers that are looked at; a name with more is refused."""

FIRST_TRIES = 3.0
"""Seconds that an address may take while there is another one to try."""


async def resolve(host: str, port: int) -> list[str]:
    """Ask the system for a host's addresses, in the order it prefers.

    Raises:
        OSError: it has none, or nobody knows now.
    """
    found = await trio.socket.getaddrinfo(host, port, type=trio.socket.SOCK_STREAM)
    return list(dict.fromkeys(str(each[4][0]) for each in found))


class GuardedNetwork(httpcore.AsyncNetworkBackend):
    """What httpcore connects by."""

    def __init__(self, rules: AddressRules, resolve: Resolve = resolve) -> None:
        self._rules = rules
        self._resolve = resolve
        # Where trio is missing, httpcore has another class of this name.
        self._network = cast("httpcore.AsyncNetworkBackend", httpcore.TrioBackend())

    async def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,  # noqa: ASYNC109  httpcore's signature
        local_address: str | None = None,
        socket_options: Iterable[Any] | None = None,
    ) -> httpcore.AsyncNetworkStream:
        """Connect to a host, if all of its addresses may be reached.

        Raises:
            FetchRefusedError: one of them may not.
            httpcore.ConnectError: there is no such host, or nobody answers.
            httpcore.ConnectTimeout: not within `timeout` seconds.
        """
        del local_address  # whichever leads there
        try:
            with trio.fail_after(math.inf if timeout is None else timeout):
                addresses = await self.checked(host, port)
                stream = await self._first_of(addresses, port, socket_options)
        except trio.TooSlowError as error:
            raise httpcore.ConnectTimeout(f"{host} took too long") from error
        return GuardedStream(stream)

    async def connect_unix_socket(
        self,
        path: str,
        timeout: float | None = None,  # noqa: ASYNC109  httpcore's signature
        socket_options: Iterable[Any] | None = None,
    ) -> httpcore.AsyncNetworkStream:
        """Refuse: there is no such thing behind a web address."""
        del timeout, socket_options
        await trio.lowlevel.checkpoint()
        raise FetchRefusedError(f"{path} is a file of this machine")

    async def sleep(self, seconds: float) -> None:
        """Wait, as httpcore asks."""
        await trio.sleep(seconds)

    async def checked(self, host: str, port: int) -> list[IPAddress]:
        """Find the addresses of a host; give them only if all may be reached.

        Raises:
            FetchRefusedError: one of them may not.
            httpcore.ConnectError: it has none.
        """
        addresses = await self._addresses(host, port)
        for address in addresses:
            why = self._rules.why_refused(host, port, address)
            if why:
                raise FetchRefusedError(
                    f"{host} is not fetched: {why}; whoever runs this can allow it "
                    "by the setting fetch.allow"
                )
        return addresses

    async def _addresses(self, host: str, port: int) -> list[IPAddress]:
        try:
            return [ipaddress.ip_address(host)]
        except ValueError:
            pass  # a name
        try:
            found = await self._resolve(host, port)
        except (OSError, UnicodeError) as error:
            raise httpcore.ConnectError(f"there is no host {host}") from error
        if not found:
            raise httpcore.ConnectError(f"{host} has no address")
        if len(found) > MAX_ADDRESSES:
            raise FetchRefusedError(f"{host} has {len(found)} addresses")
        return [ipaddress.ip_address(each) for each in found]

    async def _first_of(
        self,
        addresses: Sequence[IPAddress],
        port: int,
        socket_options: Iterable[Any] | None,
    ) -> httpcore.AsyncNetworkStream:
        *others, last = addresses
        for address in others:
            try:
                return await self._network.connect_tcp(
                    str(address), port, FIRST_TRIES, None, socket_options
                )
            except (httpcore.ConnectError, httpcore.ConnectTimeout):
                continue  # the next one may answer; the last one's error is told
        return await self._network.connect_tcp(
            str(last), port, None, None, socket_options
        )


class GuardedStream(httpcore.AsyncNetworkStream):
    """A connection that is not left open when its encryption is cut short."""

    def __init__(self, stream: httpcore.AsyncNetworkStream) -> None:
        self._stream = stream

    async def read(
        self,
        max_bytes: int,
        timeout: float | None = None,  # noqa: ASYNC109  httpcore's signature
    ) -> bytes:
        """Read what is there."""
        return await self._stream.read(max_bytes, timeout)

    async def write(
        self,
        buffer: bytes,
        timeout: float | None = None,  # noqa: ASYNC109  httpcore's signature
    ) -> None:
        """Write all of it."""
        await self._stream.write(buffer, timeout)

    async def aclose(self) -> None:
        """Close the connection."""
        await self._stream.aclose()

    async def start_tls(
        self,
        ssl_context: ssl.SSLContext,
        server_hostname: str | None = None,
        timeout: float | None = None,  # noqa: ASYNC109  httpcore's signature
    ) -> httpcore.AsyncNetworkStream:
        """Encrypt the connection; close it if that comes to nothing."""
        try:
            return await self._stream.start_tls(ssl_context, server_hostname, timeout)
        except BaseException:  # httpcore closes it after its errors, not if cancelled
            with trio.CancelScope() as at_once:
                at_once.cancel()
                await self._stream.aclose()
            raise

    def get_extra_info(self, info: str) -> Any:  # noqa: ANN401  httpcore's signature
        """Tell about the connection; see httpcore."""
        return self._stream.get_extra_info(info)


ACCEPTED = "gzip, deflate"
"""What `Accept-Encoding` says: what is unpacked here."""

MAX_MEMBERS = 64
"""Most parts that a gzip body may be put together from."""


class Unpacking(Protocol):
    """What zlib's object for unpacking has; its own name for it is private."""

    @property
    def eof(self) -> bool:
        """Whether the end of the packed bytes was seen."""
        ...

    @property
    def unconsumed_tail(self) -> bytes:
        """Packed bytes for which there was no room."""
        ...

    @property
    def unused_data(self) -> bytes:
        """Bytes after the end."""
        ...

    def decompress(self, packed: bytes, max_length: int = 0, /) -> bytes:
        """Unpack at most so many bytes."""
        ...


class Body(Protocol):
    """Takes a body piece by piece."""

    def feed(self, piece: bytes) -> None:
        """Take the next piece.

        Raises:
            FetchTooLargeError: it is above the limit.
            FetchFailedError: it is damaged.
        """
        ...

    def finish(self) -> bytes:
        """Give the whole body.

        Raises:
            FetchFailedError: its end is missing.
        """
        ...


def body_for(encoding: str, max_bytes: int) -> Body:
    """Choose how a body is read.

    Args:
        encoding: the header `Content-Encoding`; empty if there is none.
        max_bytes: most bytes that may come in, and most that may come out.

    Raises:
        FetchFailedError: a compression that was not asked for.
    """
    match encoding.strip().lower():
        case "" | "identity":
            return PlainBody(max_bytes)
        case "gzip" | "x-gzip" | "deflate":
            return PackedBody(max_bytes)
        case _:
            raise FetchFailedError("it is compressed in a way that was not asked for")


class PlainBody:
    """A body that is not compressed.

    Args:
        max_bytes: most bytes of it.
    """

    def __init__(self, max_bytes: int) -> None:
        self._max_bytes = max_bytes
        self._body = bytearray()

    def feed(self, piece: bytes) -> None:
        """Take the next piece."""
        if len(self._body) + len(piece) > self._max_bytes:
            raise too_large(self._max_bytes)
        self._body += piece

    def finish(self) -> bytes:
        """Give the whole body."""
        return bytes(self._body)


class PackedBody:
    """A body in gzip or deflate, told apart by its first bytes.

    Args:
        max_bytes: most bytes of it, packed and unpacked.
    """

    def __init__(self, max_bytes: int) -> None:
        self._max_bytes = max_bytes
        self._taken = 0
        self._body = bytearray()
        self._start = b""
        self._between = b""
        self._zlib: Unpacking | None = None
        self._members = 0

    def feed(self, piece: bytes) -> None:
        """Unpack the next piece."""
        self._taken += len(piece)
        if self._taken > self._max_bytes:
            raise too_large(self._max_bytes)
        if self._zlib is None:
            self._start += piece
            if len(self._start) < 2:
                return
            piece, self._start = self._start, b""
            self._zlib = zlib.decompressobj(window_bits(piece))
        try:
            self._unpack(piece)
        except zlib.error as error:
            raise FetchFailedError("its compressed body is damaged") from error

    def finish(self) -> bytes:
        """Give what came out."""
        if self._start or (self._zlib is not None and not self._zlib.eof):
            raise FetchFailedError("its compressed body has no end")
        return bytes(self._body)

    def _unpack(self, piece: bytes) -> None:
        while piece and self._zlib is not None:
            if self._zlib.eof:
                piece = self._between + piece
                if len(piece) < 2:
                    self._between = piece
                    return
                if not is_gzip(piece):
                    return  # padding after the end, which browsers skip as well
                self._between = b""
                self._next_member()
            room = self._max_bytes - len(self._body)
            # One byte more than there is room for tells that there is too much.
            self._body += self._zlib.decompress(piece, room + 1)
            if len(self._body) > self._max_bytes:
                raise too_large(self._max_bytes)
            piece = self._zlib.unconsumed_tail or self._zlib.unused_data

    def _next_member(self) -> None:
        self._members += 1
        if self._members >= MAX_MEMBERS:
            raise FetchFailedError("its compressed body has too many parts")
        self._zlib = zlib.decompressobj(zlib.MAX_WBITS | 16)


def is_gzip(start: bytes) -> bool:
    """Tell gzip by its first two bytes."""
    return start[:2] == b"\x1f\x8b"


def window_bits(start: bytes) -> int:
    """Tell zlib what is coming.

    Source: RFC 9110 8.4.1.2: `deflate` is zlib's format, but some servers send it
    without the two bytes in front.
    """
    if is_gzip(start):
        return zlib.MAX_WBITS | 16
    is_zlib = start[0] & 0x0F == 8 and int.from_bytes(start[:2]) % 31 == 0
    return zlib.MAX_WBITS if is_zlib else -zlib.MAX_WBITS


def too_large(max_bytes: int) -> FetchTooLargeError:
    """Make the error."""
    return FetchTooLargeError(
        f"it is above {max_bytes} bytes (the setting fetch.max_bytes)"
    )


# From the general to the particular: the last one that fits counts.
ERRORS: tuple[tuple[type[Exception], type[httpx.TransportError]], ...] = (
    (httpcore.TimeoutException, httpx.TimeoutException),
    (httpcore.ConnectTimeout, httpx.ConnectTimeout),
    (httpcore.ReadTimeout, httpx.ReadTimeout),
    (httpcore.WriteTimeout, httpx.WriteTimeout),
    (httpcore.PoolTimeout, httpx.PoolTimeout),
    (httpcore.NetworkError, httpx.NetworkError),
    (httpcore.ConnectError, httpx.ConnectError),
    (httpcore.ReadError, httpx.ReadError),
    (httpcore.WriteError, httpx.WriteError),
    (httpcore.ProtocolError, httpx.ProtocolError),
    (httpcore.LocalProtocolError, httpx.LocalProtocolError),
    (httpcore.RemoteProtocolError, httpx.RemoteProtocolError),
)
CAUGHT: tuple[type[Exception], ...] = tuple(theirs for theirs, _ in ERRORS)


@contextmanager
def translated() -> Generator[None]:
    """Raise httpcore's errors as httpx's."""
    try:
        yield
    except CAUGHT as error:
        fitting = [ours for theirs, ours in ERRORS if isinstance(error, theirs)]
        raise fitting[-1](str(error) or reason_of(error)) from error


def reason_of(error: BaseException) -> str:
    """Find the first words in the chain of errors beneath one without any."""
    cause = error.__cause__ or error.__context__
    while cause is not None:
        if str(cause):
            return str(cause)
        cause = cause.__cause__ or cause.__context__
    return type(error).__name__


async def abandon(pieces: AsyncIterator[bytes]) -> None:
    """Unwind a response that was not read to its end.

    Why by a cancelled read: five generators are stacked on each other, and closing the
    outermost leaves the others to the garbage collector, of which trio warns.
    `Cancelled` passes through all of them.
    """
    # What a broken connection says now is no news.
    with suppress(httpx.HTTPError), trio.CancelScope() as scope:
        scope.cancel()
        async for _ in pieces:
            pass


@cache
def usual_trust() -> ssl.SSLContext:
    """Trust certifi's certificates; read once, as that takes 20 ms."""
    return httpx.create_ssl_context(trust_env=False)


class GuardedTransport(httpx.AsyncBaseTransport):
    """Carries requests to addresses that `rules` allow, and to no others.

    No proxies, nothing from the environment, no cookies, no redirects: a client on
    top that follows redirects has each hop checked, because each comes here.

    Args:
        rules: who may be connected to.
        ssl_context: how servers are known; None trusts what certifi does.
        max_connections: most connections at once; further requests wait.
        keepalive: seconds that a connection may wait for its next request; 0: none.
    """

    def __init__(
        self,
        rules: AddressRules,
        *,
        resolve: Resolve = resolve,
        ssl_context: ssl.SSLContext | None = None,
        max_connections: int = 16,
        keepalive: float = 0.0,
    ) -> None:
        self._pool = httpcore.AsyncConnectionPool(
            ssl_context=ssl_context or usual_trust(),
            max_connections=max_connections,
            max_keepalive_connections=None if keepalive else 0,
            keepalive_expiry=keepalive or None,
            network_backend=GuardedNetwork(rules, resolve),
        )

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        """Send a request; see httpx.

        Raises:
            FetchRefusedError: its address is not allowed.
            httpx.TransportError: the network, or the other side.
        """
        url = request.url
        # Only to refuse: what is connected to is checked again, underneath.
        target = read_url(str(url))
        if not isinstance(request.stream, httpx.AsyncByteStream):
            raise TypeError("an asynchronous client gave a body that is not")
        sent = httpcore.Request(
            method=request.method,
            url=httpcore.URL(
                scheme=target.scheme,
                host=target.host,
                port=target.port,
                target=url.raw_path,
            ),
            headers=request.headers.raw,
            content=request.stream,
            extensions={
                name: request.extensions[name]
                for name in ("timeout",)
                if name in request.extensions
            },
        )
        with translated():
            response = await self._pool.handle_async_request(sent)
        return httpx.Response(
            response.status,
            headers=response.headers,
            stream=FetchedBody(response),
            extensions=cast("dict[str, object]", response.extensions),
        )

    async def aclose(self) -> None:
        """Close the connections."""
        await self._pool.aclose()


class FetchedBody(httpx.AsyncByteStream):
    """A response's body as it comes in."""

    def __init__(self, response: httpcore.Response) -> None:
        self._response = response

    async def __aiter__(self) -> AsyncIterator[bytes]:
        """Read it, piece by piece."""
        with translated():
            async for piece in self._response.aiter_stream():
                yield piece

    async def aclose(self) -> None:
        """End the response."""
        with translated():
            await self._response.aclose()


AGENT = "callboard"
"""What `User-Agent` says."""

MOST_REDIRECTS = 3
"""Redirects that are followed; each is checked like the first address."""

REDIRECTS = frozenset({301, 302, 303, 307, 308})

PUBLIC_HEADERS = frozenset({"accept", "accept-language", "user-agent"})
"""What goes along to another site; everything else may be a key."""


class Fetcher:
    """Fetches what people and models ask for; the only way out for that.

    Args:
        doors: hosts with ports that settings name elsewhere, as in `[fetch] allow`.
        ssl_context: how servers are known; None trusts what certifi does.

    Raises:
        ValueError: an entry of `allow` is wrong.
    """

    def __init__(
        self,
        config: FetchConfig,
        *,
        doors: tuple[str, ...] = (),
        resolve: Resolve = resolve,
        ssl_context: ssl.SSLContext | None = None,
    ) -> None:
        self._config = config
        self._rules = AddressRules((*config.allow, *doors))
        self._resolve = resolve
        self._ssl_context = ssl_context
        # Why: loading the certificates takes 30 ms, which a start can spare.
        self._transport: GuardedTransport | None = None
        self._at_once = FairLimiter(config.max_at_once)

    async def fetch(self, request: FetchRequest) -> Fetched:
        """Fetch one answer; an error status is an answer too.

        Raises:
            FetchRefusedError: not allowed, above a limit, or no end of redirects.
            FetchFailedError: the network, or the other side.
            FetchTimeoutError: it took too long, waiting for a free place included.
        """
        config = self._config
        seconds = min(request.timeout or config.timeout, config.timeout)
        target = read_url(request.url)
        try:
            with trio.fail_after(seconds):
                async with self._at_once.place(request.owner):
                    return await self._follow(request, target)
        except trio.TooSlowError as error:
            raise FetchTimeoutError(
                f"{target.host} was not done after {seconds:g} s"
            ) from error

    async def aclose(self) -> None:
        """Close what is open."""
        if self._transport is not None:
            await self._transport.aclose()

    async def _follow(self, request: FetchRequest, target: Target) -> Fetched:
        headers = request.headers
        for _ in range(MOST_REDIRECTS + 1):
            answer = await self._ask(request, target, headers)
            if isinstance(answer, Fetched):
                return answer
            if request.method != "GET":
                raise FetchRefusedError(
                    f"{target.host} redirects to {answer.origin}; only what sends "
                    "nothing is redirected"
                )
            if answer.origin != target.origin:
                headers = tuple(h for h in headers if h[0].lower() in PUBLIC_HEADERS)
            target = answer
        raise FetchRefusedError(f"{target.host}: above {MOST_REDIRECTS} redirects")

    async def _ask(
        self, request: FetchRequest, target: Target, headers: Headers
    ) -> Fetched | Target:
        """Ask one site; a `Target` is where it redirects to."""
        if self._transport is None:
            self._transport = GuardedTransport(
                self._rules,
                resolve=self._resolve,
                ssl_context=self._ssl_context,
                max_connections=self._config.max_at_once,
            )
        sent = httpx.Request(
            request.method,
            httpx.URL(target.url),
            headers=[*base_headers(headers), *headers],
            content=request.body if request.method == "POST" else None,
        )
        try:
            response = await self._transport.handle_async_request(sent)
            try:
                location = response.headers.get("location")
                if response.status_code in REDIRECTS and location:
                    return follow(target, location)
                return await self._read(response, request, target)
            finally:
                await response.aclose()
        except httpx.HTTPError as error:
            raise FetchFailedError(f"{target.host}: {said(error)}") from error

    async def _read(
        self, response: httpx.Response, request: FetchRequest, target: Target
    ) -> Fetched:
        limit = min(request.max_bytes or self._config.max_bytes, self._config.max_bytes)
        length = response.headers.get("content-length", "")
        pieces = response.aiter_raw()
        try:
            if length.isdecimal() and int(length) > limit:
                raise too_large(limit)
            body = body_for(response.headers.get("content-encoding", ""), limit)
            async for piece in pieces:
                body.feed(piece)
            whole = body.finish()
        except FetchError as error:
            if request.wants_body:
                raise type(error)(f"{target.host}: {error}") from error
            whole = b""
        finally:
            await abandon(pieces)
        declared = response.headers.get("content-type", "")
        return Fetched(
            url=target.url,
            status=response.status_code,
            headers=dict(response.headers),
            body=whole,
            media_type=media_type(whole, declared),
        )


def base_headers(given: Headers) -> list[tuple[str, str]]:
    """Make the headers that every request has, but for those that are given."""
    names = {name.lower() for name, _ in given}
    base = (("User-Agent", AGENT), ("Accept", "*/*"))
    chosen = [each for each in base if each[0].lower() not in names]
    return [*chosen, ("Accept-Encoding", ACCEPTED)]


def said(error: httpx.HTTPError) -> str:
    """Put an error of the connection into one short line."""
    text = " ".join(str(error).split())
    shown = "".join(c if c.isprintable() else "?" for c in text)
    return shown[:200] or type(error).__name__
