"""One request of the ElizaOS API: key, rate limit, body or form, and errors.

Runs on the edge's loop. Handlers get an `ElizaCall`, and ask the services on the
kernel's side by its `ask` and `look`.

Fields of bodies are accepted in both spellings: of the official server (`channel_id`)
and of its client (`channelId`). Missing fields have defaults where possible.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Annotated, Any, Literal, TypeVar, TypeVarTuple, cast, get_args

import msgspec
from msgspec import Meta, Struct
from starlette.datastructures import FormData, UploadFile
from starlette.formparsers import MultiPartException, MultiPartParser
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.routing import Route

from connectors.chat.server_transport import caller_at
from connectors.web.eliza.keys import (
    NOBODY,
    ApiCaller,
    Keys,
    RateLimit,
    RateWindow,
    not_let_in,
    offered_key,
)
from connectors.web.eliza.messages import (
    UUID_TEXT,
    ZERO,
    AgentIds,
    ChannelType,
    Json,
    Uuid,
    is_uuid,
    refuse,
    to_uuid,
    wrong,
)
from connectors.web.eliza.platform import Scope
from connectors.web.eliza.services.uploads import KINDS
from connectors.web.request import (
    RequestContext,
    check_access,
    client_host,
    read_traceparent,
)
from connectors.web.server import ApiError
from runtime.store.text import why_no_json

T = TypeVar("T")

Words = Annotated[str, Meta(min_length=1, max_length=1_000_000, pattern=r"\S")]
Short = Annotated[str, Meta(min_length=1, max_length=200)]
Wait = Literal["websocket", "http", "sse"]

HUMP = re.compile(r"(?<=[a-z0-9])([A-Z])")

SNAKE = re.compile(r"_([a-z])")

ENDS = re.compile(r"[.\[]")
"""What follows the name of a field: another one in it, or a place in a list."""

CHANNEL_TYPES: tuple[str, ...] = get_args(ChannelType)

BLANK = "matching regex '\\\\S'"
"""How msgspec says that a text of blanks alone is refused."""

LACKING = re.compile(r"missing required field `(\w+)`")
"""How msgspec names a missing field."""

OLD_NAMES = {
    "server_id": "message_server_id",
    "room_id": "channel_id",
    "participant_ids": "participant_central_user_ids",
    "mode": "transport",
}
"""Earlier names of fields, still accepted."""

OLD_MODES = {"sync": "http", "stream": "sse"}

LARGEST_METADATA = 10_240
"""Bytes of metadata, written as JSON."""

DEEPEST = 50
"""Most levels of nested objects and lists. Chosen: no client comes near it, and the
Socket.IO library, with three calls for each level, stays below Python's 1,000."""


class ServerBody(Struct, frozen=True):
    """`POST /message-servers`."""

    name: Short
    source_type: str = "callboard"
    source_id: str | None = None
    metadata: Json | None = None


class ChannelBody(Struct, frozen=True):
    """`POST /channels`, also of a group."""

    name: Short
    type: ChannelType | None = None
    message_server_id: Uuid = ZERO
    participant_central_user_ids: tuple[Uuid, ...] | None = None
    source_type: str = ""
    source_id: str | None = None
    topic: str | None = None
    metadata: Json | None = None


class ChannelPatch(Struct, frozen=True):
    """`PATCH /channels/:id`."""

    name: Short | None = None
    participant_central_user_ids: tuple[Uuid, ...] | None = None
    metadata: Json | None = None


class AgentBody(Struct, frozen=True):
    """A body that names an agent."""

    agent_id: str = ""


class MessageBody(Struct, frozen=True):
    """`POST /channels/:id/messages`."""

    content: Words
    author_id: Uuid | None = None
    message_server_id: Uuid = ZERO
    message_id: Uuid | None = None
    in_reply_to_message_id: Uuid | None = None
    raw_message: Json | None = None
    metadata: Json | None = None
    attachments: list[Json] | None = None
    source_type: str = "eliza_gui"
    source_id: str | None = None
    author_display_name: str = ""
    transport: Wait = "websocket"


