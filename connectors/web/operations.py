"""What operators and their programs ask: does it run, is it ready, its figures.

`/healthz` says that the edge's loop runs; `/readyz` asks the kernel; `/metrics`
gives Prometheus its text. None asks for a key: probes have none, and nothing there
names a person or a conversation. `/actors`, the tree for `callboard tree`, does.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING

import msgspec
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

from connectors.crossing import BridgeError
from connectors.web.errors import ApiError, refuse
from runtime.errors import MisuseError

if TYPE_CHECKING:
    from starlette.requests import Request

    from connectors.bridge import Bridge

READY_TIMEOUT = 2.0
"""Seconds the kernel may take to answer; a kernel that cannot is not ready."""


def no_tree(_top: str, _past: str) -> bytes:
    """Write that there is no actor."""
    return b"{}"


class Operations(msgspec.Struct, frozen=True):
    """Where the answers to operators come from."""

    render: Callable[[], bytes]
    """Writes the figures; called on the edge's thread, must be quick."""

    content_type: str
    """What `render` writes, as Prometheus names it."""

    readiness: Callable[[], Awaitable[tuple[str, ...]]]
    """Asks the kernel, in a trio task, why it is not ready; nothing means ready."""

    tree: Callable[[str, str], bytes] = no_tree
    """Writes the actor tree as JSON: one branch, or behind a name in it; empty: all.
    Called in a thread: with very many actors it takes its time. Raises `MisuseError`
    if its first name means no actor, or several."""


class Readiness(msgspec.Struct, frozen=True):
    """The body of `/readyz`."""

    ready: bool
    reasons: tuple[str, ...]


def operation_routes(
    operations: Operations, bridge: Bridge, guard: Callable[[Request], Response | None]
) -> list[Route]:
    """Give the three routes.

    Args:
        operations: where the answers come from.
        bridge: the way to the kernel.
        guard: gives the refusal for who may not see the figures, or None. Health and
            readiness are for whoever starts and watches this process.
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
        operations: where the answer comes from.
        guard: gives the refusal for who may not see it, or None.
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
    """Ask the kernel whether it is ready; silence is an answer, too."""
    try:
        async with asyncio.timeout(READY_TIMEOUT):
            return await bridge.ask_kernel(operations.readiness)
    except TimeoutError:
        return (f"the kernel did not answer within {READY_TIMEOUT:g} s",)
    except BridgeError as error:
        return (str(error),)
