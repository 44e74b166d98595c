"""The HTTP server as a transport; the kernel's side.

Requests live on the edge's loop (`completions.py`). This side gives them the
answers, and learns whether a request still waits. No state is shared.

Programs of this API take text only, so a small file of an answer is put into the text:
a Markdown link with all bytes in a `data:` address (RFC 2397).
"""

from __future__ import annotations

import contextlib
import socket
from base64 import b64encode
from collections.abc import Callable
from functools import partial

import msgspec
import trio
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from actors.errors import DeliveryBusyError, DeliveryError, DeliveryRefusedError
from actors.journal.attachments import not_sent
from actors.messages.deliveries import GONE, Abilities, Delivery, Draft, TakesFiles
from actors.messages.inbound import Inbound
from actors.transport import Earlier, Ingress
from connectors.asyncio_bridge.bridge import Bridge, BridgeError
from connectors.chat.platforms import (
    Gates,
    IncomingWebhooks,
    Operations,
    TransportParts,
)
from connectors.chat.server_transport import ServerTransport
from connectors.config.app import HttpConfig
from connectors.files.blobs import BlobFolder, bytes_of
from connectors.web.openai import protocol as wire
from connectors.web.openai.completions import CompletionContext, CompletionsEndpoint
from connectors.web.operations import (
    front_route,
    operation_routes,
    requests_counter,
)
from connectors.web.peers import Peers, RestEndpoint
from connectors.web.server import (
    HttpSettings,
    http_settings,
    make_app,
    open_socket,
    serve,
    unknown_model,
)
from connectors.web.webhooks import PlatformEndpoint, WebhookEndpoint
from runtime.clock import Clock
from runtime.ids import IdSource
from runtime.telemetry.metrics import Counter

# Chosen: programs send it back with each further question, a third larger, and a
# request has 1 MiB by default.
MOST = 131_072
"""Most bytes of a file that is put into the text."""

HERE = """\
Callboard's agents answer programs here, as OpenAI's API does. The base URL for clients
ends with /v1, and the model is an agent's name:

/v1/models            the agents
/v1/chat/completions  ask one of them
/healthz, /readyz     the process runs; it works, or why not

To talk with them in a browser, run `callboard login`: it says where the page is.
"""

TAKES = TakesFiles(max_bytes=MOST, max_image_bytes=MOST)


async def inlined(delivery: Delivery, blobs: BlobFolder | None) -> Delivery:
    """Put the file of a delivery into its text.

    Raises:
        DeliveryRefusedError: its bytes are gone.
        DeliveryBusyError: they cannot be read now.
    """
    file = delivery.file
    if file is None:
        return delivery
    path = bytes_of(blobs, file)
    try:
        content = await trio.to_thread.run_sync(path.read_bytes)
    except OSError as error:
        text = f"the file cannot be read now: {error.strerror}"
        raise DeliveryBusyError(text) from error
    encoded = b64encode(content).decode()
    sign = "!" if file.kind == "image" else ""
    name = file.name.replace("[", "(").replace("]", ")")
    link = f"{sign}[{name}](data:{file.media_type};base64,{encoded})"
    return msgspec.structs.replace(
        delivery, text=f"{delivery.text}\n{link}".strip(), file=None
    )


async def all_inlined(known: Earlier, blobs: BlobFolder | None) -> Earlier:
    """Put the files of earlier answers into their texts, as far as they are kept."""
    said: list[Delivery] = []
    for each in known.deliveries:
        try:
            said.append(await inlined(each, blobs))
        except DeliveryError as error:
            told = "" if each.file is None else not_sent(each.file, str(error))
            said.append(msgspec.structs.replace(each, text=told, file=None))
    return msgspec.structs.replace(known, deliveries=tuple(said))


