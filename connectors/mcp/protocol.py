"""The Model Context Protocol by its own library: the only door to it.

Imported when the first server is started, in a thread (`tree.py`): the library takes a
second and 30 MB, and who has no servers needs none of it. A server is spoken to over
its pipes (`stdio.py`), or at an address (streamable HTTP), which is the operator's,
from the settings; the library follows no redirect away from it, and what comes back is
bounded here.
"""

from __future__ import annotations

import logging
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Coroutine, Mapping
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from typing import TYPE_CHECKING, TypeVar

import anyio
import httpx2
import trio
from mcp.client._probe import negotiate_auto
from mcp.client.session import ClientSession, IncomingMessage
from mcp.client.streamable_http import streamable_http_client
from mcp.client.subscriptions import SubscriptionLost, listen
from mcp.shared.exceptions import MCPError
from mcp.shared.message import SessionMessage
from mcp_types import (
    CONNECTION_CLOSED,
    REQUEST_TIMEOUT,
    CallToolRequest,
    CallToolRequestParams,
    CallToolResult,
    Implementation,
    ListToolsRequest,
    ListToolsResult,
    PaginatedRequestParams,
    ToolListChangedNotification,
)
from mcp_types.version import MODERN_PROTOCOL_VERSIONS
from pydantic import ValidationError

from actors.rules.text.cleaning import one_line
from connectors.mcp.connection import (
    LARGEST_MESSAGE,
    Gate,
    ServerAnswerError,
    ServerConnection,
    ServerEnd,
    ServerLostError,
    ToolListing,
)
from connectors.mcp.session import MOST_TOOLS, listing_of
from connectors.mcp.stdio import Item, Streams, Traffic
from connectors.sandbox.plan import SandboxError
from runtime import __version__

if TYPE_CHECKING:
    from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
    from mcp.client._transport import ReadStream, WriteStream


MOST_PAGES = 64
"""Pages of one list; a server that always has one more would be asked for ever."""

LONGEST_WORDS = 300
"""Characters of a server's own words in an error."""

IN_DOUBT = {
    (CONNECTION_CLOSED, "Connection closed"),
    (REQUEST_TIMEOUT, "Request timed out"),
}
"""What the library says itself; servers use the same numbers for anything."""

# What the library raises for a network or a server that fails it.
FAILURES = (MCPError, httpx2.HTTPError, ValidationError, OSError, RuntimeError)

# Why: the library logs each line that is no message with a traceback, so that a
# server could fill the log. We count, and say ourselves what is worth it.
for name in ("mcp", "client", "mcp.client", "httpx2"):
    logging.getLogger(name).setLevel(logging.CRITICAL)


Answer = TypeVar("Answer")
Carry = Callable[["Traffic", "ServerEnd"], "AbstractAsyncContextManager[Streams]"]
"""Begins to carry messages to and from a server."""

Answering = Coroutine[object, object, Answer]


class Changes:
    """Says that something has changed, as often as it likes, to one who waits."""

    def __init__(self) -> None:
        self._event = trio.Event()

    def note(self) -> None:
        """Say it."""
        self._event.set()

    async def wait(self) -> None:
        """Wait until it is said, since the last time."""
        await self._event.wait()
        self._event = trio.Event()


class WireConnection:
    """A server that has been spoken to, by the library."""

    def __init__(
        self, session: ClientSession, ending: ServerEnd, changes: Changes
    ) -> None:
        self._session = session
        self._changes = changes
        self.ending = ending

    async def list_tools(self) -> ToolListing:
        """Ask for all tools, page by page, up to a bound."""
        tools: list[object] = []
        cursor: str | None = None
        for _ in range(MOST_PAGES):
            page = await self._ask(self._page(cursor))
            tools += page.model_dump(mode="json", by_alias=True)["tools"]
            cursor = page.next_cursor
            if not cursor or len(tools) > 2 * MOST_TOOLS:
                break
        return listing_of(tools)

    async def call(self, name: str, arguments: dict[str, object]) -> object:
        """Have a tool run; gives the answer as JSON.

        Why not the library's `call_tool`: it checks answers by the server's own
        schema, whose patterns may take any time, and asks for the list in between.
        """
        params = CallToolRequestParams(name=name, arguments=arguments)
        request = CallToolRequest(params=params)
        answer = await self._ask(self._session.send_request(request, CallToolResult))
        return answer.model_dump(mode="json", by_alias=True, exclude_none=True)

    async def wait_changed(self) -> None:
        """Wait until the server says that it has other tools now."""
        await self._changes.wait()

    async def follow_changes(self) -> None:
        """Subscribe to changes, at a server that sends none unasked."""
        if self._session.protocol_version not in MODERN_PROTOCOL_VERSIONS:
            return
        try:
            async with listen(self._session, tools_list_changed=True) as events:
                async for _ in events:
                    self._changes.note()
        except (MCPError, SubscriptionLost, TimeoutError, RuntimeError):
            return  # a server need not offer this

    def _page(self, cursor: str | None) -> Answering[ListToolsResult]:
        params = PaginatedRequestParams(cursor=cursor) if cursor else None
        request = ListToolsRequest(params=params)
        return self._session.send_request(request, ListToolsResult)

    async def _ask(self, asking: Answering[Answer]) -> Answer:
        try:
            return await asking
        except FAILURES as error:
            raise self._translated(error) from error

    def _translated(self, error: Exception) -> ServerAnswerError | ServerLostError:
        """Make an error of ours; the server's words are its own, and cleaned."""
        if self.ending.has_come:
            return ServerLostError(self.ending.reason)
        match error:
            case MCPError(code=code, message=message):
                words = one_line(message, LONGEST_WORDS)
                text = f"the server refused: {words or 'without a word'}"
                in_doubt = (code, message) in IN_DOUBT
                return ServerAnswerError(text, in_doubt=in_doubt)
            case ValidationError():
                text = "what the server sent is no answer to that"
                return ServerAnswerError(text, in_doubt=True)
            case _:
                text = f"the connection failed ({type(error).__name__})"
                return ServerAnswerError(text, in_doubt=True)


@asynccontextmanager
async def connect(carried: Carry) -> AsyncGenerator[ServerConnection]:
    """Speak to a server by whatever carries the messages, until the block ends.

    What goes wrong after the messages are carried is the connection's `ending`.

    Raises:
        ServerLostError: its program cannot be started.
    """
    ending, changes = ServerEnd(), Changes()

    async def hear(message: IncomingMessage) -> None:
        await trio.lowlevel.checkpoint()
        if isinstance(message, ToolListChangedNotification):
            changes.note()

    traffic = Traffic(Gate(), ending)
    async with AsyncExitStack() as stack:
        try:
            streams = await stack.enter_async_context(carried(traffic, ending))
        except (OSError, SandboxError) as error:
            raise ServerLostError(f"it cannot be started: {error}") from error
        session = ClientSession(
            *streams,
            message_handler=hear,
            client_info=Implementation(name="callboard", version=__version__),
        )
        await stack.enter_async_context(session)
        connection = WireConnection(session, ending, changes)
        try:
            await negotiate_auto(session)
        except FAILURES as error:
            kind = type(error).__name__
            ending.come(
                ending.refusal
                or f"it does not speak the protocol as it should ({kind})"
            )
        async with trio.open_nursery() as nursery:
            nursery.start_soon(connection.follow_changes)
            yield connection
            nursery.cancel_scope.cancel()


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
        headers: sent with every request; may hold secrets.
        read_timeout: seconds between two pieces of an answer.
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
