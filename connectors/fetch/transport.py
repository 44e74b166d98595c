"""The guarded network as a transport for whoever brings an `httpx.AsyncClient`.

For libraries that do their own HTTP. What needs one answer takes `fetcher.py`, which
also bounds time and size; here both are the client's own business.
"""

from __future__ import annotations

from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, cast

import httpcore
import httpx
import trio

from connectors.fetch.network import GuardedNetwork, Resolve, resolve
from connectors.fetch.urls import read_url

if TYPE_CHECKING:
    import ssl
    from collections.abc import AsyncIterator, Generator

    from connectors.fetch.addresses import AddressRules

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
            ssl_context=ssl_context or httpx.create_ssl_context(trust_env=False),
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
