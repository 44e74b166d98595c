"""The HTTP server on the edge's loop: its settings, its socket, uvicorn around an app.

It knows no route: `openai`, `eliza` and `page` make the apps.

An HTTP client gets errors in OpenAI's shape, with the right status. This is the only
place where an error of the kernel or the domain becomes a status. Every refused request
is one line in the log, without a traceback.

A connection has bounds that uvicorn does not set: uvicorn's httptools protocol accepts
headers of any length and speed, and waits for ever for a client that does not read.
This subclass ends such connections, and answers requests that are not HTTP in the same
error shape as everything else.

Of too many connections, the one that has waited longest for its client's request makes
room for the newest. So nobody who only holds connections open keeps others out; if all
are at work, only probes of the server's health find a place.
"""

from __future__ import annotations

import asyncio
import contextlib
import math
import socket
from collections.abc import Callable, Sequence
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, ClassVar, cast

import msgspec
import pykka
import uvicorn
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.responses import Response
from uvicorn.protocols.http.httptools_impl import (
    HttpToolsProtocol,
    RequestResponseCycle,
)

from actors.errors import (
    NOT_STORED,
    ChatError,
    MessageRefusedError,
    MisdirectedError,
    OverloadedError,
    SenderRefusedError,
    StoppingError,
    UnconfirmedError,
    UnknownAgentError,
)
from connectors.chat.server_transport import ListenError, listen_on
from connectors.config.checks import is_loopback
from runtime.errors import KernelError, MisuseError, StoreError
from runtime.telemetry.logs import EventLog

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.routing import BaseRoute
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

    from connectors.config.app import ServerConfig
    from runtime.telemetry.metrics import Counter


LOG = EventLog("http")
REFUSALS = LOG.limited(60)
"""Anybody may be refused as often as they like, so the log takes so many a minute."""

RETRY_SOON = 1.0
"""Seconds until a client may retry when too many requests are in flight."""

RETRY_LATER = 5.0
"""Seconds until a client may retry when the kernel cannot accept a message."""

MISDIRECTED = 421
"""Source: RFC 9110 15.5.20; another node works on that chat."""

# Chosen: a client that is told to wait a day would not learn of a free account.
RETRY_LATEST = 3600.0
"""Most seconds that a client is told to wait."""

TROUBLE_STATUS: dict[str, tuple[str, int, float | None]] = {
    "busy": ("conversation_busy", 429, RETRY_SOON),
    "unavailable": ("model_unavailable", 503, RETRY_LATER),
    "refused": ("model_refused", 502, None),
    "budget": ("insufficient_quota", 429, None),
    "timeout": ("turn_timeout", 504, None),
    "dropped": ("dropped", 422, None),
}
"""A delivery's trouble over HTTP: code, status, seconds until a retry may help; None:
a retry cannot help."""

EXPECTED_ERRORS = (ChatError, KernelError, pykka.ActorDeadError, pykka.Timeout)
"""What the kernel may raise for a request; anything else is a bug."""


class ApiError(Exception):
    """A request that gets an error instead of an answer.

    Args:
        text: what is wrong, why, and what to do; shown to the client.
        code: short word for programs, as OpenAI's `code`.
        param: the field of the request that is wrong, as `messages[0].role`.
        retry_after: seconds after which trying again may help, or None.
        may_repeat: False if the message was accepted: sent again, it would count
            twice. Clients repeat 408, 409, 429 and 5xx by themselves.
    """

    def __init__(
        self,
        status: int,
        text: str,
        *,
        code: str,
        param: str | None = None,
        retry_after: float | None = None,
        may_repeat: bool = True,
    ) -> None:
        super().__init__(text)
        self.status = status
        self.text = text
        self.code = code
        self.param = param
        self.retry_after = retry_after
        self.may_repeat = may_repeat

    @property
    def type(self) -> str:
        """OpenAI's coarse kind of error; follows from the status."""
        if self.status == 429:
            return "rate_limit_error"
        return "server_error" if self.status >= 500 else "invalid_request_error"


