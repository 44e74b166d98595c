"""Fetches one answer from an address that a person or a model gave.

Everything that can go wrong is a `FetchError` whose text may be shown. Time, size,
redirects and connections are bounded; where it may connect to is decided beneath, in
`network.py`, for every hop anew.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

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
from connectors.fetch.network import Resolve, resolve
from connectors.fetch.transport import GuardedTransport, abandon
from connectors.fetch.urls import Target, follow, read_url
from runtime.fairness import FairLimiter

if TYPE_CHECKING:
    import ssl

    from connectors.config.tools import FetchConfig
    from connectors.fetch.messages import Headers

AGENT = "callboard"
"""What `User-Agent` says."""

REDIRECTS = frozenset({301, 302, 303, 307, 308})

PUBLIC_HEADERS = frozenset({"accept", "accept-language", "user-agent"})
"""What goes along to another site; everything else may be a key."""

__all__ = ["FetchRequest", "Fetched", "Fetcher"]


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
        for _ in range(self._config.max_redirects + 1):
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
        raise FetchRefusedError(
            f"{target.host}: above {self._config.max_redirects} redirects"
        )

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
