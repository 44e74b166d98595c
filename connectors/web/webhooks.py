"""`POST /webhooks/<name>`: a signed request that starts agents' tasks.

Runs on the edge's loop. The body is read within its limits, then its signature is
checked, and only then anything is read of it. A name that nobody set is checked by a
key that nobody knows: from outside it looks like a wrong signature.

Not done: shutting out an address after wrong signatures. Behind a proxy everybody has
the same one, so a stranger could shut the sender out; and a key is not guessed.
"""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Awaitable, Callable, Mapping
from fnmatch import fnmatchcase

import msgspec
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.routing import Route

from actors.ingress import RefusedAttempt
from actors.messages import Address
from actors.rules.webhook_signature import (
    SHORTEST_KEY,
    Keys,
    Reason,
    Rejected,
    Scheme,
    verify,
)
from actors.rules.webhook_task import NoJsonError, Told, read, task_text
from actors.triggering import Trigger, Triggered
from actors.webhook_metrics import WebhookMetrics
from connectors.web.bodies import Bodies
from connectors.web.errors import EXPECTED_ERRORS, ApiError, refuse, translate
from connectors.web.server import HttpSettings
from runtime.clock import Clock
from runtime.logs import EventLog

LOG = EventLog("webhooks")

UNKNOWN = "(unknown)"
"""What is counted for a name that is not in the settings."""

# Chosen: with 1 MiB of body each, as much memory as the whole program takes.
MOST_AT_ONCE = 64
"""Bodies of webhooks that are read at once; strangers' count, too."""

PING = "ping"
"""GitHub's event that only tells that the webhook was made."""

TEXTS: dict[Reason, str] = {
    "bad_signature": "missing or wrong signature; nothing was taken",
    "stale": "the signature is right, but its time is too long ago: is the sender's"
    " clock right, or is this a repeated request?",
    "future": "the signature is right, but its time is yet to come: is the sender's"
    " clock right?",
}


class Door(msgspec.Struct, frozen=True, kw_only=True):
    """One webhook of the settings."""

    scheme: Scheme
    keys: Keys
    window: float
    """Seconds by which the sender's clock may differ."""

    agents: tuple[str, ...]
    address: Address
    platform: str
    task: str
    events: tuple[str, ...]
    fields: tuple[str, ...]
    max_chars: int
    is_group: bool
    per_minute: int
    max_open: int

    def wants(self, event: str) -> bool:
        """Tell whether an event starts a task."""
        if not self.events:
            return event != PING
        return any(fnmatchcase(event, pattern) for pattern in self.events)


class Doors(msgspec.Struct, frozen=True):
    """All webhooks, and the way to whoever takes them in."""

    find: Callable[[], Mapping[str, Door]]
    """Gives them by name, as the settings are now. Called on the edge's thread."""

    hand_in: Callable[[Trigger], Awaitable[Triggered]]
    """Has a delivery stored; in a trio task."""

    metrics: WebhookMetrics


class Receipt(msgspec.Struct, frozen=True, omit_defaults=True):
    """The body of the answer to a delivery that was taken."""

    id: str
    """The sender's own id of it; empty if it gave none."""

    messages: tuple[str, ...] = ()
    """Ids of the tasks it started, as `callboard queue show` takes them."""

    duplicate: bool = False
    """Whether it had come before; these are the tasks of then."""

    ignored: bool = False
    """Whether no task is wanted for such an event."""


class Outside(msgspec.Struct, frozen=True):
    """What requests need of the server around them."""

    settings: HttpSettings
    bodies: Bodies
    clock: Clock
    refuse: Callable[[RefusedAttempt], None]
    hand_in: Callable[[Trigger], Awaitable[Triggered]]
    """As of `Doors`, but from the edge's loop."""


class WebhookDesk:
    """The endpoint.

    Args:
        doors: the webhooks.
        outside: what requests need of the server.
    """

    def __init__(self, doors: Doors, outside: Outside) -> None:
        self._doors = doors
        self._outside = outside
        self._reading = 0
        # New with each start: what nobody can sign with.
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
            self._doors.metrics.received(label, "gone")
            return Response(status_code=400)  # nobody reads it
        except ApiError as error:
            self._doors.metrics.received(label, error.code)
            return self._refuse(request, error)
        self._doors.metrics.received(label, outcome_of(receipt))
        return Response(
            msgspec.json.encode(receipt),
            status_code=202,
            media_type="application/json",
        )

    async def _take(self, request: Request, name: str, door: Door | None) -> Receipt:
        if self._reading >= MOST_AT_ONCE:
            text = "too many webhooks at once; send it again later"
            raise ApiError(503, text, code="overloaded", retry_after=1.0)
        self._reading += 1
        try:
            outside = self._outside
            body = await outside.bodies.read(request, outside.settings)
            return await self._understand(request, name, door, body)
        finally:
            self._reading -= 1

    async def _understand(
        self, request: Request, name: str, door: Door | None, body: bytes
    ) -> Receipt:
        # In a thread, as hashing a MiB would keep all others waiting.
        found = await asyncio.to_thread(
            verify,
            "standard" if door is None else door.scheme,
            self._nobodys if door is None else door.keys,
            request.headers,
            body,
            now=self._outside.clock.wall(),
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
            return Receipt(shown_id, ignored=True)
        taken = await self._hand_in(trigger_of(name, door, told, found.key))
        return Receipt(shown_id, taken.ids, duplicate=not taken.is_new)

    async def _hand_in(self, trigger: Trigger) -> Triggered:
        try:
            return await self._outside.hand_in(trigger)
        except EXPECTED_ERRORS as error:
            raise translate(error) from error

    def _refuse(self, request: Request, error: ApiError) -> Response:
        if error.status == 401:
            client = request.client
            host = "" if client is None else client.host
            self._outside.refuse(RefusedAttempt(error.code, host))
        return refuse(request.scope, error)


def trigger_of(name: str, door: Door, told: Told, key: str) -> Trigger:
    """Say what is to be started."""
    return Trigger(
        webhook=name,
        key=key,
        agents=door.agents,
        address=door.address,
        platform=door.platform,
        text=task_text(door.task, told, door.fields, door.max_chars),
        is_group=door.is_group,
        per_minute=door.per_minute,
        max_open=door.max_open,
    )


def outcome_of(receipt: Receipt) -> str:
    """Say in one word what became of a delivery."""
    if receipt.ignored:
        return "ignored"
    return "duplicate" if receipt.duplicate else "accepted"