class ApiErrorFields(msgspec.Struct, frozen=True):
    """What OpenAI's clients read from an error."""

    message: str
    type: str
    param: str | None
    code: str


class ApiErrorBody(msgspec.Struct, frozen=True):
    """The body of every error."""

    error: ApiErrorFields


def error_body(error: ApiError) -> bytes:
    """Write an error as JSON in OpenAI's shape."""
    fields = ApiErrorFields(error.text, error.type, error.param, error.code)
    return msgspec.json.encode(ApiErrorBody(fields))


def error_headers(error: ApiError) -> dict[str, str]:
    """Give the headers that belong to an error, besides the content type."""
    headers: dict[str, str] = {}
    if error.retry_after is not None:
        headers["retry-after"] = str(math.ceil(error.retry_after))
    if not error.may_repeat:
        # Source: the official clients obey this header over their own list.
        headers["x-should-retry"] = "false"
    if error.status == 401:
        headers["www-authenticate"] = "Bearer"
    return headers


def refuse(
    scope: Scope, error: ApiError, headers: dict[str, str] | None = None
) -> Response:
    """Log one line and make the response to a refused request."""
    log_refusal(scope, error)
    return Response(
        error_body(error),
        status_code=error.status,
        headers=error_headers(error) | (headers or {}),
        media_type="application/json",
    )


def log_refusal(scope: Scope, error: ApiError) -> None:
    """Write the one line that a refused request leaves in the log."""
    client = scope.get("client")
    cause = error.__cause__
    why = {"why": str(cause)} if isinstance(cause, StoreError) else {}
    write = REFUSALS.warning if error.status >= 500 else REFUSALS.info
    write(
        "request refused",
        method=str(scope.get("method", "?")),
        path=str(scope.get("path", "?")),
        client=client[0] if client else "?",
        status=error.status,
        code=error.code,
        error=error.text,
        **why,
    )


def translate(error: Exception) -> ApiError:
    """Make the error for a message that was not accepted.

    Args:
        error: one of `EXPECTED_ERRORS`, raised before anything was stored.
    """
    match error:
        case UnknownAgentError():
            return unknown_model(error.name, error.known)
        case MessageRefusedError():
            return refused_error(error)
        case OverloadedError():
            is_too_much = not isinstance(error, UnconfirmedError)
            status, code = (429, "overloaded") if is_too_much else (503, "unavailable")
            return ApiError(status, str(error), code=code, retry_after=RETRY_SOON)
        case MisdirectedError() | StoppingError():
            status, code = 503, "stopping"
            if isinstance(error, MisdirectedError):
                status, code = MISDIRECTED, "misdirected"
            return ApiError(status, str(error), code=code, retry_after=RETRY_LATER)
        case MisuseError():
            return ApiError(500, str(error), code="internal_error", may_repeat=False)
        case _:
            text = f"the message was not taken: {error}"
            if isinstance(error, StoreError):
                text = f"{NOT_STORED}; try again later"
            return ApiError(503, text, code="unavailable", retry_after=RETRY_LATER)


def refused_error(error: MessageRefusedError) -> ApiError:
    """Make the error for a message of a kind, or a user, that is not accepted."""
    if isinstance(error, SenderRefusedError):
        return ApiError(403, str(error), code="not_admitted", param="user")
    return ApiError(400, str(error), code="message_refused", param="messages")


def trouble_error(trouble: str, text: str, seconds: float | None = None) -> ApiError:
    """Make the error for a message that was accepted and cannot be answered.

    Args:
        trouble: as in a delivery, not empty.
        text: what people would read in a chat.
        seconds: until a retry may succeed; None: not known.
    """
    code, status, wait = TROUBLE_STATUS.get(trouble, ("no_answer", 500, None))
    if wait is not None and seconds is not None:
        wait = min(max(seconds, RETRY_SOON), RETRY_LATEST)
    return ApiError(
        status, text, code=code, retry_after=wait, may_repeat=wait is not None
    )


def unknown_model(name: str, known: tuple[str, ...]) -> ApiError:
    """Make the error for a `model` that is no agent."""
    return ApiError(
        404,
        f"the model {name[:64]!r} does not exist: a model here is an agent's name; "
        f"known: {', '.join(known) or 'none'}",
        code="model_not_found",
        param="model",
    )


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


