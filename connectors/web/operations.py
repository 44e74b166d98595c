"""Routes for operators: `/healthz`, `/readyz`, `/metrics` and `/actors`.

`/healthz` says that the edge's loop runs, `/readyz` asks the kernel, `/metrics` gives
Prometheus its text. Health and readiness need no key: probes have none, and nothing
there names a person or a conversation. `/actors`, for `callboard tree`, needs one.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING

import msgspec
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

from connectors.asyncio_bridge.crossing import BridgeError
from connectors.web.errors import ApiError, refuse
from runtime.errors import MisuseError

if TYPE_CHECKING:
    from starlette.requests import Request

    from connectors.asyncio_bridge.bridge import Bridge

READY_TIMEOUT = 2.0
"""Seconds the kernel may take to answer; then it counts as not ready."""


def no_tree(_top: str, _past: str) -> bytes:
    """Give an empty actor tree."""
    return b"{}"


class Operations(msgspec.Struct, frozen=True):
    """Gives the answers to operators."""

    render: Callable[[], bytes]
    """Writes the metrics; called on the edge's thread, must be quick."""

    content_type: str
    """The media type of what `render` writes."""

    readiness: Callable[[], Awaitable[tuple[str, ...]]]
    """Gives the reasons why the kernel is not ready; empty: it is. In a trio task."""

    tree: Callable[[str, str], bytes] = no_tree
    """Writes the actor tree as JSON. Takes the name of a branch (empty: all), and the
    name after which to go on. Called in a thread, as many actors take time. Raises
    `MisuseError` if the branch is no actor, or several."""


class Readiness(msgspec.Struct, frozen=True):
    """The body of `/readyz`."""

    ready: bool
    reasons: tuple[str, ...]


def operation_routes(
    operations: Operations, bridge: Bridge, guard: Callable[[Request], Response | None]
) -> list[Route]:
    """Give the routes of health, readiness and metrics.

    Args:
        operations: gives the answers.
        bridge: leads to the kernel.
        guard: gives the refusal for a request without access to the metrics, or None.
    """

    async def health(_request: Request) -> Response:
        return PlainTextResponse("ok\n")

    async def ready(_request: Request) -> Response:
        reasons = await ask_readiness(operations, bridge)
        return Response(
            msgspec.json.encode(Readiness(ready=not reasons, reasons=reasons)),
            status_code=503 if reasons else 200,
            media_type="application/json",
        )

    async def metrics(request: Request) -> Response:
        return guard(request) or Response(
            operations.render(), headers={"content-type": operations.content_type}
        )

    return [
        Route("/healthz", health),
        Route("/readyz", ready),
        Route("/metrics", metrics),
    ]


def tree_route(
    operations: Operations, guard: Callable[[Request], Response | None]
) -> Route:
    """Give the route for `callboard tree`; it names conversations, so it is guarded.

    Args:
        operations: gives the answer.
        guard: gives the refusal for a request without access, or None.
    """

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


async def ask_readiness(operations: Operations, bridge: Bridge) -> tuple[str, ...]:
    """Ask the kernel why it is not ready; no answer in time is a reason, too."""
    try:
        async with asyncio.timeout(READY_TIMEOUT):
            return await bridge.ask_kernel(operations.readiness)
    except TimeoutError:
        return (f"the kernel did not answer within {READY_TIMEOUT:g} s",)
    except BridgeError as error:
        return (str(error),)