class DirectMessageBody(Struct, frozen=True):
    """`POST /agents/:agent/message`, as releases before 1.0 had it."""

    text: Annotated[str, Meta(max_length=1_000_000)] = ""
    content: Annotated[str, Meta(max_length=1_000_000)] = ""
    channel_id: Uuid | None = None
    user_id: Annotated[str, Meta(max_length=200)] = ""
    entity_id: Annotated[str, Meta(max_length=200)] = ""
    user_name: Annotated[str, Meta(max_length=200)] = ""
    name: Annotated[str, Meta(max_length=200)] = ""


class SubmitBody(Struct, frozen=True):
    """`POST /submit`: a message of an agent that runs in any program."""

    channel_id: Uuid
    content: Annotated[str, Meta(max_length=1_000_000)]
    message_server_id: Uuid | None = None
    author_id: Uuid | None = None
    agent_id: Uuid | None = None
    message_id: Uuid | None = None
    in_reply_to_message_id: Uuid | None = None
    source_type: str = "agent_response"
    source_id: str | None = None
    raw_message: Json | None = None
    metadata: Json | None = None


class ActionPatch(Struct, frozen=True):
    """`PATCH /action/:id`."""

    content: Annotated[str, Meta(max_length=1_000_000)] | None = None
    author_id: Uuid | None = None
    in_reply_to_message_id: Uuid | None = None
    source_type: Annotated[str, Meta(max_length=200)] = ""
    raw_message: Json | None = None
    metadata: Json | None = None


class ExternalMessageBody(Struct, frozen=True):
    """One message of `POST /ingest-external`."""

    content: Words
    channel_id: Uuid
    message_server_id: Uuid = ZERO
    author_id: str = ""
    author_display_name: str = ""
    message_id: str = ""
    source_id: str | None = None
    source_type: str = "external"
    in_reply_to_message_id: Uuid | None = None
    raw_message: Json | None = None
    metadata: Json | None = None


class ExternalMessagesBody(Struct, frozen=True):
    """Several messages of `POST /ingest-external`."""

    messages: Annotated[tuple[Json, ...], Meta(max_length=100)]


class CompleteBody(Struct, frozen=True):
    """`POST /complete`."""

    channel_id: Uuid | None = None
    message_id: Uuid | None = None
    message_server_id: Uuid | None = None
    status: str = "completed"
    error: str | None = None


class MessagePatch(Struct, frozen=True):
    """`PATCH /messages/:id`."""

    content: Words


class SearchBody(Struct, frozen=True):
    """`POST /messages/search`."""

    query: str = ""
    channel_id: Uuid | None = None
    author_id: Uuid | None = None
    before: int | str | None = msgspec.field(default=None, name="to")
    after: int | str | None = msgspec.field(default=None, name="from")
    limit: Annotated[int, Meta(ge=1, le=200)] = 50


class MemoryPatch(Struct, frozen=True):
    """`PATCH /memory/:agent/memories/:id`."""

    content: str | Json | None = None
    metadata: Json | None = None


class RoomBody(Struct, frozen=True):
    """`POST /memory/:agent/rooms`."""

    name: Short
    type: ChannelType = "DM"
    source: str = ""
    world_id: Uuid | None = None
    message_server_id: Uuid | None = None
    metadata: Json | None = None


class GroupBody(Struct, frozen=True):
    """`POST /memory/groups/:server`."""

    name: Short
    agent_ids: Annotated[tuple[Short, ...], Meta(max_length=100)] = ()
    world_id: Uuid | None = None
    source: str = ""
    description: str = ""
    metadata: Json | None = None


class WorldBody(Struct, frozen=True):
    """`POST /agents/:agent/worlds` and `PATCH …/:world`."""

    world_id: Uuid | None = None
    name: Short | None = None
    message_server_id: Uuid | None = None
    metadata: Json | None = None
    settings: Json | None = None


