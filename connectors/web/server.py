"""The HTTP server on the edge's loop: uvicorn, and what every route needs.

Listens, reads bodies within their limits, checks key and host. What the routes
mean is none of its business (`openai_api.py`, `operations.py`).
"""

from __future__ import annotations

import asyncio
import contextlib
import hmac
import ipaddress
import socket
from http import HTTPStatus
from typing import TYPE_CHECKING, Protocol, cast, runtime_checkable

import msgspec
import uvicorn
from starlette.applications import Starlette
from starlette.exceptions import HTTPException

from connectors.web.connection import ConnectionLimits, connection_type
from connectors.web.errors import ApiError, ListenError, refuse

if TYPE_CHECKING:
    from collections.abc import Callable

    from starlette.requests import Request
    from starlette.responses import Response
    from starlette.routing import BaseRoute
    from starlette.types import ASGIApp

LOOPBACK_NAMES = ("localhost", "127.0.0.1", "[::1]")

JSON = ("application/json",)
"""The media type of bodies, if nothing else is said."""

KEEP_ALIVE = 75
"""Seconds an idle connection is kept. Chosen: longer than clients keep theirs
(httpx 5, aiohttp 15), so that the client and not the server closes it first."""

LOOK_EVERY = 0.1
"""Seconds between looks for late connections while a server ends."""

SHUTDOWN_TIMEOUT = 2
"""Seconds that running answers get when the server stops."""


class HttpSettings(msgspec.Struct, frozen=True, kw_only=True):
    """How the server listens and what a request may cost."""

    name: str = "http"
    """Name of the connector account, as in the settings."""

    host: str = "127.0.0.1"
    port: int = 8080
    """0 takes any free port."""

    api_key: str = ""
    """What clients must send as bearer token; empty: anyone on this machine may."""

    is_guarded: bool = False
    """Whether somebody else sees to it who may ask, so that there need be no key."""

    max_body_bytes: int = 1_048_576
    body_timeout: float = 10.0
    """Seconds in which the whole body of a request must have come."""

    max_connections: int = 512
    answer_timeout: float = 600.0
    """Seconds a client waits at most for the whole answer; as OpenAI's clients."""

    heartbeat: float = 15.0
    """Seconds between the comments that keep a silent stream open."""

    max_frame_bytes: int = 0
    """Longest message on a WebSocket, in bytes; 0: there are none."""

    stall_timeout: float = 30.0
    """Seconds a client may leave an answer unread once all buffers are full."""


@runtime_checkable
class Served(Protocol):
    """A transport that is a server of its own, on the edge's loop."""

    def reserve(self) -> None:
        """Take the address now, so that one that is taken stops the program's start.

        Raises:
            ListenError: the address cannot be listened on.
        """
        ...

    def release(self) -> None:
        """Give back what `reserve` took, if it was not used."""
        ...

    @property
    def is_reserved(self) -> bool:
        """Whether its address is taken, and waits for `listen`."""
        ...

    async def wait_listening(self) -> tuple[str, int]:
        """Wait until clients can connect; gives host and port."""
        ...


@runtime_checkable
class Advised(Protocol):
    """A server of which whoever starts it should know something."""

    @property
    def advice(self) -> str:
        """What, in one line."""
        ...


@runtime_checkable
class Spoken(Protocol):
    """A server that speaks something else than HTTP."""

    @property
    def scheme(self) -> str:
        """What its address begins with: `ws`."""
        ...


def open_socket(settings: HttpSettings) -> socket.socket:
    """Listen where the settings say.

    Raises:
        ListenError: the address is taken, does not exist, or is open to others
            without a key.
    """
    host, port = settings.host, settings.port
    is_closed = settings.api_key or settings.is_guarded
    if not is_closed and not is_loopback(host):
        raise ListenError(
            f"connectors.{settings.name}: host {host!r} can be reached from other "
            "machines; set api_key, or host = '127.0.0.1'"
        )
    try:
        found = socket.getaddrinfo(
            host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )
        family, _, _, _, address = found[0]
        # Why a cast: typeshed counts addresses of families that TCP never has.
        place = cast("tuple[str, int]", address)
        listening = socket.create_server(place, family=family, backlog=1024)
        # Why here: asyncio sets this only on sockets that name their protocol, which
        # those made by `create_server` do not; without it each answer on a kept
        # connection waits 40 ms for the client's acknowledgement of its head.
        listening.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    except OSError as error:
        # Python adds to the system's words what we say ourselves.
        why = (error.strerror or str(error)).partition(" (while")[0].lower()
        raise ListenError(
            f"connectors.{settings.name}: cannot listen on {host}:{port}: {why}; "
            "end the other program or set another host or port"
        ) from error
    return listening


