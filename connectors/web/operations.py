"""Routes for operators: `/healthz`, `/readyz`, `/metrics`, `/actors` and `/node`.

`/healthz` says that the edge's loop runs, `/readyz` asks the kernel, `/metrics` gives
Prometheus its text. Health and readiness need no key: probes have none, and nothing
there names a person or a conversation. `/actors`, for `callboard tree`, needs one.
`/node`, at which nodes of one company ask each other, needs a seal.

`AdminServer` serves these and nothing else, on an address of its own, wherever
`callboard serve` runs; the `http` connector serves them beside its own routes.
"""

from __future__ import annotations

import asyncio
import gzip
import socket
from collections.abc import Callable
from functools import partial

import msgspec
from starlette.requests import ClientDisconnect, Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

from connectors.admin.nodes import COMMAND_WITHIN, PATH as NODE_PATH, QUESTION
from connectors.asyncio_bridge.bridge import Bridge, BridgeError
from connectors.chat.platforms import NodeQuestions, Operations, TransportParts
from connectors.chat.server_transport import ListenError, ServerTransport
from connectors.config.app import ADMIN_PORT, AdminConfig
from connectors.web.request import check_access
from connectors.web.server import (
    ApiError,
    HttpSettings,
    make_app,
    open_socket,
    refuse,
    serve,
)
from runtime.errors import MisuseError
from runtime.telemetry.logs import EventLog
from runtime.telemetry.metrics import Counter, Metrics

LOG = EventLog("admin")

QUICKLY = 1
"""How much gzip tries; more would hardly make the text of metrics shorter."""

READY_TIMEOUT = 2.0
"""Seconds the kernel may take to answer; then it counts as not ready."""


class Readiness(msgspec.Struct, frozen=True, omit_defaults=True):
    """The body of `/readyz`."""

    ready: bool
    reasons: tuple[str, ...]
    warnings: tuple[str, ...] = ()
    """What needs somebody, whether it is ready or not."""


Guard = Callable[["Request"], Response | None]
"""Gives the refusal for a request without access, or None."""


def probe_routes(operations: Operations, bridge: Bridge) -> list[Route]:
    """Give the routes of health and readiness, which need no key."""

    async def health(_request: Request) -> Response:
        return PlainTextResponse("ok\n")

    async def ready(_request: Request) -> Response:
        found = await ask_readiness(operations, bridge)
        return Response(
            msgspec.json.encode(found),
            status_code=200 if found.ready else 503,
            media_type="application/json",
        )

    return [Route("/healthz", health), Route("/readyz", ready)]


def operation_routes(
    operations: Operations, bridge: Bridge, guard: Guard
) -> list[Route]:
    """Give all routes for operators.

    Args:
        guard: refuses requests without access to metrics and actors.
    """

    async def metrics(request: Request) -> Response:
        refused = guard(request)
        if refused is not None:
            return refused
        is_fresh = await is_refreshed(operations, bridge)
        wanted = request.headers
        body, media_type = await asyncio.to_thread(
            operations.render, wanted.get("accept", ""), is_fresh
        )
        headers = {"content-type": media_type, "vary": "accept, accept-encoding"}
        if "gzip" in wanted.get("accept-encoding", ""):
            body = await asyncio.to_thread(gzip.compress, body, QUICKLY)
            headers["content-encoding"] = "gzip"
        return Response(body, headers=headers)

    return [
        *probe_routes(operations, bridge),
        Route("/metrics", metrics),
        tree_route(operations, guard),
        *node_routes(operations, bridge),
    ]


def tree_route(operations: Operations, guard: Guard) -> Route:
    """Give the route for `callboard tree`; it names conversations, so it is guarded."""

    async def tree(request: Request) -> Response:
        refused = guard(request)
        if refused is not None:
            return refused
        asked = request.query_params
        top, past = asked.get("top", ""), asked.get("past", "")
        try:
            body = await asyncio.to_thread(operations.tree, top, past)
        except MisuseError as error:
            missing = ApiError(404, str(error), code="actor_not_found", param="top")
            return refuse(request.scope, missing)
        return Response(body, media_type="application/json")

    return Route("/actors", tree)


# Chosen: what is asked names a few actors; a form has a few short fields.
MOST_ASKED = 65_536
"""Bytes of a question of another node."""


def node_routes(operations: Operations, bridge: Bridge) -> list[Route]:
    """Give the route at which other nodes ask; the seal of a question is its key.

    The kernel hears of no question without one.
    """
    nodes = operations.nodes
    if nodes is None:
        return []

    async def node(request: Request) -> Response:
        try:
            return Response(
                await told(nodes, bridge, request), media_type="application/json"
            )
        except ClientDisconnect:
            return Response(status_code=400)
        except ApiError as error:
            return refuse(request.scope, error)

    return [Route(NODE_PATH, node, methods=["POST"])]