class SpeechBody(Struct, frozen=True):
    """`POST /audio/:agent/speech/…` and `/audio-messages/synthesize`, in JSON."""

    text: Annotated[str, Meta(max_length=100_000)] = ""
    message_id: Uuid | None = None
    voice: Annotated[str, Meta(pattern=r"^[\w. :/-]{0,64}$")] = ""
    room_id: Uuid | None = msgspec.field(default=None, name="channel_id")
    """The body calls the room a channel."""

    entity_id: Uuid | None = None
    user_name: Annotated[str, Meta(max_length=200)] = ""
    name: Annotated[str, Meta(max_length=200)] = ""


class LogQuery(Struct, frozen=True):
    """`GET` or `POST /server/logs`."""

    since: int | str | None = None
    level: Annotated[str, Meta(max_length=20)] = "all"
    agent_name: Annotated[str, Meta(max_length=200)] = "all"
    agent_id: Annotated[str, Meta(max_length=200)] = ""
    limit: Annotated[int, Meta(ge=1, le=1_000)] = 100


class ClientLogLine(Struct, frozen=True, rename="camel"):
    """One line that a client writes to the log."""

    level: Literal["debug", "info", "warn", "error"]
    message: Annotated[str, Meta(min_length=1, max_length=8_192)]
    source: Annotated[str, Meta(max_length=200)] = ""


class ClientLogLines(Struct, frozen=True):
    """`POST /server/logs` with lines to write."""

    logs: Annotated[tuple[ClientLogLine, ...], Meta(max_length=100)]


class SyncedChannel(Struct, frozen=True, rename="camel"):
    """One channel of `POST /message-servers/:id/sync-channels`."""

    name: Short
    type: ChannelType = "GROUP"
    source_id: str = ""
    source_type: str = ""


class SyncChannelsBody(Struct, frozen=True):
    """`POST /message-servers/:id/sync-channels`."""

    channels: Annotated[tuple[SyncedChannel, ...], Meta(max_length=1_000)] = ()


def read_body_as(body: Json, shape: type[T]) -> T:
    """Read a body as one of these shapes.

    Raises:
        ApiError: 400, with the field that is wrong.
    """
    fields: Json = {}
    sent: dict[str, str] = {}
    for name, value in body.items():
        snake = HUMP.sub(lambda found: f"_{found.group(1).lower()}", name)
        known = OLD_NAMES.get(snake, snake)
        fields.setdefault(known, value)
        sent.setdefault(known, name)
    if is_deep(fields):
        raise wrong(f"more than {DEEPEST} objects and lists in each other")
    mode = fields.get("transport")
    if isinstance(mode, str):
        fields["transport"] = OLD_MODES.get(mode, mode)
    if has_channel_type(shape):
        fields = with_capital_type(fields)
    if shape is SyncChannelsBody and isinstance(fields.get("channels"), list):
        listed = cast("list[object]", fields["channels"])
        fields["channels"] = [
            with_capital_type(cast("Json", each)) if isinstance(each, dict) else each
            for each in listed
        ]
    check_metadata(fields.get("metadata"))
    try:
        return msgspec.convert(fields, shape, strict=True)
    except msgspec.ValidationError as error:
        raise _explained(error, shape, sent) from None


def _explained(
    error: msgspec.ValidationError, shape: type, sent: Mapping[str, str]
) -> ApiError:
    """Say which field is wrong, by the name with which it was sent."""
    text, _, where = str(error).partition(" - at `$")
    place = where.strip(".`")
    if lacking := LACKING.search(text):
        text = "is missing"
        field = SNAKE.sub(lambda found: found.group(1).upper(), lacking.group(1))
        place = ".".join(filter(None, (place, field)))
    elif BLANK in text:
        text = "must not be blank"
    elif UUID_TEXT in text:
        text = "is no UUID"
    first = ENDS.split(place, 1)[0]
    place = sent.get(first, first) + place.removeprefix(first)
    if place.rpartition(".")[2] == "type" and has_channel_type(shape):
        text = f"{text}; known: {', '.join(CHANNEL_TYPES)}"
    return wrong(text, place)