class HttpTransport(ServerTransport):
    """The HTTP server as a chat account; implements `actors.transport.Transport`.

    Args:
        settings: where it listens and what a request may cost.
        bridge: an open bridge; its loop runs the server.
        agents: names of the agents that can be asked. Called on the edge's
            thread: must be quick, and give a tuple that nobody changes.
        operations: what `/readyz` and `/metrics` show.
    """

    presence = None
    """It shows messages only."""

    def __init__(
        self,
        settings: HttpSettings,
        bridge: Bridge,
        *,
        agents: Callable[[], tuple[str, ...]],
        operations: Operations,
        clock: Clock,
        ids: IdSource,
    ) -> None:
        super().__init__(partial(open_socket, settings))
        self._settings = settings
        self._doors: IncomingWebhooks | None = None
        self._gates = Gates()
        self._blobs: BlobFolder | None = None
        self._requests: Counter | None = None
        self._bridge = bridge
        self._agents = agents
        self._operations = operations
        self._clock = clock
        self._ids = ids
        self._peers: Peers | None = None
        self._completions: CompletionsEndpoint | None = None
        """Only touched on the edge's thread."""

    def use(self, parts: TransportParts) -> None:
        """Serve what the company has beside agents: files, webhooks, platforms, nodes.

        Before `listen`.
        """
        self._blobs, self._doors = parts.blobs, parts.doors
        self._gates, self._peers = parts.gates, parts.peers
        self._requests = parts.once(requests_counter)

    async def listen(self, ingress: Ingress) -> None:
        """Serve until cancelled; then end the requests that wait and close the port.

        Raises:
            ListenError: the address cannot be listened on.
            BridgeClosedError: the edge's loop is not running or died.
        """
        with self.listening() as sock:
            self.announce(sock)
            await self._bridge.call(self._serve, ingress, sock)

    @property
    def abilities(self) -> Abilities:
        """A request takes each answer once, and nothing but answers."""
        return Abilities(
            is_idempotent=True, counts_answers=True, shows_asides=False, files=TAKES
        )

    async def deliver(self, delivery: Delivery) -> str:
        """Give an answer to the request that waits for it.

        Raises:
            DeliveryRefusedError: no request waits for it any more.
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
        # A draft that cannot cross is not lost: its delivery has the same text.
        with contextlib.suppress(BridgeError):
            self._bridge.post_edge(self._show_draft, draft)

    async def settle(self, inbound: Inbound, reason: str) -> None:
        """End the request that waits: no more answers will come."""
        with contextlib.suppress(BridgeError):
            await self._bridge.call(self._settle, inbound.correlation_id, reason)

    async def _serve(self, ingress: Ingress, sock: socket.socket) -> None:
        peers = self._peers

        async def enter(inbound: Inbound) -> bool:
            if peers is None:
                return await ingress.accept(inbound)
            with peers.entering(self._settings.name, inbound.address.chat):
                return await ingress.accept(inbound)

        async def earlier(platform_id: str) -> Earlier | None:
            found = await ingress.earlier(self._settings.name, platform_id)
            return None if found is None else await all_inlined(found, self._blobs)

        context = CompletionContext(
            settings=self._settings,
            bridge=self._bridge,
            clock=self._clock,
            record_attempt=ingress.refuse,
            agents=self._agents,
            ids=self._ids.branch(),
            accept=ingress.accept if peers is None else enter,
            earlier=earlier,
            peers=peers,
        )
        completions = self._completions = CompletionsEndpoint(context)
        webhooks = self._doors and WebhookEndpoint(self._doors, context)
        rest = [
            *(webhooks.routes if webhooks else ()),
            *PlatformEndpoint(self._gates, context).routes,
        ]
        passer, name = completions.passer, self._settings.name
        if passer is not None:
            most = self._settings.max_body_bytes
            other = RestEndpoint(make_app(rest), passer, name, most)
            rest = [Route("/{path:path}", other)]
        app = make_app(
            [
                Route("/v1/chat/completions", completions, methods=["POST"]),
                *model_routes(context, int(self._clock.wall())),
                *operation_routes(self._operations, self._bridge, context.refusal),
                front_route(HERE),
                *rest,
            ]
        )
        try:
            await serve(app, sock, self._settings, completions.stop, self._requests)
        finally:
            if passer is not None:
                await passer.aclose()

    def give_up(self, reason: str) -> None:
        """End all requests that wait for an answer with 503."""
        with contextlib.suppress(BridgeError):
            self._bridge.post_edge(self._give_up, reason)

    def _give_up(self, reason: str) -> None:
        if self._completions is not None:
            self._completions.give_up(reason, "unavailable")

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


def model_routes(context: CompletionContext, started: int) -> list[Route]:
    """Give the two routes that list agents as models.

    Args:
        started: Unix seconds, shown as the time the models were made.
    """

    async def list_models(request: Request) -> Response:
        refused = context.refusal(request)
        if refused is not None:
            return refused
        models = tuple(wire.AgentModel(name, started) for name in context.agents())
        return json_response(wire.AgentModelList(models))

    async def show_model(request: Request) -> Response:
        name: str = request.path_params["name"]
        refused, known = context.refusal(request), context.agents()
        if refused is None and name not in known:
            refused = context.refuse(request, unknown_model(name, known))
        return refused or json_response(wire.AgentModel(name, started))

    return [
        Route("/v1/models", list_models),
        Route("/v1/models/{name:path}", show_model),
    ]


def json_response(body: msgspec.Struct) -> Response:
    """Write a Struct as the body of a response."""
    return Response(msgspec.json.encode(body), media_type="application/json")


def make_transport(
    name: str, config: HttpConfig, parts: TransportParts
) -> HttpTransport:
    """Make the HTTP server of one connector."""
    key = config.api_key.reveal() if config.api_key is not None else ""
    settings = msgspec.structs.replace(http_settings(name, config), api_key=key)
    transport = HttpTransport(
        settings,
        parts.bridge,
        agents=parts.agents,
        operations=parts.operations,
        clock=parts.clock,
        ids=parts.ids,
    )
    transport.use(parts)
    return transport
