"""`/platforms/<connector>/<account>`: where chat platforms deliver their messages.

Runs on the edge's loop. The sender is checked before the body is read, as far as the
headers allow, and again before the message is handed on. An unknown address looks from
outside like a wrong secret. The answer is 200 once the message is stored; platforms
deliver it again until then.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping

import msgspec
from starlette.datastructures import MultiDict
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.routing import Route

from actors.transport import RefusedAttempt
from connectors.asyncio_bridge.bridge import BridgeError
from connectors.chat.gates import (
    AnyGate,
    Gates,
    PlatformAnswer,
    PlatformCall,
    SignedGate,
    Terms,
)
from connectors.web.errors import RETRY_LATER, ApiError, refuse
from connectors.web.request import RequestContext, client_host

OK, LATER = PlatformAnswer(200), PlatformAnswer(503)
UNTRUSTED = PlatformAnswer(401, refused="bad_secret")

UNSIGNED = Terms()
"""The terms of gates that check the headers alone."""

# Chosen: as much memory as the whole program takes.
MOST_BYTES = 64 * 1_048_576
"""Bytes of all bodies that are being read or stored."""

LEAST = 4_096
"""Bytes that the shortest body counts as, with the objects around it."""

LONG = 65_536
"""Bytes from which on a signature is checked in a thread: it takes 0.1 to 1 ms."""


class PlatformEndpoint:
    """The endpoint."""

    def __init__(self, gates: Gates, context: RequestContext) -> None:
        self._gates = gates
        self._context = context
        self._held = 0

    @property
    def routes(self) -> list[Route]:
        """For platforms with an address per account, and with one for all."""
        return [
            Route(path, self._receive, methods=["GET", "POST"])
            for path in ("/platforms/{connector}/{account}", "/platforms/{connector}")
        ]

    async def _receive(self, request: Request) -> Response:
        place = request.path_params["connector"], request.path_params.get("account", "")
        try:
            answer = await self._answered(request, self._gates.find(place))
        except ClientDisconnect:
            return Response(status_code=400)  # the client has gone
        except ApiError as error:
            return refuse(request.scope, error)
        if answer.refused:
            host = client_host(request.scope)
            self._context.record_attempt(RefusedAttempt(answer.refused, host))
        if answer.status in {401, 503}:
            return refuse(request.scope, error_of(answer))
        return Response(
            answer.body, status_code=answer.status, media_type=answer.media_type
        )

    async def _answered(self, request: Request, gate: AnyGate | None) -> PlatformAnswer:
        terms = gate.terms if isinstance(gate, SignedGate) else UNSIGNED
        if gate is None or request.method not in terms.methods:
            return UNTRUSTED
        if request.method != "POST":
            return await self._asked(gate, call_of(request, b""))
        if not gate.lets_in(request.headers):
            return UNTRUSTED
        settings = self._context.settings
        most = settings.max_body_bytes if terms.most_bytes is None else terms.most_bytes
        weight = weight_of(request.headers, most)
        if self._held + weight > MOST_BYTES:
            return LATER
        self._held += weight
        try:
            limits = msgspec.structs.replace(settings, max_body_bytes=most)
            body = await self._context.bodies.read(request, limits, terms.media_types)
            return await self._asked(gate, call_of(request, body))
        finally:
            self._held -= weight

    async def _asked(self, gate: AnyGate, call: PlatformCall) -> PlatformAnswer:
        """Have a gate check a request, and store what it lets in."""
        bridge, owner = self._context.bridge, self._context.settings.name
        try:
            if not isinstance(gate, SignedGate):
                is_stored = await bridge.ask_kernel(gate.take, call.body, owner=owner)
                return OK if is_stored else LATER
            refusal = await checked(gate, call)
            if refusal is not None:
                return refusal
            return await bridge.ask_kernel(gate.answer, call, owner=owner)
        except BridgeError:
            return LATER  # the server is stopping


async def checked(gate: SignedGate, call: PlatformCall) -> PlatformAnswer | None:
    """Have a gate check the signature of a request; a long one in a thread."""
    if len(call.body) < LONG:
        return gate.check(call)
    return await asyncio.to_thread(gate.check, call)


def call_of(request: Request, body: bytes) -> PlatformCall:
    """Make what gates read of a request."""
    return PlatformCall(
        method=request.method,
        query=without_twins(request.query_params.multi_items()),
        headers=without_twins(request.headers.items()),
        body=body,
    )


def without_twins(pairs: list[tuple[str, str]]) -> dict[str, str]:
    """Leave out names that stand there several times."""
    found = MultiDict(pairs)
    return {name: value for name, value in pairs if len(found.getlist(name)) == 1}


def weight_of(headers: Mapping[str, str], most: int) -> int:
    """Give the bytes a request counts as; without a length, as the longest."""
    declared = headers.get("content-length", "")
    is_plain = declared.isdecimal() and len(declared) <= 15
    return max(LEAST, min(int(declared), most) if is_plain else most)


def error_of(answer: PlatformAnswer) -> ApiError:
    """Make the error of a refusal: the same text for every gate, and for none."""
    if answer.status == 401:
        text = "missing or wrong secret; nothing was taken"
        return ApiError(401, text, code="bad_secret")
    wait = RETRY_LATER if answer.retry_after is None else answer.retry_after
    return ApiError(503, "not stored; bring it again", code="later", retry_after=wait)