ABORT = "callboard.abort"
"""In the state of a request: ends its connection."""


def abort_connection(scope: Scope) -> None:
    """End a connection whose answer has begun and cannot be completed."""
    scope.get("state", {}).get(ABORT, nothing)()


def nothing() -> None:
    """Do nothing: the connection is another server's."""


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
        self.app_state = {ABORT: transport.abort}
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


PATH_CODES = {404: "not_found", 405: "method_not_allowed"}

LOOPBACK_NAMES = ("localhost", "127.0.0.1", "[::1]")

KEEP_ALIVE = 75
"""Seconds an idle connection is kept. Chosen: longer than clients keep theirs
(httpx 5, aiohttp 15), so that the client and not the server closes it first."""

LOOK_EVERY = 0.1
"""Seconds between two searches for late connections while a server ends."""

SHUTDOWN_TIMEOUT = 2
"""Seconds that running answers get when the server stops."""


class HttpSettings(msgspec.Struct, frozen=True, kw_only=True):
    """Where the server listens, and the limits of requests."""

    name: str = "http"
    """Name of the connector account, as in the settings."""

    table: str = ""
    """The table of its settings; empty: that of the connector."""

    host: str = "127.0.0.1"
    port: int = 8080
    """0 takes any free port."""

    api_key: str = ""
    """The bearer token of clients; empty: anyone on this machine has access."""

    is_guarded: bool = False
    """Whether the app itself checks access, so that no key is needed."""

    trusted_proxies: tuple[str, ...] = ()
    """Addresses and networks whose `X-Forwarded-For` is believed."""

    max_body_bytes: int = 1_048_576
    body_timeout: float = 10.0
    """Seconds in which the whole body of a request must arrive."""

    max_connections: int = 512
    answer_timeout: float = 600.0
    """Seconds a client waits at most for the whole answer; as OpenAI's clients do."""

    heartbeat: float = 15.0
    """Seconds between the comments that keep a silent stream open."""

    max_frame_bytes: int = 0
    """Longest message on a WebSocket, in bytes; 0: no WebSockets."""

    stall_timeout: float = 30.0
    """Seconds a client may leave an answer unread once all buffers are full."""


def http_settings(name: str, config: ServerConfig) -> HttpSettings:
    """Return how a connector's server listens; who needs a key adds it."""
    return HttpSettings(
        name=name,
        host=config.host,
        port=config.port,
        max_body_bytes=config.max_body_bytes,
        body_timeout=config.body_timeout,
        max_connections=config.max_connections,
        trusted_proxies=config.trusted_proxies,
    )


Answer = Callable[["Request", ApiError, dict[str, str]], "Response"]
"""Writes an error, with further headers."""


def answer_json(request: Request, error: ApiError, headers: dict[str, str]) -> Response:
    """Write an error in OpenAI's shape, and log it."""
    return refuse(request.scope, error, headers)


def unknown_path(request: Request, status: int) -> ApiError:
    """Make the error for an unknown path or method."""
    text = f"{request.method} {request.url.path}: {HTTPStatus(status).phrase.lower()}"
    return ApiError(status, text, code=PATH_CODES.get(status, "http_error"))


def open_socket(
    settings: HttpSettings, given: socket.socket | None = None
) -> socket.socket:
    """Listen where the settings say.

    Args:
        settings: where, and who may come.
        given: listens there already; None: a new one is opened.

    Raises:
        ListenError: the address is taken, does not exist, or is open to others
            without a key.
    """
    host, port = settings.host, settings.port
    place = settings.table or f"connectors.{settings.name}"
    is_closed = settings.api_key or settings.is_guarded
    if not is_closed and not is_loopback(host):
        raise ListenError(
            f"{place}: host {host!r} can be reached from other "
            "machines; set api_key, or host = '127.0.0.1'"
        )
    if given is not None:
        return given
    return listen_on(place, host, port)


