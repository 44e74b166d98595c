"""One HTTP connection, with bounds that uvicorn does not set.

uvicorn's httptools protocol accepts headers of any length and speed, and waits for
ever for a client that does not read. This subclass ends such connections, and
answers requests that are not HTTP in the same error shape as everything else.

Of too many connections, the one that has waited longest for its client's request makes
room for the newest. So nobody who only holds connections open keeps others out; if all
are at work, only probes of the server's health find a place.
"""

from __future__ import annotations

from http import HTTPStatus
from typing import TYPE_CHECKING, Any, ClassVar, cast

import msgspec
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from connectors.web.errors import ApiError, error_body, log_refusal, refuse

if TYPE_CHECKING:
    import asyncio

    from starlette.types import ASGIApp, Receive, Scope, Send
    from uvicorn.protocols.http.httptools_impl import RequestResponseCycle


class ConnectionLimits(msgspec.Struct, frozen=True):
    """Limits of one connection."""

    max_connections: int
    request_timeout: float
    """Seconds from the first byte of a request to the last byte of its body."""

    stall_timeout: float
    """Seconds a client may leave an answer unread once all buffers are full."""

    max_head_bytes: int = 32_768
    """Longest request line with headers. Chosen: four times nginx's default."""


PROBES = frozenset({b"/healthz", b"/readyz", b"/metrics"})
"""Paths that are answered also while all connections are at work."""

FOR_PROBES = 16
"""Connections that are kept for them. Chosen: more than look at one server."""


class HttpConnection(HttpToolsProtocol):
    """A connection that ends when its client takes too long or sends too much."""

    limits: ClassVar[ConnectionLimits]

    waits_since = 0.0
    """When this side began to wait for a request, on the loop's clock."""

    _deadline: asyncio.TimerHandle | None = None
    _stall: asyncio.TimerHandle | None = None
    _is_in_head = True
    _head_bytes = 0

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Accept a connection; of too many, one that asks nothing makes room."""
        super().connection_made(transport)
        self.waits_since = self.loop.time()
        if not self._has_room():
            if len(self.connections) > self.limits.max_connections + FOR_PROBES:
                self._end(self._full())
                return
            self.app = cast("Any", self._answer_probe)
        self._set_deadline()

    @property
    def has_asked(self) -> bool:
        """Whether a request has begun that is not answered yet."""
        # Why a cast: uvicorn's type hides that there is none before the first request.
        cycle = cast("RequestResponseCycle | None", self.cycle)
        return cycle is not None and not cycle.response_complete

    def let_go(self) -> None:
        """Make room for another connection."""
        self.connections.discard(self)
        self._end(self._full())

    def _has_room(self) -> bool:
        """Whether there is room, if need be that of who has waited longest to ask."""
        if len(self.connections) <= self.limits.max_connections:
            return True
        # Why a cast: uvicorn counts WebSockets among them.
        others = cast("set[object]", self.connections) - {self}
        found = [x for x in others if isinstance(x, HttpConnection) and x.is_waiting]
        if not found:
            return False
        min(found, key=HttpConnection.patience).let_go()
        return True

    def patience(self) -> tuple[bool, float]:
        """Sort connections by who has to make room first."""
        return self.has_asked, self.waits_since

    @property
    def is_waiting(self) -> bool:
        """Whether it is the client's turn: its request, or the rest, is to come."""
        return not self.has_asked or self.cycle.more_body

    async def _answer_probe(self, scope: Scope, receive: Receive, send: Send) -> None:
        is_taken = scope["raw_path"] in PROBES or self._has_room()
        # Why a cast: uvicorn names the types of ASGI otherwise.
        usual = cast("ASGIApp", self.config.loaded_app)
        app = usual if is_taken else refuse(scope, self._full())
        await app(scope, receive, send)

    def _full(self) -> ApiError:
        text = f"{self.limits.max_connections} connections are open; try again"
        return ApiError(503, text, code="overloaded", retry_after=1.0)

    def connection_lost(self, exc: Exception | None) -> None:
        """Cancel both timers."""
        self._clear_deadline()
        self._clear_stall()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Count the bytes that come before the headers are complete."""
        super().data_received(data)
        if self._is_in_head and not self.transport.is_closing():
            self._head_bytes += len(data)
            if self._head_bytes > self.limits.max_head_bytes:
                text = f"headers longer than {self.limits.max_head_bytes} bytes"
                self._end(ApiError(431, text, code="headers_too_long"))

    def on_message_begin(self) -> None:
        """Start the timer of a request."""
        self._is_in_head, self._head_bytes = True, 0
        self._set_deadline()
        super().on_message_begin()

    def on_headers_complete(self) -> None:
        """Stop counting bytes: the body has its own limit."""
        self._is_in_head = False
        super().on_headers_complete()

    def on_message_complete(self) -> None:
        """Cancel the timer: the request is complete."""
        self._clear_deadline()
        super().on_message_complete()

    def on_response_complete(self) -> None:
        """Wait for the next request."""
        self.waits_since = self.loop.time()
        super().on_response_complete()

    def pause_writing(self) -> None:
        """Start the timer of a client that does not read."""
        super().pause_writing()
        self._clear_stall()
        self._stall = self.loop.call_later(
            self.limits.stall_timeout, self.transport.abort
        )

    def resume_writing(self) -> None:
        """Cancel the timer of a client that reads again."""
        self._clear_stall()
        super().resume_writing()

    def send_400_response(self, msg: str) -> None:
        """Answer a request that is not HTTP; uvicorn has logged it already."""
        text = f"{msg} This is an HTTP server; is that what was sent?"
        self._answer(ApiError(400, text, code="invalid_http"))

    def handle_websocket_upgrade(self) -> None:
        """Hand the connection over to the WebSocket protocol, with its own timers."""
        self._clear_deadline()
        super().handle_websocket_upgrade()

    def _unsupported_upgrade_warning(self) -> None:
        """Log nothing: the request is answered as if it asked for no upgrade."""

    def _set_deadline(self) -> None:
        self._clear_deadline()
        self._deadline = self.loop.call_later(
            self.limits.request_timeout, self._on_deadline
        )

    def _on_deadline(self) -> None:
        if self.pipeline:
            # The next request is late because this side does not read it yet.
            self._set_deadline()
        elif self._is_in_head and self._head_bytes and not self.has_asked:
            text = f"no whole request within {self.limits.request_timeout:g} s"
            self._end(ApiError(408, text, code="request_timeout"))
        else:
            # Nothing was asked, or what was asked has been answered or refused.
            self.transport.close()

    def _clear_deadline(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None

    def _clear_stall(self) -> None:
        if self._stall is not None:
            self._stall.cancel()
            self._stall = None

    def _end(self, error: ApiError) -> None:
        log_refusal({"client": self.client}, error)
        self._answer(error)

    def _answer(self, error: ApiError) -> None:
        """Write an error without the application, and close."""
        body = error_body(error)
        retry = (
            ""
            if error.retry_after is None
            else f"retry-after: {error.retry_after:.0f}\r\n"
        )
        head = (
            f"HTTP/1.1 {error.status} {HTTPStatus(error.status).phrase}\r\n"
            f"content-type: application/json\r\ncontent-length: {len(body)}\r\n"
            f"{retry}connection: close\r\n\r\n"
        )
        self.transport.write(head.encode("ascii") + body)
        self.transport.close()


def connection_type(limits: ConnectionLimits) -> type[HttpConnection]:
    """Make the class of which uvicorn creates an instance for each connection."""
    return type("LimitedConnection", (HttpConnection,), {"limits": limits})