def has_channel_type(shape: type) -> bool:
    """Whether a field `type` of a body is the type of a channel."""
    return shape in {ChannelBody, RoomBody, SyncChannelsBody}


def with_capital_type(fields: Json) -> Json:
    """Write the type of a channel in capitals, as it is known."""
    kind = fields.get("type")
    return {**fields, "type": kind.upper()} if isinstance(kind, str) else fields


def is_deep(value: object, left: int = DEEPEST) -> bool:
    """Whether objects and lists are nested in more than `left` levels."""
    match value:
        case dict():
            inner: Iterable[object] = cast("Json", value).values()
        case list():
            inner = cast("list[object]", value)
        case _:
            return False
    return not left or any(is_deep(each, left - 1) for each in inner)


def check_metadata(metadata: object) -> None:
    """Check the length of metadata.

    Raises:
        ApiError: 400.
    """
    if metadata and len(msgspec.json.encode(metadata)) > LARGEST_METADATA:
        raise wrong(f"is longer than {LARGEST_METADATA} bytes", "metadata")


LATEST = 10**15 - 1
"""Milliseconds; later times count as this."""


def read_time(text: str, field: str) -> int:
    """Read a time: milliseconds since 1970, or ISO 8601; an empty text is 0.

    Raises:
        ApiError: 400: it is neither.
    """
    if not text:
        return 0
    if text.isascii() and text.isdigit() and len(text) <= 16:
        return min(int(text), LATEST)
    try:
        at = datetime.fromisoformat(text)
    except ValueError:
        raise wrong(
            f"{text!r} is no time; write ms since 1970, or ISO", field
        ) from None
    if at.tzinfo is None:
        at = at.replace(tzinfo=UTC)
    return max(0, int(at.timestamp() * 1000))


Ts = TypeVarTuple("Ts")

WINDOW = 900.0
"""Seconds for which requests are counted: 15 minutes, as the official server."""

ENTITY_HEADER = "x-entity-id"


@dataclass(kw_only=True)
class ElizaContext(RequestContext):
    """What every request of the API needs, beside the usual."""

    keys: Keys
    rate: RateLimit
    uploads: RateLimit
    agents: Callable[[], AgentIds]
    """Gives the ids of the agents that can be spoken to now; any thread."""

    origins: tuple[str, ...] = ()


@dataclass
class ElizaCall:
    """One request with access; what handlers get."""

    request: Request
    caller: ApiCaller
    front: ElizaContext
    body: Json

    async def ask(self, fn: Callable[[*Ts], Awaitable[T]], *args: *Ts) -> T:
        """Call a service on the kernel's side, and give its result.

        Raises:
            ApiError: it refuses, or fails.
        """
        return await self.front.ask(fn, *args)

    async def look(self, fn: Callable[[*Ts], T], *args: *Ts) -> T:
        """Call a service that does not wait, likewise."""

        async def looked() -> T:
            return fn(*args)

        return await self.ask(looked)

    def read(self, shape: type[T]) -> T:
        """Read the body; see `bodies.read_body_as`."""
        return read_body_as(self.body, shape)

    def id(self, name: str) -> str:
        """Give an id in the path.

        Raises:
            ApiError: 400: it is not a UUID.
        """
        value: str = self.request.path_params[name]
        if not is_uuid(value):
            raise wrong(f"{value!r} is no UUID", name)
        return value.lower()

    def agent(self) -> str:
        """Give the id of the agent in the path, which has its id or its name."""
        return self.front.agents().id(self.request.path_params["agent"])

    def query(self, name: str, default: str = "") -> str:
        """Give a parameter of the query."""
        return self.request.query_params.get(name, default)

    def number(self, name: str, default: int, least: int, most: int) -> int:
        """Give a number of the query, brought into its bounds.

        Raises:
            ApiError: 400: it is not a number.
        """
        text = self.query(name) or str(default)
        try:
            return min(max(int(text), least), most)
        except ValueError:
            raise wrong(f"{text!r} is no number", name) from None

    def author(self, claimed: str | None) -> str:
        """Give the author: from the body, the header `X-Entity-Id`, or the key.

        Raises:
            ApiError: 403: the key may not speak for them; 400: it is not a UUID.
        """
        header = self.request.headers.get(ENTITY_HEADER, "")
        if header and not is_uuid(header):
            raise wrong(f"{header!r} is no UUID", "X-Entity-Id")
        speaker = self.caller.speaker((claimed or header).lower())
        return speaker or to_uuid(f"key/{self.caller.name}")


