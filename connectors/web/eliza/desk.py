"""One request from its head to its answer: key, rate, body, and errors in one shape.

Runs on the edge's loop. What a route means is said in its own module; all that touches
what is kept is asked of the kernel (`Call.ask`).
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeVar, TypeVarTuple, cast

import msgspec
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.routing import Route

from actors.ingress import RefusedAttempt
from connectors.web.bodies import Bodies
from connectors.web.eliza.asked import read
from connectors.web.eliza.errors import refuse, wrong
from connectors.web.eliza.ids import is_uuid, to_uuid
from connectors.web.eliza.keys import NOBODY, Keys, not_let_in, offered_key
from connectors.web.errors import EXPECTED_ERRORS, ApiError, translate
from connectors.web.server import check_access
from runtime.texts import why_no_json

if TYPE_CHECKING:
    from connectors.bridge import Bridge
    from connectors.web.eliza.keys import Caller
    from connectors.web.eliza.rates import Rate, Spent
    from connectors.web.eliza.shapes import Json
    from connectors.web.server import HttpSettings
    from connectors.web_config import Scope
    from runtime.clock import Clock

T = TypeVar("T")
Ts = TypeVarTuple("Ts")

WINDOW = 900.0
"""Seconds for which requests are counted: 15 minutes, as the official server."""

ENTITY_HEADER = "x-entity-id"


@dataclass
class Front:
    """What every request needs."""

    settings: HttpSettings
    keys: Keys
    rate: Rate
    uploads: Rate
    clock: Clock
    bridge: Bridge
    refused: Callable[[RefusedAttempt], None]
    origins: tuple[str, ...] = ()
    bodies: Bodies = field(default_factory=Bodies)


@dataclass
class Call:
    """One request that was let in."""

    request: Request
    caller: Caller
    front: Front
    body: Json

    async def ask(self, fn: Callable[[*Ts], Awaitable[T]], *args: *Ts) -> T:
        """Have the kernel do something.

        Raises:
            ApiError: it could not, or would not.
        """
        try:
            return await self.front.bridge.ask_kernel(fn, *args)
        except EXPECTED_ERRORS as error:
            raise translate(error) from error

    async def look(self, fn: Callable[[*Ts], T], *args: *Ts) -> T:
        """Have the kernel look something up."""

        async def looked() -> T:
            return fn(*args)

        return await self.ask(looked)

    def read(self, shape: type[T]) -> T:
        """Read the body; see `asked.read`."""
        return read(self.body, shape)

    def id(self, name: str) -> str:
        """Give an id of the path.

        Raises:
            ApiError: 400: it is no UUID.
        """
        value: str = self.request.path_params[name]
        if not is_uuid(value):
            raise wrong(f"{value!r} is no UUID", name)
        return value.lower()

    def query(self, name: str, default: str = "") -> str:
        """Give a parameter of the query."""
        return self.request.query_params.get(name, default)

    def number(self, name: str, default: int, least: int, most: int) -> int:
        """Give a number of the query.

        Raises:
            ApiError: 400: it is none; one out of bounds is brought inside.
        """
        text = self.query(name) or str(default)
        try:
            return min(max(int(text), least), most)
        except ValueError:
            raise wrong(f"{text!r} is no number", name) from None

    def author(self, claimed: str | None) -> str:
        """Say who speaks: as the body says, the header, or the key.

        Raises:
            ApiError: 403: the key may not speak for them; 400: it is no UUID.
        """
        header = self.request.headers.get(ENTITY_HEADER, "")
        if header and not is_uuid(header):
            raise wrong(f"{header!r} is no UUID", "X-Entity-Id")
        speaker = self.caller.speaker((claimed or header).lower())
        return speaker or to_uuid(f"key/{self.caller.name}")


Handle = Callable[[Call], Awaitable[Response]]


class Desk:
    """Makes routes out of what answers them.

    Args:
        front: what every request needs.
    """

    def __init__(self, front: Front) -> None:
        self.front = front

    def route(
        self,
        method: str,
        path: str,
        scope: Scope | None,
        handle: Handle,
        *,
        takes_files: bool = False,
    ) -> Route:
        """Make a route.

        Args:
            method: of HTTP.
            path: as starlette writes it.
            scope: what the key must allow; None: anybody may ask, without any key.
            handle: answers.
            takes_files: whether it reads forms with files by itself.
        """

        async def endpoint(request: Request) -> Response:
            media = request.headers.get("content-type", "")
            is_upload = takes_files and "json" not in media.lower()
            return await self._serve(request, scope, handle, is_upload=is_upload)

        return Route(path, endpoint, methods=[method])

    async def _serve(
        self, request: Request, scope: Scope | None, handle: Handle, *, is_upload: bool
    ) -> Response:
        front, headers = self.front, cors(request, self.front.origins)
        try:
            counts = self._counted(request, is_upload=is_upload)
            headers |= counts
            caller = self._let_in(request, scope)
            body = {} if is_upload else await read_body(request, front)
            response = await handle(Call(request, caller, front, body))
        except ApiError as error:
            self._note(request, error)
            return refuse(request.scope, error, headers)
        except ClientDisconnect:
            return Response(status_code=499)
        response.headers.update(headers)
        return response

    def _counted(self, request: Request, *, is_upload: bool) -> dict[str, str]:
        front, now = self.front, self.front.clock.monotonic()
        host = request.client.host if request.client else "?"
        rates: list[tuple[Rate, str]] = [(front.rate, "rate_limit_exceeded")]
        if is_upload:
            rates.append((front.uploads, "upload_rate_limit_exceeded"))
        headers: dict[str, str] = {}
        for rate, code in rates:
            spent: Spent = rate.count(host, now)
            headers = rate.headers(spent, now)
            if rate.is_over(spent):
                text = f"more than {rate.limit} in {WINDOW / 60:.0f} minutes"
                raise ApiError(429, text, code=code, retry_after=spent.ends_at - now)
        return headers

    def _let_in(self, request: Request, scope: Scope | None) -> Caller:
        front = self.front
        caller = front.keys.caller(offered_key(request.headers.items()))
        if scope is None:
            return caller or front.keys.caller("") or NOBODY
        if caller is None:
            raise not_let_in()
        if not front.keys.are_needed:
            check_access(request, front.settings)
            check_origin(request, front)
        caller.need(scope)
        return caller

    def _note(self, request: Request, error: ApiError) -> None:
        if error.status in {401, 403}:
            host = request.client.host if request.client else ""
            self.front.refused(RefusedAttempt(error.code, host))


def check_origin(request: Request, front: Front) -> None:
    """Refuse pages of other servers where no key is needed.

    Why: a browser sends some requests for any page without asking first.

    Raises:
        ApiError: 403.
    """
    origin = request.headers.get("origin", "")
    own = {f"{way}://{request.headers.get('host', '')}" for way in ("http", "https")}
    if origin and origin not in own and not is_listed(origin, front.origins):
        text = f"pages of {origin} may not ask; list it in origins, or set a key"
        raise ApiError(403, text, code="forbidden_origin")


def is_listed(origin: str, origins: tuple[str, ...]) -> bool:
    """Whether pages of an origin may ask."""
    return origin in origins or "*" in origins


def cors(request: Request, origins: tuple[str, ...]) -> dict[str, str]:
    """Give the headers by which a browser lets another page read the answer."""
    origin = request.headers.get("origin", "")
    if not origin or not is_listed(origin, origins):
        return {}
    return {
        "access-control-allow-origin": origin,
        "access-control-allow-credentials": "true",
        "access-control-allow-methods": "GET, POST, PUT, PATCH, DELETE, OPTIONS",
        "access-control-allow-headers": (
            "Content-Type, Authorization, X-API-KEY, X-Entity-Id"
        ),
        "access-control-expose-headers": "X-Total-Count",
        "vary": "Origin",
    }


async def read_body(request: Request, front: Front) -> Json:
    """Read a JSON object; nothing at all is an empty one.

    Raises:
        ApiError: it is none, too long, or too slow.
    """
    declared = request.headers.get("content-length", "")
    has_body = declared not in {"", "0"} or "transfer-encoding" in request.headers
    if request.method in {"GET", "HEAD", "OPTIONS", "DELETE"} or not has_body:
        return {}
    text = b""
    try:
        text = await front.bodies.read(request, front.settings)
        value: Any = msgspec.json.decode(text)
    except ApiError as error:
        if error.status == 415:
            raise ApiError(400, error.text, code="invalid_content_type") from error
        raise
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        why = why_no_json(text, error)
        raise ApiError(400, f"no JSON: {why}", code="invalid_json") from error
    if not isinstance(value, dict):
        raise ApiError(400, "the body is no JSON object", code="invalid_json")
    return cast("Json", value)


def ok(shown: object, status: int = 200) -> Response:
    """Answer with something in the API's envelope."""
    return raw({"success": True, "data": shown}, status)


def both(shown: Json, status: int = 200) -> Response:
    """Answer where official servers leave `data` out: it stands in both places."""
    return raw({"success": True} | shown | {"data": shown}, status)


def raw(shown: object, status: int = 200) -> Response:
    """Answer with something as it is."""
    body = msgspec.json.encode(shown)
    return Response(body, status_code=status, media_type="application/json")


def gone() -> Response:
    """Answer that something is deleted."""
    return Response(status_code=204)
