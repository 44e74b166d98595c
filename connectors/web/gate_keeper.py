"""`/platforms/<connector>/<account>`: where a chat platform brings its messages.

Runs on the edge's loop. Who brings it is looked at before a byte of the body is read,
as far as that can be seen, and before it is handed on; an address that nobody set looks
from outside like a wrong secret. 200 is said when what came is stored, and the platform
brings it again until then.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping

import msgspec
from starlette.datastructures import MultiDict
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.routing import Route

from actors.ingress import RefusedAttempt
from connectors.crossing import BridgeError
from connectors.gates import Answer, AnyGate, Call, Gate, Gates, SignedGate, Terms
from connectors.web.bodies import Bodies
from connectors.web.errors import RETRY_LATER, ApiError, refuse
from connectors.web.server import HttpSettings

OK, LATER = Answer(200), Answer(503)
UNTRUSTED = Answer(401, refused="bad_secret")

UNSIGNED = Terms()
"""What is read for gates that know their platform by its headers."""

# Chosen: as much memory as the whole program takes.
MOST_BYTES = 64 * 1_048_576
"""Of bodies that are read or being stored, at once."""

LEAST = 4_096
"""Bytes that the shortest body counts as, with all that is made for it."""

LONG = 65_536
"""Bytes that are signed so slowly, at 0.1 to 1 ms, that a thread does it."""


class Surroundings(msgspec.Struct, frozen=True):
    """What requests need of the server around them."""

    settings: HttpSettings
    bodies: Bodies
    refuse: Callable[[RefusedAttempt], None]
    take: Callable[[Gate, bytes], Awaitable[bool]]
    """Asks a gate, from the edge's loop."""

    answer: Callable[[SignedGate, Call], Awaitable[Answer]]
    """Likewise."""


class GateKeeper:
    """The endpoint.

    Args:
        gates: whose they are.
        around: what requests need of the server.
    """

    def __init__(self, gates: Gates, around: Surroundings) -> None:
        self._gates = gates
        self._around = around
        self._held = 0

    @property
    def routes(self) -> list[Route]:
        """For platforms with an address for each account, and with one for all."""
        return [
            Route(path, self._receive, methods=["GET", "POST"])
            for path in ("/platforms/{connector}/{account}", "/platforms/{connector}")
        ]

    async def _receive(self, request: Request) -> Response:
        place = request.path_params["connector"], request.path_params.get("account", "")
        try:
            answer = await self._answered(request, self._gates.find(place))
        except ClientDisconnect:
            return Response(status_code=400)  # nobody reads it
        except ApiError as error:
            return refuse(request.scope, error)
        if answer.refused:
            host = "" if request.client is None else request.client.host
            self._around.refuse(RefusedAttempt(answer.refused, host))
        if answer.status in {401, 503}:
            return refuse(request.scope, error_of(answer))
        return Response(
            answer.body, status_code=answer.status, media_type=answer.media_type
        )

    async def _answered(self, request: Request, gate: AnyGate | None) -> Answer:
        terms = gate.terms if isinstance(gate, SignedGate) else UNSIGNED
        if gate is None or request.method not in terms.methods:
            return UNTRUSTED
        if request.method != "POST":
            return await self._asked(gate, call_of(request, b""))
        if not gate.lets_in(request.headers):
            return UNTRUSTED
        settings = self._around.settings
        most = settings.max_body_bytes if terms.most_bytes is None else terms.most_bytes
        weight = weight_of(request.headers, most)
        if self._held + weight > MOST_BYTES:
            return LATER
        self._held += weight
        try:
            limits = msgspec.structs.replace(settings, max_body_bytes=most)
            body = await self._around.bodies.read(request, limits, terms.media_types)
            return await self._asked(gate, call_of(request, body))
        finally:
            self._held -= weight

    async def _asked(self, gate: AnyGate, call: Call) -> Answer:
        """Have a gate look at a request, and carry out what it lets in."""
        try:
            if not isinstance(gate, SignedGate):
                return OK if await self._around.take(gate, call.body) else LATER
            answer = await checked(gate, call)
            return await self._around.answer(gate, call) if answer is None else answer
        except BridgeError:
            return LATER  # it is being stopped


async def checked(gate: SignedGate, call: Call) -> Answer | None:
    """Have a gate look who brings a request; a long one keeps no other waiting."""
    if len(call.body) < LONG:
        return gate.check(call)
    return await asyncio.to_thread(gate.check, call)


def call_of(request: Request, body: bytes) -> Call:
    """Take a request apart."""
    return Call(
        method=request.method,
        query=without_twins(request.query_params.multi_items()),
        headers=without_twins(request.headers.items()),
        body=body,
    )


def without_twins(pairs: list[tuple[str, str]]) -> dict[str, str]:
    """Give what stands there once."""
    found = MultiDict(pairs)
    return {name: value for name, value in pairs if len(found.getlist(name)) == 1}


def weight_of(headers: Mapping[str, str], most: int) -> int:
    """Say how many bytes a request counts as; one that does not say, as the longest."""
    declared = headers.get("content-length", "")
    is_plain = declared.isdecimal() and len(declared) <= 15
    return max(LEAST, min(int(declared), most) if is_plain else most)


def error_of(answer: Answer) -> ApiError:
    """Say why nothing was taken: the same words for every gate, and for none."""
    if answer.status == 401:
        text = "missing or wrong secret; nothing was taken"
        return ApiError(401, text, code="bad_secret")
    wait = RETRY_LATER if answer.retry_after is None else answer.retry_after
    return ApiError(503, "not stored; bring it again", code="later", retry_after=wait)
