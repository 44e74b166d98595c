"""The HTTP channel: programs that speak OpenAI's API talk to agents.

`HttpTransport` is the kernel's side of it. The requests themselves live on the
edge's loop (`completions.py`); this side hands over what was said and learns
whether anybody is still there to hear it. No state is shared.
"""

from __future__ import annotations

import contextlib
from functools import partial
from typing import TYPE_CHECKING

import msgspec
import trio
from starlette.responses import Response
from starlette.routing import Route

from actors.deliveries import GONE, Abilities
from actors.errors import DeliveryBusyError, DeliveryRefusedError
from connectors.crossing import BridgeError
from connectors.gates import Answer, Call, Gate, Gates, SignedGate
from connectors.web import openai_wire as wire
from connectors.web.completions import Completions, Desk
from connectors.web.errors import ApiError, refuse, unknown_model
from connectors.web.gate_keeper import GateKeeper, Surroundings
from connectors.web.inlining import TAKES, all_inlined, inlined
from connectors.web.operations import operation_routes, tree_route
from connectors.web.server import check_access, make_app, open_socket, serve
from connectors.web.webhooks import Outside, WebhookDesk
from runtime.ids import IdSource

if TYPE_CHECKING:
    import socket
    from collections.abc import Callable

    from starlette.requests import Request

    from actors.deliveries import Delivery, Draft, Typing
    from actors.ingress import Earlier
    from actors.messages import Inbound
    from actors.transport import Ingress
    from actors.triggering import Trigger, Triggered
    from connectors.blobs import BlobFolder
    from connectors.bridge import Bridge
    from connectors.web.bodies import Bodies
    from connectors.web.operations import Operations
    from connectors.web.server import HttpSettings
    from connectors.web.webhooks import Doors
    from runtime.clock import Clock