ElizaHandler = Callable[[ElizaCall], Awaitable[Response]]


class ElizaRoutes:
    """Makes routes out of handlers."""

    def __init__(self, front: ElizaContext) -> None:
        self.front = front

    def route(
        self,
        method: str,
        path: str,
        scope: Scope | None,
        handle: ElizaHandler,
        *,
        takes_files: bool = False,
    ) -> Route:
        """Make a route.

        Args:
            scope: that the key must have; None: no key is needed.
            takes_files: whether it reads forms with files itself.
        """

        async def endpoint(request: Request) -> Response:
            media = request.headers.get("content-type", "")
            is_upload = takes_files and "json" not in media.lower()
            return await self._serve(request, scope, handle, is_upload=is_upload)

        return Route(path, endpoint, methods=[method])

    async def _serve(
        self,
        request: Request,
        scope: Scope | None,
        handle: ElizaHandler,
        *,
        is_upload: bool,
    ) -> Response:
        front, headers = self.front, cors(request, self.front.origins)
        try:
            counts = self._counted(request, is_upload=is_upload)
            headers |= counts
            caller = self._let_in(request, scope)
            body = {} if is_upload else await read_json(request, front)
            response = await handle(ElizaCall(request, caller, front, body))
        except ApiError as error:
            front.record(request.scope, error)
            return refuse(request.scope, error, headers)
        except ClientDisconnect:
            return Response(status_code=499)
        response.headers.update(headers)
        return response

    def _counted(self, request: Request, *, is_upload: bool) -> dict[str, str]:
        front, now = self.front, self.front.clock.monotonic()
        host = client_host(request.scope, unknown="?")
        rates: list[tuple[RateLimit, str]] = [(front.rate, "rate_limit_exceeded")]
        if is_upload:
            rates.append((front.uploads, "upload_rate_limit_exceeded"))
        headers: dict[str, str] = {}
        for rate, code in rates:
            spent: RateWindow = rate.count(host, now)
            headers = rate.headers(spent, now)
            if rate.is_over(spent):
                text = f"more than {rate.limit} in {WINDOW / 60:.0f} minutes"
                raise ApiError(429, text, code=code, retry_after=spent.ends_at - now)
        return headers

    def _let_in(self, request: Request, scope: Scope | None) -> ApiCaller:
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
        address = caller_at(client_host(request.scope))
        parent = read_traceparent(request.headers.get("traceparent", ""))
        return msgspec.structs.replace(caller, address=address, traceparent=parent)


def check_origin(request: Request, front: ElizaContext) -> None:
    """Refuse web pages of other servers where no key is needed.

    Why: browsers send some requests of any page without a preflight.

    Raises:
        ApiError: 403.
    """
    origin = request.headers.get("origin", "")
    own = {f"{way}://{request.headers.get('host', '')}" for way in ("http", "https")}
    if origin and origin not in own and not is_listed(origin, front.origins):
        text = f"pages of {origin} may not ask; list it in origins, or set a key"
        raise ApiError(403, text, code="forbidden_origin")


def is_listed(origin: str, origins: tuple[str, ...]) -> bool:
    """Whether pages of an origin may use the API."""
    return origin in origins or "*" in origins


