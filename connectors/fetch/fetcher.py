"""Fetches one answer from an address that a person or a model gave.

Everything that can go wrong is a `FetchError` whose text may be shown. Time, size,
redirects and connections are bounded. `network.py` decides where it may connect to,
again for every hop.
"""

from __future__ import annotations

from contextlib import contextmanager, suppress
from functools import cache
from typing import TYPE_CHECKING, cast

import httpcore
import httpx
import trio

from connectors.fetch.addresses import AddressRules
from connectors.fetch.decompress import ACCEPTED, body_for, too_large
from connectors.fetch.media_types import media_type
from connectors.fetch.messages import (
    Fetched,
    FetchError,
    FetchFailedError,
    FetchRefusedError,
    FetchRequest,
    FetchTimeoutError,
)
from connectors.fetch.network import GuardedNetwork, Resolve, resolve
from connectors.fetch.urls import Target, follow, read_url
from runtime.fairness import FairLimiter

if TYPE_CHECKING:
    import ssl
    from collections.abc import AsyncIterator, Generator

    from connectors.config.tools import FetchConfig
    from connectors.fetch.messages import Headers

__all__ = ["FetchRequest", "Fetched", "Fetcher"]

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
        resolve: finds a name's addresses.
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
            stream=Body(response),
            extensions=cast("dict[str, object]", response.extensions),
        )

    async def aclose(self) -> None:
        """Close the connections."""
        await self._pool.aclose()


class Body(httpx.AsyncByteStream):
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
        config: what is allowed, and how much.
        doors: hosts with ports that settings name elsewhere, as in `[fetch] allow`.
        resolve: finds a name's addresses.
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
