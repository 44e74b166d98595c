"""`POST /platforms/<connector>/<account>`: where a chat platform brings its messages.

Runs on the edge's loop. Who brings it is looked at before a byte of the body is read;
an address that nobody set looks from outside like a wrong secret. 200 is said when what
came is stored, and the platform brings it again until then.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping

import msgspec
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.routing import Route

from actors.ingress import RefusedAttempt
from connectors.crossing import BridgeError
from connectors.gates import Gate, Gates
from connectors.web.bodies import Bodies
from connectors.web.errors import RETRY_LATER, ApiError, refuse
from connectors.web.server import HttpSettings

# Chosen: with 1 MiB of body each, as much memory as the whole program takes.
MOST_AT_ONCE = 64
"""Bodies that are read at once."""


class Surroundings(msgspec.Struct, frozen=True):
    """What requests need of the server around them."""

    settings: HttpSettings
    bodies: Bodies
    refuse: Callable[[RefusedAttempt], None]
    take: Callable[[Gate, bytes], Awaitable[bool]]
    """Asks a gate, from the edge's loop."""


class GateKeeper:
    """The endpoint.

    Args:
        gates: whose they are.
        around: what requests need of the server.
    """

    def __init__(self, gates: Gates, around: Surroundings) -> None:
        self._gates = gates
        self._around = around
        self._reading = 0

    @property
    def routes(self) -> list[Route]:
        """The one route."""
        path = "/platforms/{connector}/{account}"
        return [Route(path, self._receive, methods=["POST"])]

    async def _receive(self, request: Request) -> Response:
        place = request.path_params["connector"], request.path_params["account"]
        gate = self._gates.find(place)
        try:
            await self._take(request, let_in(gate, request.headers))
        except ClientDisconnect:
            return Response(status_code=400)  # nobody reads it
        except ApiError as error:
            if error.status == 401:
                host = "" if request.client is None else request.client.host
                self._around.refuse(RefusedAttempt(error.code, host))
            return refuse(request.scope, error)
        return Response(status_code=200)

    async def _take(self, request: Request, gate: Gate) -> None:
        later = ApiError(
            503, "not stored; bring it again", code="later", retry_after=RETRY_LATER
        )
        if self._reading >= MOST_AT_ONCE:
            raise later
        self._reading += 1
        try:
            body = await self._around.bodies.read(request, self._around.settings)
            is_stored = await self._stored(gate, body)
        finally:
            self._reading -= 1
        if not is_stored:
            raise later

    async def _stored(self, gate: Gate, body: bytes) -> bool:
        try:
            return await self._around.take(gate, body)
        except BridgeError:
            return False  # it is being stopped


def let_in(gate: Gate | None, headers: Mapping[str, str]) -> Gate:
    """Give a gate to whom it lets in.

    Raises:
        ApiError: it does not, or there is none.
    """
    if gate is None or not gate.lets_in(headers):
        text = "missing or wrong secret; nothing was taken"
        raise ApiError(401, text, code="bad_secret")
    return gate
