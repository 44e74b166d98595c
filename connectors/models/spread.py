"""Spreads one account's requests over several small connection pools.

httpx's pool looks at every connection it has for every request, idle ones with a
system call each: at 64 answers at once that was most of what a model call cost.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import httpx

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Sequence

# Chosen: a pool of eight costs no more than one connection does.
POOL = 8


def spread(max_connections: int, *, is_encrypted: bool) -> Spread:
    """Make the pools of one account.

    Args:
        max_connections: most connections of all pools together, rounded up to
            whole pools.
        is_encrypted: False saves loading the certificates, which takes 30 ms.
    """
    # Proxies and certificates come from the settings or not at all: the environment
    # must not send a conversation elsewhere.
    verify = httpx.create_ssl_context(trust_env=False) if is_encrypted else False
    size = min(POOL, max_connections)
    limits = httpx.Limits(max_connections=size)
    return Spread(
        [
            httpx.AsyncHTTPTransport(verify=verify, trust_env=False, limits=limits)
            for _ in range(math.ceil(max_connections / size))
        ]
    )


class Spread(httpx.AsyncBaseTransport):
    """Gives each request to the pool that has the fewest under way.

    Args:
        pools: at least one; the first are preferred, so that few requests use few
            connections.
    """

    def __init__(self, pools: Sequence[httpx.AsyncBaseTransport]) -> None:
        self._pools = tuple(pools)
        self._busy = [0] * len(self._pools)

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        """Send a request; see httpx."""
        number = min(range(len(self._pools)), key=self._busy.__getitem__)
        self._busy[number] += 1
        is_answered = False
        try:
            response = await self._pools[number].handle_async_request(request)
            is_answered = True
        finally:
            if not is_answered:
                self._release(number)
        response.stream = Counted(response.stream, lambda: self._release(number))
        return response

    async def aclose(self) -> None:
        """Close all pools."""
        for pool in self._pools:
            await pool.aclose()

    def _release(self, number: int) -> None:
        self._busy[number] -= 1


class Counted(httpx.AsyncByteStream):
    """A response's body that says when it is closed.

    Args:
        body: the body as the pool gave it.
        on_close: called once.
    """

    def __init__(
        self,
        body: httpx.SyncByteStream | httpx.AsyncByteStream,
        on_close: Callable[[], None],
    ) -> None:
        if not isinstance(body, httpx.AsyncByteStream):
            raise TypeError("an asynchronous pool gave a body that is not")
        self._body = body
        self._on_close = on_close
        self._is_open = True

    def __aiter__(self) -> AsyncIterator[bytes]:
        """Read the body."""
        # Not another generator: each costs time for every piece.
        return aiter(self._body)

    async def aclose(self) -> None:
        """End the response."""
        if self._is_open:
            self._is_open = False
            self._on_close()
        await self._body.aclose()
