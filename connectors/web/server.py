"""The HTTP server on the edge's loop: its settings, its socket, uvicorn around an app.

It knows no route: `openai`, `eliza` and `page` make the apps.
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
from collections.abc import Callable, Sequence
from http import HTTPStatus
from typing import TYPE_CHECKING

import msgspec
import uvicorn
from starlette.applications import Starlette
from starlette.exceptions import HTTPException

from connectors.chat.server_transport import ListenError, listen_on
from connectors.config.checks import is_loopback
from connectors.web.connection import ConnectionLimits, connection_type
from connectors.web.errors import ApiError, refuse

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response
    from starlette.routing import BaseRoute
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

    from runtime.telemetry.metrics import Counter

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
        routes: asked in this order.
        answer: writes an error as clients of these routes read it.
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
        app: answers the others.
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
        app: the application.
        sock: a listening socket; closed at the end.
        settings: limits of connections.
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