async def told(nodes: NodeQuestions, bridge: Bridge, request: Request) -> bytes:
    """Answer a question of another node.

    Raises:
        ApiError: it has no seal, or is not answered.
        ClientDisconnect: it broke off.
    """
    name, _, seal = request.headers.get(QUESTION, "").partition(" ")
    if not seal:  # nothing of what a stranger sends is read
        raise ApiError(401, "not sealed", code="refused")
    slow = "the question did not come in time"
    try:
        async with asyncio.timeout(COMMAND_WITHIN):
            question = await read_question(request)
            slow = f"the kernel did not answer within {COMMAND_WITHIN:g} s"
            answer = nodes.refusal(name, seal, question)
            if answer is None:
                answer = await bridge.ask_kernel(nodes.answer, question)
    except (TimeoutError, BridgeError) as error:
        raise ApiError(503, str(error) or slow, code="unavailable") from error
    status, body = answer
    if status >= 400:
        raise ApiError(status, body.decode(), code="refused")
    return body


async def read_question(request: Request) -> bytes:
    """Read what another node asks.

    Raises:
        ApiError: it is too long.
        ClientDisconnect: it broke off.
    """
    body = bytearray()
    async for part in request.stream():
        body += part
        if len(body) > MOST_ASKED:
            text = f"a question is no longer than {MOST_ASKED} bytes"
            raise ApiError(413, text, code="request_too_large")
    return bytes(body)


async def ask_readiness(operations: Operations, bridge: Bridge) -> Readiness:
    """Ask the kernel why it is not ready; no answer in time is a reason, too."""
    try:
        async with asyncio.timeout(READY_TIMEOUT):
            reasons = await bridge.ask_kernel(operations.readiness)
            warnings = await bridge.ask_kernel(operations.warnings)
    except TimeoutError:
        why = f"the kernel did not answer within {READY_TIMEOUT:g} s"
    except BridgeError as error:
        why = str(error)
    else:
        return Readiness(ready=not reasons, reasons=reasons, warnings=warnings)
    return Readiness(ready=False, reasons=(why,))


async def is_refreshed(operations: Operations, bridge: Bridge) -> bool:
    """Have the kernel bring the metrics up to date; False: it did not answer."""
    try:
        async with asyncio.timeout(READY_TIMEOUT):
            await bridge.ask_kernel(operations.refresh)
    except (TimeoutError, BridgeError):
        return False
    return True


def requests_counter(metrics: Metrics) -> Counter:
    """Make the counter of requests that these servers share."""
    return metrics.counter(
        "callboard_http_requests",
        "Requests that were answered, by connector (or admin) and HTTP status.",
        ("connector", "status"),
    )


HERE = """\
Callboard answers operators and monitoring here:

/healthz  the process runs
/readyz   it works, or why not
/metrics  numbers for Prometheus
/actors   what runs, for `callboard tree`

Pages and other connectors have addresses of their own: `callboard serve` prints them.
"""


def front_route(text: str) -> Route:
    """Give the route that tells somebody who opens the address in a browser."""

    async def say_what_is_here(_request: Request) -> Response:
        return PlainTextResponse(text)

    return Route("/", say_what_is_here)


# Chosen: a few scrapers, probes and people, each with some connections kept open.
MOST_OPERATORS = 64
"""Connections to the operators' server at once."""


class AdminServer(ServerTransport):
    """Serves operators: health, readiness, metrics and the actor tree."""

    def __init__(
        self,
        settings: HttpSettings,
        bridge: Bridge,
        operations: Operations,
        requests: Counter,
    ) -> None:
        super().__init__(partial(open_socket, settings))
        self._settings = settings
        self._bridge = bridge
        self._operations = operations
        self._requests = requests

    async def run(self) -> None:
        """Serve until cancelled; then close the port.

        Raises:
            ListenError: the address cannot be listened on.
            BridgeClosedError: the edge's loop is not running or died.
        """
        with self.listening() as sock:
            self.announce(sock)
            await self._bridge.call(self._serve, sock)

    async def _serve(self, sock: socket.socket) -> None:
        routes = operation_routes(self._operations, self._bridge, self._refusal)
        app = make_app([front_route(HERE), *routes])
        await serve(app, sock, self._settings, lambda: None, self._requests)

    def _refusal(self, request: Request) -> Response | None:
        try:
            check_access(request, self._settings)
        except ApiError as error:
            return refuse(request.scope, error)
        return None


def make_admin_server(config: AdminConfig, parts: TransportParts) -> AdminServer | None:
    """Make the server that operators ask, and take its address.

    Returns:
        None: nobody set a port, and another program has the usual one.

    Raises:
        ListenError: the address cannot be listened on.
    """
    settings = HttpSettings(
        name="admin",
        table="admin",
        host=config.host,
        port=ADMIN_PORT if config.port is None else config.port,
        api_key="" if config.api_key is None else config.api_key.reveal(),
        max_connections=MOST_OPERATORS,
    )
    requests = parts.once(requests_counter)
    server = AdminServer(settings, parts.bridge, parts.operations, requests)
    try:
        server.reserve()
    except ListenError as error:
        if config.port is not None or not error.is_taken:
            raise
        LOG.warning(
            "operators and monitoring cannot look at this company",
            why=f"another program has {config.host}:{ADMIN_PORT}",
            hint="set [admin] port; a second company on one machine needs its own",
        )
        return None
    return server
