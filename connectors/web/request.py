"""What all requests go through: access, body, questions to the kernel, refusals.

Lives on the edge's loop. `RequestContext` is what a request needs of its server; the
endpoints of OpenAI's API, webhooks and platform calls use it as it is, the page and the
ElizaOS channel add what they need.
"""

from __future__ import annotations

import asyncio
import hmac
import re
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar, TypeVarTuple

from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Scope

from actors.transport import RefusedAttempt
from connectors.asyncio_bridge.bridge import Bridge
from connectors.web.server import (
    EXPECTED_ERRORS,
    LOOPBACK_NAMES,
    RETRY_LATER,
    ApiError,
    HttpSettings,
    refuse,
    translate,
)
from runtime.clock import Clock

T = TypeVar("T")
Ts = TypeVarTuple("Ts")

TRACEPARENT = re.compile(
    r"(?!ff)[0-9a-f]{2}-(?!0{32})([0-9a-f]{32})-(?!0{16})([0-9a-f]{16})-([0-9a-f]{2})"
)
"""Source: W3C Trace Context, section 3.2; later versions may have more behind it."""

LONGEST_TRACEPARENT = 512
"""Characters that are looked at."""


def read_traceparent(header: str) -> str:
    """Read which step of a caller's trace a request is a part of; empty: of none."""
    found = TRACEPARENT.match(header[:LONGEST_TRACEPARENT])
    if found is None or header[found.end() :][:1] not in {"", "-"}:
        return ""
    return "00-{}-{}-{}".format(*found.groups())


JSON = ("application/json",)
"""The media type of bodies, if nothing else is said."""


class RequestBodies:
    """Reads bodies, and refuses those still on their way when the server stops."""

    def __init__(self) -> None:
        self._readers: set[asyncio.Task[Any]] = set()
        self._is_stopping = False

    def __len__(self) -> int:
        """Count the bodies that are being read."""
        return len(self._readers)

    def stop(self) -> None:
        """Refuse the bodies that are not here yet."""
        self._is_stopping = True
        for reader in self._readers:
            reader.cancel()

    async def read(
        self, request: Request, settings: HttpSettings, media: tuple[str, ...] = JSON
    ) -> bytes:
        """Read the body of a request, in the task of that request.

        Raises:
            ApiError: see `read_body`; 503 if the server stops meanwhile.
            ClientDisconnect: the client has closed the connection.
        """
        reader = asyncio.current_task()
        if reader is None:
            raise RuntimeError("a body is read by the task of its request")
        self._readers.add(reader)
        try:
            return await read_body(request, settings, media)
        except asyncio.CancelledError:
            if not self._is_stopping:
                raise
            reader.uncancel()  # `stop` cancelled it: the request gets an answer
            text = "the server is stopping; nothing was taken"
            wait = RETRY_LATER
            raise ApiError(503, text, code="stopping", retry_after=wait) from None
        finally:
            self._readers.discard(reader)


@dataclass(kw_only=True)
class RequestContext:
    """What every request needs of the server that it came to."""

    settings: HttpSettings
    bridge: Bridge
    clock: Clock
    record_attempt: Callable[[RefusedAttempt], None]
    """Puts on record that somebody was not let in; any thread may call it."""

    bodies: RequestBodies = field(default_factory=RequestBodies)

    async def ask(self, fn: Callable[[*Ts], Awaitable[T]], *args: *Ts) -> T:
        """Run a function of the kernel's side, and give its result.

        Raises:
            ApiError: it was refused, or failed.
        """
        try:
            return await self.bridge.ask_kernel(fn, *args, owner=self.settings.name)
        except EXPECTED_ERRORS as error:
            raise translate(error) from error

    def record(self, scope: Scope, error: ApiError) -> None:
        """Put on record that somebody was not let in, if the error says so."""
        if error.status in {401, 403}:
            self.record_attempt(RefusedAttempt(error.code, client_host(scope)))

    def refuse(self, request: Request, error: ApiError) -> Response:
        """Refuse a request: in the log, on record, and to its client."""
        self.record(request.scope, error)
        return refuse(request.scope, error)

    def refusal(self, request: Request) -> Response | None:
        """Give the refusal of a request without access, or None."""
        try:
            check_access(request, self.settings)
        except ApiError as error:
            return self.refuse(request, error)
        return None


def client_host(scope: Scope | Mapping[str, Any], unknown: str = "") -> str:
    """Give the address that a request comes from."""
    client = scope.get("client")
    return client[0] if client else unknown


def check_access(request: Request, settings: HttpSettings) -> None:
    """Refuse a request without access.

    Raises:
        ApiError: 401 for a missing or wrong key; 403 for a foreign host name.
    """
    if settings.api_key:
        given = request.headers.get("authorization", "")
        scheme, _, key = given.partition(" ")
        # Why bytes: compare_digest refuses text that is not ASCII.
        is_right = hmac.compare_digest(key.strip().encode(), settings.api_key.encode())
        if scheme.lower() != "bearer" or not is_right:
            text = "missing or wrong API key; send 'Authorization: Bearer <key>'"
            raise ApiError(401, text, code="invalid_api_key")
        return
    host = request.headers.get("host", "")
    name = host if host.endswith("]") else host.rpartition(":")[0] or host
    # Why: without a key, a foreign web page could reach this server by pointing
    # its own name at this machine (DNS rebinding).
    if name and name.lower() not in (*LOOPBACK_NAMES, settings.host):
        text = f"host {name!r} is not this machine; set api_key to allow other names"
        raise ApiError(403, text, code="forbidden_host")


async def read_body(
    request: Request, settings: HttpSettings, accepted: tuple[str, ...] = JSON
) -> bytes:
    """Read the body of a request within the limits of size and time.

    Raises:
        ApiError: 415 of another media type or packed, 413 too long, 408 too slow.
        ClientDisconnect: the client has closed the connection.
    """
    media = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if media not in accepted:
        text = f"content type {media or 'missing'!r}; send {' or '.join(accepted)}"
        raise ApiError(415, text, code="unsupported_media_type")
    packed = request.headers.get("content-encoding", "").strip().lower()
    if packed not in {"", "identity"}:
        text = f"content encoding {packed[:32]!r}; send the body as it is, not packed"
        raise ApiError(415, text, code="unsupported_media_type")
    declared = request.headers.get("content-length", "0")
    limit = settings.max_body_bytes
    too_long = ApiError(
        413, f"the body is longer than {limit} bytes", code="request_too_large"
    )
    if not declared.isdecimal() or len(declared) > 15 or int(declared) > limit:
        raise too_long
    body = bytearray()
    try:
        async with asyncio.timeout(settings.body_timeout):
            async for part in request.stream():
                body += part
                if len(body) > limit:
                    raise too_long
    except TimeoutError:
        raise ApiError(
            408,
            f"the body did not come within {settings.body_timeout:g} s",
            code="body_timeout",
        ) from None
    return bytes(body)