class HttpTransport:
    """The HTTP server as a chat account; implements `actors.transport.Transport`.

    Args:
        settings: where it listens and what a request may cost.
        bridge: an open bridge; its loop runs the server.
        agents: names of the agents that can be asked. Called on the edge's
            thread: must be quick, and give a tuple that nobody changes.
        operations: what `/readyz` and `/metrics` show.
        clock: the time of messages and ids.
        doors: the webhooks that come in; None: there are none.
    """

    presence = None
    """It can show nothing but messages."""

    def __init__(
        self,
        settings: HttpSettings,
        bridge: Bridge,
        *,
        agents: Callable[[], tuple[str, ...]],
        operations: Operations,
        clock: Clock,
        doors: Doors | None = None,
    ) -> None:
        self._settings = settings
        self._doors = doors
        self._gates = Gates()
        self._blobs: BlobFolder | None = None
        self._bridge = bridge
        self._agents = agents
        self._operations = operations
        self._clock = clock
        self._bound = trio.Event()
        self._address = ("", 0)
        self._reserved: socket.socket | None = None
        self._completions: Completions | None = None
        """Only touched on the edge's thread."""

    def keep_files(self, blobs: BlobFolder | None) -> None:
        """Say where the bytes of files lie that agents send; before `listen`."""
        self._blobs = blobs

    def open_gates(self, gates: Gates) -> None:
        """Have taken, from the next `listen` on, what platforms bring."""
        self._gates = gates

    def reserve(self) -> None:
        """Take the address now, so that one that is taken stops the program's start.

        Clients that connect before `listen` wait. Call `release` in the end.

        Raises:
            ListenError: the address cannot be listened on.
        """
        self._reserved = open_socket(self._settings)

    def release(self) -> None:
        """Give back what `reserve` took, if `listen` has not used it."""
        if self._reserved is not None:
            self._reserved.close()
            self._reserved = None

    @property
    def is_reserved(self) -> bool:
        """Whether the address is taken, and not listened on yet."""
        return self._reserved is not None

    async def wait_listening(self) -> tuple[str, int]:
        """Wait until clients can connect; gives host and port."""
        await self._bound.wait()
        return self._address

    async def listen(self, ingress: Ingress) -> None:
        """Serve until cancelled; then end what waits and close the port.

        Raises:
            ListenError: the address cannot be listened on.
            BridgeClosedError: the edge's loop is not running or died.
        """
        sock = self._reserved or open_socket(self._settings)
        self._reserved = None
        try:
            host, port = sock.getsockname()[:2]
            self._address = (str(host), int(port))
            self._bound.set()
            await self._bridge.call(self._serve, ingress, sock)
        finally:
            sock.close()
            self._bound = trio.Event()

    @property
    def abilities(self) -> Abilities:
        """Say that a request takes each answer once, and nothing but answers."""
        return Abilities(
            is_idempotent=True, counts_answers=True, shows_asides=False, files=TAKES
        )

    def show_typing(self, typing: Typing) -> None:
        """Do nothing: `abilities` says so; see the port."""

    async def look_up(self, delivery: Delivery) -> str | None:
        """Refuse: there is no need to ask; see the port.

        Raises:
            DeliveryBusyError: always; `abilities` says that it is not to be asked.
        """
        raise DeliveryBusyError(f"{delivery.id} is simply said again")

    async def deliver(self, delivery: Delivery) -> str:
        """Give an answer to the request that waits for it.

        Raises:
            DeliveryRefusedError: nobody waits for it any more.
            DeliveryBusyError: its file cannot be read now.
        """
        said = await inlined(delivery, self._blobs)
        try:
            is_heard = await self._bridge.call(self._deliver, said)
        except BridgeError as error:
            raise DeliveryRefusedError(GONE) from error
        if not is_heard:
            raise DeliveryRefusedError(GONE)
        return f"chatcmpl-{delivery.correlation_id}"

    def show_draft(self, draft: Draft) -> None:
        """Stream a piece of an answer to the request that waits for it."""
        # A draft that cannot cross is not lost: its delivery says it again.
        with contextlib.suppress(BridgeError):
            self._bridge.post_edge(self._show_draft, draft)

    async def settle(self, correlation_id: str, reason: str) -> None:
        """End the request that waits, because nothing more will be said."""
        with contextlib.suppress(BridgeError):
            await self._bridge.call(self._settle, correlation_id, reason)

    async def _serve(self, ingress: Ingress, sock: socket.socket) -> None:
        async def accept(inbound: Inbound) -> bool:
            return await self._bridge.ask_kernel(ingress.accept, inbound)

        async def known(platform_id: str) -> Earlier | None:
            found = await ingress.earlier(self._settings.name, platform_id)
            return None if found is None else await all_inlined(found, self._blobs)

        async def earlier(platform_id: str) -> Earlier | None:
            return await self._bridge.ask_kernel(known, platform_id)

        desk = Desk(
            settings=self._settings,
            agents=self._agents,
            accept=accept,
            earlier=earlier,
            refuse=ingress.refuse,
            clock=self._clock,
            ids=IdSource(self._clock),
        )
        completions = self._completions = Completions(desk)
        started = int(self._clock.wall())
        guard = partial(refusal, desk)
        app = make_app(
            [
                Route("/v1/chat/completions", completions, methods=["POST"]),
                *model_routes(desk, started),
                *operation_routes(self._operations, self._bridge, guard),
                tree_route(self._operations, guard),
                *self._webhook_routes(ingress, completions.bodies),
                *self._gate_routes(ingress, completions.bodies),
            ]
        )
        await serve(app, sock, self._settings, completions.stop)

    def _webhook_routes(self, ingress: Ingress, bodies: Bodies) -> list[Route]:
        doors = self._doors
        if doors is None:
            return []

        async def hand_in(trigger: Trigger) -> Triggered:
            return await self._bridge.ask_kernel(doors.hand_in, trigger)

        outside = Outside(
            settings=self._settings,
            bodies=bodies,
            clock=self._clock,
            refuse=ingress.refuse,
            hand_in=hand_in,
        )
        return WebhookDesk(doors, outside).routes

    def _gate_routes(self, ingress: Ingress, bodies: Bodies) -> list[Route]:
        async def take(gate: Gate, body: bytes) -> bool:
            return await self._bridge.ask_kernel(gate.take, body)

        async def ask(gate: SignedGate, call: Call) -> Answer:
            return await self._bridge.ask_kernel(gate.answer, call)

        around = Surroundings(
            settings=self._settings,
            bodies=bodies,
            refuse=ingress.refuse,
            take=take,
            answer=ask,
        )
        return GateKeeper(self._gates, around).routes

    async def _deliver(self, delivery: Delivery) -> bool:
        return self._completions is not None and self._completions.waiting.deliver(
            delivery
        )

    def _show_draft(self, draft: Draft) -> None:
        if self._completions is not None:
            self._completions.waiting.draft(draft)

    async def _settle(self, correlation_id: str, reason: str) -> None:
        if self._completions is not None:
            self._completions.waiting.settle(correlation_id, reason)


def refusal(desk: Desk, request: Request) -> Response | None:
    """Give the refusal for who may not ask, or None; it is put on record."""
    try:
        check_access(request, desk.settings)
    except ApiError as error:
        desk.note_refused(request.scope, error)
        return refuse(request.scope, error)
    return None


def model_routes(desk: Desk, started: int) -> list[Route]:
    """Give the two routes that list agents as models.

    Args:
        desk: settings and agents.
        started: Unix seconds, shown as the time the models were made.
    """

    async def list_models(request: Request) -> Response:
        refused = refusal(desk, request)
        if refused is not None:
            return refused
        models = tuple(wire.Model(name, started) for name in desk.agents())
        return json_response(wire.ModelList(models))

    async def show_model(request: Request) -> Response:
        name: str = request.path_params["name"]
        try:
            check_access(request, desk.settings)
            known = desk.agents()
            if name not in known:
                raise unknown_model(name, known)
        except ApiError as error:
            desk.note_refused(request.scope, error)
            return refuse(request.scope, error)
        return json_response(wire.Model(name, started))

    return [
        Route("/v1/models", list_models),
        Route("/v1/models/{name:path}", show_model),
    ]


def json_response(body: msgspec.Struct) -> Response:
    """Write a Struct as the body of a response."""
    return Response(msgspec.json.encode(body), media_type="application/json")
