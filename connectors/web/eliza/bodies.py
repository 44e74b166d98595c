"""The bodies of requests, and how they are read; pure.

Fields are accepted in both spellings: of the official server (`channel_id`) and of its
client (`channelId`). Missing fields have defaults where possible.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Annotated, Literal, TypeVar, cast, get_args

import msgspec
from msgspec import Meta, Struct

from connectors.web.eliza.errors import wrong
from connectors.web.eliza.ids import ZERO, Uuid
from connectors.web.eliza.messages import ChannelType, Json
from connectors.web.errors import ApiError

T = TypeVar("T")

Words = Annotated[str, Meta(min_length=1, max_length=1_000_000, pattern=r"\S")]
Short = Annotated[str, Meta(min_length=1, max_length=200)]
Wait = Literal["websocket", "http", "sse"]

HUMP = re.compile(r"(?<=[a-z0-9])([A-Z])")

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
    for name, value in body.items():
        snake = HUMP.sub(lambda found: f"_{found.group(1).lower()}", name)
        fields.setdefault(OLD_NAMES.get(snake, snake), value)
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
        raise _explained(error, shape) from None


def _explained(error: msgspec.ValidationError, shape: type) -> ApiError:
    text, _, where = str(error).partition(" - at `$")
    place = where.strip(".`")
    if lacking := LACKING.search(text):
        place = ".".join(filter(None, (place, lacking.group(1))))
    if BLANK in text:
        text = "must not be blank"
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