def make_app(
    routes: Sequence[BaseRoute],
    answer: Answer = answer_json,
    unknown: Callable[[Request, int], ApiError] = unknown_path,
    bug_code: str = "internal_error",
) -> Starlette:
    """Put routes together so that unknown paths, methods and bugs get an answer.

    Args:
        unknown: makes the error for an unknown path or method, by its status.
        bug_code: the code of the error that a bug is answered with.
    """

    async def on_http_error(request: Request, error: Exception) -> Response:
        found = error if isinstance(error, HTTPException) else HTTPException(500)
        shown = unknown(request, found.status_code)
        return answer(request, shown, dict(found.headers or {}))

    async def on_bug(request: Request, _error: Exception) -> Response:
        # Starlette and uvicorn log the traceback.
        text = "something is wrong on the server; its log says what"
        return answer(request, ApiError(500, text, code=bug_code), {})

    app = Starlette(
        routes=routes,
        exception_handlers={HTTPException: on_http_error, Exception: on_bug},
    )
    # Why: a redirect would make clients repeat a POST with its whole body.
    app.router.redirect_slashes = False
    return app


class OneHost:
    """Counts requests, and refuses those of HTTP/1.1 that do not name one host.

    Source: RFC 9112 3.2: such a request is answered 400.

    Args:
        count: told the status of each answer when it begins.
    """

    def __init__(self, app: ASGIApp, count: Callable[[int], None]) -> None:
        self._app = app
        self._count = count

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        hosts = [name for name, _ in scope.get("headers", ()) if name == b"host"]
        app = self._app
        if len(hosts) != 1 and scope.get("http_version") == "1.1":
            text = "a request of HTTP/1.1 has one Host header"
            app = refuse(scope, ApiError(400, text, code="no_host"))

        async def counted(message: Message) -> None:
            if message["type"] == "http.response.start":
                self._count(message["status"])
            await send(message)

        await app(scope, receive, counted)


async def serve(
    app: ASGIApp,
    sock: socket.socket,
    settings: HttpSettings,
    on_stop: Callable[[], None],
    requests: Counter | None = None,
) -> None:
    """Serve until cancelled; then stop in order, with all connections closed.

    Args:
        sock: a listening socket; closed at the end.
        on_stop: called first when stopping: ends the requests that wait.
        requests: counts answers by server and status; None: nobody does.
    """

    def count(status: int) -> None:
        if requests is not None:
            requests.add(1, settings.name, str(status))

    limits = ConnectionLimits(
        max_connections=settings.max_connections,
        # Twice: the route answers a late body with 408; the connection ends if the
        # client goes on sending after that.
        request_timeout=2 * settings.body_timeout,
        stall_timeout=settings.stall_timeout,
    )
    config = uvicorn.Config(
        OneHost(app, count),
        http=connection_type(limits),
        ws="wsproto" if settings.max_frame_bytes else "none",
        ws_max_size=settings.max_frame_bytes,
        lifespan="off",
        log_config=None,
        log_level="warning",
        access_log=False,
        server_header=False,
        proxy_headers=bool(settings.trusted_proxies),
        forwarded_allow_ips=list(settings.trusted_proxies),
        timeout_keep_alive=KEEP_ALIVE,
        timeout_graceful_shutdown=SHUTDOWN_TIMEOUT,
    )
    server = uvicorn.Server(config)
    serving = asyncio.ensure_future(server.serve(sockets=[sock]))
    try:
        # Why a shield: cancelled, uvicorn would leave its connections open.
        await asyncio.shield(serving)
    finally:
        on_stop()
        server.should_exit = True
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(2 * SHUTDOWN_TIMEOUT):
                await end_connections(server, serving)
        sock.close()
        for each in tuple(server.server_state.connections):
            each.transport.abort()


async def end_connections(
    server: uvicorn.Server, serving: asyncio.Future[None]
) -> None:
    """Close connections until a server has ended.

    Why: uvicorn closes only the connections that it has when it stops. One that was
    just being opened would keep the server waiting, and be served after its end.
    """
    while not serving.done():
        await asyncio.wait({serving}, timeout=LOOK_EVERY)
        for each in tuple(server.server_state.connections):
            each.shutdown()
