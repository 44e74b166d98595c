"""What other programs send: signed webhooks, and the messages of chat platforms.

Runs on the edge's loop. `POST /webhooks/<name>` is a signed request that starts tasks
of agents. The body is read within its limits, then its signature is checked, and only
then it is parsed. An unknown name is checked by a random key: from outside it looks
like a wrong signature.

Not done: blocking an address after wrong signatures. Behind a proxy all senders have
the same address, so a stranger could block the real one; and keys cannot be guessed.

Chat platforms deliver their messages to `/platforms/<connector>/<account>`. The sender
is checked before the body is read, as far as the headers allow, and again before the
message is handed on. An unknown address looks from outside like a wrong secret. The
answer is 200 once the message is stored; platforms deliver it again until then.
"""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Mapping

import msgspec
from starlette.datastructures import MultiDict
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.routing import Route

from actors.transport import RefusedAttempt
from actors.webhooks.messages import Trigger
from actors.webhooks.signature import SHORTEST_KEY, Keys, Reason, Rejected, verify
from actors.webhooks.task import NoJsonError, WebhookPayload, read, task_text
from connectors.asyncio_bridge.bridge import BridgeError
from connectors.chat.platforms import (
    AnyGate,
    Gates,
    IncomingWebhook,
    IncomingWebhooks,
    PlatformAnswer,
    PlatformCall,
    SignedGate,
    Terms,
)
from connectors.web.request import RequestContext, client_host, read_traceparent
from connectors.web.server import RETRY_LATER, ApiError, refuse
from runtime.telemetry.logs import EventLog

LOG = EventLog("webhooks")

UNKNOWN = "(unknown)"
"""The metric label of names that are not in the settings."""

# Chosen: with 1 MiB of body each, as much memory as the whole program takes.
MOST_AT_ONCE = 64
"""Bodies of webhooks that are read at once, those of strangers included."""

TEXTS: dict[Reason, str] = {
    "bad_signature": "missing or wrong signature; nothing was taken",
    "stale": "the signature is right, but its time is too long ago: is the sender's"
    " clock right, or is this a repeated request?",
    "future": "the signature is right, but its time is yet to come: is the sender's"
    " clock right?",
}


class WebhookReceipt(msgspec.Struct, frozen=True, omit_defaults=True):
    """The body of the answer to an accepted delivery."""

    id: str
    """The sender's own id of the delivery; empty: it sent none."""

    messages: tuple[str, ...] = ()
    """Ids of the tasks that it started, for `callboard queue show`."""

    duplicate: bool = False
    """Whether the delivery came before; `messages` are the tasks of then."""

    ignored: bool = False
    """Whether the settings want no task for such an event."""


class WebhookEndpoint:
    """The endpoint."""

    def __init__(self, doors: IncomingWebhooks, context: RequestContext) -> None:
        self._doors = doors
        self._context = context
        self._reading = 0
        # New with each start: nobody can sign with them.
        self._nobodys: Keys = (
            secrets.token_bytes(2 * SHORTEST_KEY),
            secrets.token_bytes(2 * SHORTEST_KEY),
        )

    @property
    def routes(self) -> list[Route]:
        """The one route."""
        return [Route("/webhooks/{name}", self._receive, methods=["POST"])]

    async def _receive(self, request: Request) -> Response:
        name: str = request.path_params["name"]
        door = self._doors.find().get(name)
        label = name if door is not None else UNKNOWN
        try:
            receipt = await self._take(request, name, door)
        except ClientDisconnect:
            self._doors.metrics.received.add(1, label, "gone")
            return Response(status_code=400)  # the client has gone
        except ApiError as error:
            self._doors.metrics.received.add(1, label, error.code)
            return self._context.refuse(request, error)
        self._doors.metrics.received.add(1, label, outcome_of(receipt))
        return Response(
            msgspec.json.encode(receipt),
            status_code=202,
            media_type="application/json",
        )

    async def _take(
        self, request: Request, name: str, door: IncomingWebhook | None
    ) -> WebhookReceipt:
        if self._reading >= MOST_AT_ONCE:
            text = "too many webhooks at once; send it again later"
            raise ApiError(503, text, code="overloaded", retry_after=1.0)
        self._reading += 1
        try:
            context = self._context
            body = await context.bodies.read(request, context.settings)
            return await self._understand(request, name, door, body)
        finally:
            self._reading -= 1

    async def _understand(
        self, request: Request, name: str, door: IncomingWebhook | None, body: bytes
    ) -> WebhookReceipt:
        # In a thread: hashing a MiB would block the loop.
        found = await asyncio.to_thread(
            verify,
            "standard" if door is None else door.scheme,
            self._nobodys if door is None else door.keys,
            request.headers,
            body,
            now=self._context.clock.wall(),
            window=0.0 if door is None else door.window,
        )
        if door is None or isinstance(found, Rejected):
            reason = found.reason if isinstance(found, Rejected) else "bad_signature"
            raise ApiError(401, TEXTS[reason], code=reason)
        try:
            told = await asyncio.to_thread(read, name, found.event, body)
        except NoJsonError as error:
            raise ApiError(400, str(error), code="invalid_json") from error
        shown_id = found.delivery or found.key
        if not door.wants(told.event):
            LOG.info("webhook ignored", webhook=name, what=told.event)
            return WebhookReceipt(shown_id, ignored=True)
        trigger = msgspec.structs.replace(
            trigger_of(self._doors.frame_key, name, door, told, found.key),
            traceparent=read_traceparent(request.headers.get("traceparent", "")),
        )
        taken = await self._context.ask(self._doors.hand_in, trigger)
        return WebhookReceipt(shown_id, taken.ids, duplicate=not taken.is_new)


def trigger_of(
    frame_key: bytes, name: str, door: IncomingWebhook, told: WebhookPayload, key: str
) -> Trigger:
    """Make the request to start a webhook's tasks."""
    return Trigger(
        webhook=name,
        key=key,
        agents=door.agents,
        address=door.address,
        platform=door.platform,
        text=task_text(frame_key, door.task, told, door.fields, door.max_chars),
        is_group=door.is_group,
        per_minute=door.per_minute,
        max_open=door.max_open,
    )


def outcome_of(receipt: WebhookReceipt) -> str:
    """Name the outcome of a delivery, as a metric label."""
    if receipt.ignored:
        return "ignored"
    return "duplicate" if receipt.duplicate else "accepted"


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