def cors(request: Request, origins: tuple[str, ...]) -> dict[str, str]:
    """Give the CORS headers, by which a browser lets a listed page read the answer."""
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


async def read_json(request: Request, front: ElizaContext) -> Json:
    """Read the body as a JSON object; no body is an empty object.

    Raises:
        ApiError: it is not an object, too long, or too slow.
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
    """Answer in the API's envelope."""
    return raw({"success": True, "data": shown}, status)


def both(shown: Json, status: int = 200) -> Response:
    """Answer in the envelope and, as some official routes do, beside it."""
    return raw({"success": True} | shown | {"data": shown}, status)


def raw(shown: object, status: int = 200) -> Response:
    """Answer without an envelope."""
    body = msgspec.json.encode(shown)
    return Response(body, status_code=status, media_type="application/json")


def gone() -> Response:
    """Answer that something was deleted."""
    return Response(status_code=204)


FORM_BYTES = 65_536
"""Bytes of a form without its file."""

MULTIPART = "multipart/form-data"


class UploadedFile(msgspec.Struct, frozen=True):
    """A file of a form."""

    name: str
    kind: str
    """One of `KINDS`."""

    content: bytes
    fields: dict[str, str] = {}
    """The other fields of the form."""


def is_form(request: Request) -> bool:
    """Whether the body of a request is a form that may have a file."""
    media = request.headers.get("content-type", "").partition(";")[0]
    return media.strip().lower() == MULTIPART


async def read_file(call: ElizaCall, limit: int) -> UploadedFile:
    """Read a form's file, in the field `file`.

    Args:
        limit: bytes of the file.

    Raises:
        ApiError: no file, too long, too slow, or of a type that is not accepted.
    """
    request, settings = call.request, call.front.settings
    if not is_form(request):
        text = f"send the file as {MULTIPART}, in the field 'file'"
        raise ApiError(400, text, code="invalid_content_type")
    stream = limited(request, limit + FORM_BYTES, limit)
    parser = MultiPartParser(request.headers, stream, max_files=1, max_fields=8)
    try:
        async with asyncio.timeout(settings.body_timeout):
            form = await parser.parse()
    except TimeoutError:
        text = f"the file did not come within {settings.body_timeout:g} s"
        raise ApiError(408, text, code="body_timeout") from None
    except MultiPartException as error:
        raise wrong(f"no form: {error.message}") from error
    try:
        return await taken_of(form, limit)
    finally:
        await form.close()


async def taken_of(form: FormData, limit: int) -> UploadedFile:
    """Read the file of a form.

    Raises:
        ApiError: no file, too long, or of a type that is not accepted.
    """
    file = form.get("file")
    if not isinstance(file, UploadFile):
        raise wrong("is missing", "file")
    content = await file.read()
    name, kind = file.filename or "file", file.content_type or ""
    kind = kind.partition(";")[0].strip().lower()
    if ".." in name or "/" in name or "\\" in name:
        raise wrong("has a path in its name", "file")
    if kind not in KINDS:
        text = f"of the type {kind or 'unknown'!r} is not taken"
        raise wrong(f"{text}; known: {', '.join(sorted(KINDS))}", "file")
    if len(content) > limit:
        raise too_long(limit)
    fields = {key: value for key, value in form.items() if isinstance(value, str)}
    return UploadedFile(name, kind, content, fields)


async def limited(request: Request, most: int, limit: int) -> AsyncGenerator[bytes]:
    """Give a body piece by piece, up to a limit.

    Args:
        most: bytes of the whole body.
        limit: bytes of its file, for the error's text.

    Raises:
        ApiError: 413.
    """
    count = 0
    async for part in request.stream():
        count += len(part)
        if count > most:
            raise too_long(limit)
        yield part


def too_long(limit: int) -> ApiError:
    """Make the error for a file that is too long."""
    text = f"the file is longer than {limit} bytes"
    return ApiError(413, text, code="file_too_large")