def is_loopback(host: str) -> bool:
    """Tell whether a host is reached from this machine only."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def make_app(routes: list[BaseRoute]) -> Starlette:
    """Put routes together so that unknown paths and methods get JSON errors."""
    app = Starlette(
        routes=routes,
        exception_handlers={HTTPException: on_http_error, Exception: on_bug},
    )
    # Why: a redirect would make clients repeat a POST with its whole body.
    app.router.redirect_slashes = False
    return app


async def on_http_error(request: Request, error: Exception) -> Response:
    """Answer an unknown path or method."""
    status = error.status_code if isinstance(error, HTTPException) else 500
    headers = dict((error.headers or {}) if isinstance(error, HTTPException) else {})
    code = {404: "not_found", 405: "method_not_allowed"}.get(status, "http_error")
    text = f"{request.method} {request.url.path}: {HTTPStatus(status).phrase.lower()}"
    return refuse(request.scope, ApiError(status, text, code=code), headers)


async def on_bug(request: Request, _error: Exception) -> Response:
    """Answer a request that met a bug; Starlette and uvicorn log the traceback."""
    text = "something is wrong on the server; its log says what"
    return refuse(request.scope, ApiError(500, text, code="internal_error"))


async def serve(
    app: ASGIApp,
    sock: socket.socket,
    settings: HttpSettings,
    on_stop: Callable[[], None],
) -> None:
    """Serve until cancelled; then stop in order and leave no connection open.

    Args:
        app: what answers.
        sock: a listening socket; closed at the end.
        settings: bounds for connections.
        on_stop: called first when stopping: ends the answers that still wait.
    """
    limits = ConnectionLimits(
        max_connections=settings.max_connections,
        # Twice: a body that is late is answered with 408 by its route; whoever
        # goes on sending after that is cut off by the connection.
        request_timeout=2 * settings.body_timeout,
        stall_timeout=settings.stall_timeout,
    )
    config = uvicorn.Config(
        app,
        http=connection_type(limits),
        ws="wsproto" if settings.max_frame_bytes else "none",
        ws_max_size=settings.max_frame_bytes,
        lifespan="off",
        log_config=None,
        log_level="warning",
        access_log=False,
        server_header=False,
        proxy_headers=False,
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
    """Wait until a server that is to end has ended, with all its connections.

    Why: uvicorn closes once those it has when it stops. A client that was just about
    to connect would be waited for in vain, and then be served by what has ended for
    as long as the loop goes on.
    """
    while not serving.done():
        await asyncio.wait({serving}, timeout=LOOK_EVERY)
        for each in tuple(server.server_state.connections):
            each.shutdown()


def check_access(request: Request, settings: HttpSettings) -> None:
    """Refuse who may not ask.

    Raises:
        ApiError: 401 for a missing or wrong key; 403 for a foreign host name.
    """
    if settings.api_key:
        given = request.headers.get("authorization", "")
        scheme, _, key = given.partition(" ")
        # Why bytes: compare_digest refuses text that is not ASCII.
        is_right = hmac.compare_digest(key.strip().encode(), settings.api_key.encode())
        if scheme.lower() != "bearer" or not is_right:
            text = "missing or wrong API key; send 'Authorization: Bearer <key>'"
            raise ApiError(401, text, code="invalid_api_key")
        return
    host = request.headers.get("host", "")
    name = host if host.endswith("]") else host.rpartition(":")[0] or host
    # Why: without a key, a web page could reach this server under its own name
    # by pointing that name at this machine (DNS rebinding).
    if name and name.lower() not in (*LOOPBACK_NAMES, settings.host):
        text = f"host {name!r} is not this machine; set api_key to allow other names"
        raise ApiError(403, text, code="forbidden_host")


async def read_body(
    request: Request, settings: HttpSettings, accepted: tuple[str, ...] = JSON
) -> bytes:
    """Read a body within the limits of size and time.

    Raises:
        ApiError: 415 of another media type, 413 too long, 408 too slow.
        ClientDisconnect: the client has gone.
    """
    media = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if media not in accepted:
        text = f"content type {media or 'missing'!r}; send {' or '.join(accepted)}"
        raise ApiError(415, text, code="unsupported_media_type")
    declared = request.headers.get("content-length", "0")
    limit = settings.max_body_bytes
    too_long = ApiError(
        413, f"the body is longer than {limit} bytes", code="request_too_large"
    )
    if not declared.isdecimal() or len(declared) > 15 or int(declared) > limit:
        raise too_long
    body = bytearray()
    try:
        async with asyncio.timeout(settings.body_timeout):
            async for part in request.stream():
                body += part
                if len(body) > limit:
                    raise too_long
    except TimeoutError:
        raise ApiError(
            408,
            f"the body did not come within {settings.body_timeout:g} s",
            code="body_timeout",
        ) from None
    return bytes(body)
