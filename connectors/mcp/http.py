"""A server at an address (streamable HTTP), as streams of the protocol's library.

Loaded only with `protocol.py`. The address is the operator's, from the settings; the
library follows no redirect away from it, and what comes back is bounded here.
"""

from __future__ import annotations

from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

import anyio
import httpx2
import trio
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.message import SessionMessage

from connectors.mcp.limits import LARGEST_MESSAGE
from connectors.mcp.messages import ServerLostError
from connectors.mcp.stdio import Item, Streams, Traffic

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, AsyncIterator, Mapping

    from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
    from mcp.client._transport import ReadStream, WriteStream

    from connectors.mcp.connection import ServerEnd

CONNECT_TIMEOUT = 10.0
"""Seconds until a connection stands, encryption included."""

EVENT_STREAM = "text/event-stream"


class BoundedBody(httpx2.AsyncByteStream):
    """A response's body that may not be longer than one message."""

    def __init__(self, body: httpx2.AsyncByteStream) -> None:
        self._body = body

    async def __aiter__(self) -> AsyncIterator[bytes]:
        """Read it, piece by piece."""
        left = LARGEST_MESSAGE
        async for piece in self._body:
            left -= len(piece)
            if left < 0:
                raise httpx2.ReadError(f"more than {LARGEST_MESSAGE} bytes in one body")
            yield piece

    async def aclose(self) -> None:
        """Close it."""
        await self._body.aclose()


REFUSALS = {
    401: "it asks for a key (HTTP 401); set one in headers (OAuth is not spoken)",
    403: "it does not let us in (HTTP 403)",
}


class BoundedTransport(httpx2.AsyncHTTPTransport):
    """HTTP with bounded bodies; of streams, the library bounds each event.

    Args:
        ending: is told what the server refused last.
    """

    def __init__(self, ending: ServerEnd) -> None:
        super().__init__()
        self._ending = ending

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        """Send a request; see httpx2."""
        response = await super().handle_async_request(request)
        status = response.status_code
        refusal = REFUSALS.get(status, f"it answered HTTP {status}")
        self._ending.refusal = "" if response.is_success else refusal
        kind = response.headers.get("content-type", "")
        if not kind.lower().startswith(EVENT_STREAM) and isinstance(
            response.stream, httpx2.AsyncByteStream
        ):
            response.stream = BoundedBody(response.stream)
        return response


@asynccontextmanager
async def streamed(
    url: str,
    headers: Mapping[str, str],
    read_timeout: float,
    traffic: Traffic,
    ending: ServerEnd,
) -> AsyncGenerator[Streams]:
    """Carry messages to and from an address until the block ends.

    Args:
        url: from the settings.
        headers: sent with every request; may hold secrets.
        read_timeout: seconds between two pieces of an answer.
        traffic: looks at what comes.
        ending: comes when the server sends what no server may.
    """
    client = httpx2.AsyncClient(
        headers=dict(headers),
        timeout=httpx2.Timeout(CONNECT_TIMEOUT, read=read_timeout),
        transport=BoundedTransport(ending),
        trust_env=False,
    )
    to_session, incoming = anyio.create_memory_object_stream[Item](0)
    outgoing, to_server = anyio.create_memory_object_stream[Item](0)
    carried = streamable_http_client(
        url, http_client=client, max_sse_event_size=LARGEST_MESSAGE
    )
    try:
        async with (
            client,
            to_session,
            incoming,
            outgoing,
            to_server,
            carried as (received, sent),
            trio.open_nursery() as nursery,
        ):
            nursery.start_soon(hear, received, to_session, traffic, ending)
            nursery.start_soon(say, to_server, sent, traffic, ending)
            yield incoming, outgoing
            nursery.cancel_scope.cancel()
    except BaseExceptionGroup as group:
        # Why: the library lets a network's failure end all that runs beside it.
        failures, others = group.split(httpx2.HTTPError)
        if failures is None or others is not None:
            raise
        kind = type(first_of(failures)).__name__
        raise ServerLostError(f"the connection failed ({kind})") from group


def first_of(group: BaseExceptionGroup[httpx2.HTTPError]) -> httpx2.HTTPError:
    """Give the first error inside a group, however deep."""
    inner = group.exceptions[0]
    return first_of(inner) if isinstance(inner, BaseExceptionGroup) else inner


async def hear(
    received: ReadStream[Item],
    to_session: MemoryObjectSendStream[Item],
    traffic: Traffic,
    ending: ServerEnd,
) -> None:
    """Pass on what comes, until it ends or is what must not come."""
    async with to_session:
        try:
            async for item in received:
                if traffic.lets_in(item):
                    await to_session.send(item)
        except ServerLostError as error:
            ending.come(str(error))
        except (anyio.BrokenResourceError, anyio.ClosedResourceError):
            return  # nobody listens any more
        # Why inside: the session learns of the end by this stream's, and asks why.
        ending.come("it closed the connection")


async def say(
    to_server: MemoryObjectReceiveStream[Item],
    sent: WriteStream[SessionMessage],
    traffic: Traffic,
    ending: ServerEnd,
) -> None:
    """Pass on what the session says."""
    try:
        async for item in to_server:
            if isinstance(item, SessionMessage):
                traffic.note_sent(item)
                await sent.send(item)
    except (anyio.BrokenResourceError, anyio.ClosedResourceError):
        ending.come("it closed the connection")
