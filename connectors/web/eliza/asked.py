"""What clients ask in the bodies of their requests, and how it is read; pure.

Bodies are read in both spellings: of the official server (`channel_id`) and of its
client (`channelId`). What a client does not say has a default, if there can be one.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Annotated, Literal, TypeVar, cast

import msgspec
from msgspec import Meta, Struct

from connectors.web.eliza.errors import wrong
from connectors.web.eliza.ids import ZERO, Uuid
from connectors.web.eliza.shapes import ChannelType, Json

if TYPE_CHECKING:
    from collections.abc import Iterable

T = TypeVar("T")

Words = Annotated[str, Meta(min_length=1, max_length=1_000_000)]
Short = Annotated[str, Meta(min_length=1, max_length=200)]
Wait = Literal["websocket", "http", "sse"]

HUMP = re.compile(r"(?<=[a-z0-9])([A-Z])")

LACKING = re.compile(r"missing required field `(\w+)`")
"""What msgspec says of a field that is not there."""

OLD_NAMES = {
    "server_id": "message_server_id",
    "room_id": "channel_id",
    "participant_ids": "participant_central_user_ids",
    "mode": "transport",
}
"""Names that fields had before, and may have still."""

OLD_MODES = {"sync": "http", "stream": "sse"}

LARGEST_METADATA = 10_240
"""Bytes of metadata, written as JSON."""

DEEPEST = 50
"""Objects and lists in each other. Chosen: no client comes near it, and the library of
Socket.IO, which needs three calls for each, stays far from Python's 1,000."""


class ServerAsked(Struct, frozen=True):
    """`POST /message-servers`."""

    name: Short
    source_type: str = "callboard"
    source_id: str | None = None
    metadata: Json | None = None


class ChannelAsked(Struct, frozen=True):
    """`POST /channels`, also of a group."""

    name: Short
    type: ChannelType | None = None
    message_server_id: Uuid = ZERO
    participant_central_user_ids: tuple[Uuid, ...] | None = None
    source_type: str = ""
    source_id: str | None = None
    topic: str | None = None
    metadata: Json | None = None


class ChannelChange(Struct, frozen=True):
    """`PATCH /channels/:id`."""

    name: Short | None = None
    participant_central_user_ids: tuple[Uuid, ...] | None = None
    metadata: Json | None = None


class AgentAsked(Struct, frozen=True):
    """Which agent is meant."""

    agent_id: str = ""


class MessageAsked(Struct, frozen=True):
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


class DirectAsked(Struct, frozen=True):
    """`POST /agents/:agent/message`, as releases before 1.0 had it."""

    text: Annotated[str, Meta(max_length=1_000_000)] = ""
    content: Annotated[str, Meta(max_length=1_000_000)] = ""
    channel_id: Uuid | None = None
    user_id: Annotated[str, Meta(max_length=200)] = ""
    entity_id: Annotated[str, Meta(max_length=200)] = ""
    user_name: Annotated[str, Meta(max_length=200)] = ""
    name: Annotated[str, Meta(max_length=200)] = ""


class SubmitAsked(Struct, frozen=True):
    """`POST /submit`: what an agent says, by whatever program it runs in."""

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


class ActionChange(Struct, frozen=True):
    """`PATCH /action/:id`."""

    content: Annotated[str, Meta(max_length=1_000_000)] | None = None
    author_id: Uuid | None = None
    in_reply_to_message_id: Uuid | None = None
    source_type: Annotated[str, Meta(max_length=200)] = ""
    raw_message: Json | None = None
    metadata: Json | None = None


class ExternalAsked(Struct, frozen=True):
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


class ManyAsked(Struct, frozen=True):
    """Several of them at once."""

    messages: Annotated[tuple[Json, ...], Meta(max_length=100)]


class CompleteAsked(Struct, frozen=True):
    """`POST /complete`."""

    channel_id: Uuid | None = None
    message_id: Uuid | None = None
    message_server_id: Uuid | None = None
    status: str = "completed"
    error: str | None = None


class WordsAsked(Struct, frozen=True):
    """`PATCH /messages/:id`."""

    content: Words


class SearchAsked(Struct, frozen=True):
    """`POST /messages/search`."""

    query: str = ""
    channel_id: Uuid | None = None
    author_id: Uuid | None = None
    before: int | str | None = msgspec.field(default=None, name="to")
    after: int | str | None = msgspec.field(default=None, name="from")
    limit: Annotated[int, Meta(ge=1, le=200)] = 50


class MemoryChange(Struct, frozen=True):
    """`PATCH /memory/:agent/memories/:id`."""

    content: str | Json | None = None
    metadata: Json | None = None


class RoomAsked(Struct, frozen=True):
    """`POST /memory/:agent/rooms`."""

    name: Short
    type: ChannelType = "DM"
    source: str = ""
    world_id: Uuid | None = None
    message_server_id: Uuid | None = None
    metadata: Json | None = None


class GroupAsked(Struct, frozen=True):
    """`POST /memory/groups/:server`."""

    name: Short
    agent_ids: Annotated[tuple[Short, ...], Meta(max_length=100)] = ()
    world_id: Uuid | None = None
    source: str = ""
    description: str = ""
    metadata: Json | None = None


class WorldAsked(Struct, frozen=True):
    """`POST /agents/:agent/worlds` and `PATCH …/:world`: as server or client write."""

    world_id: Uuid | None = None
    name: Short | None = None
    message_server_id: Uuid | None = None
    metadata: Json | None = None
    settings: Json | None = None


class SpeechAsked(Struct, frozen=True):
    """`POST /audio/:agent/speech/…` and `/audio-messages/synthesize`, in JSON."""

    text: Annotated[str, Meta(max_length=100_000)] = ""
    message_id: Uuid | None = None
    voice: Annotated[str, Meta(pattern=r"^[\w. :/-]{0,64}$")] = ""
    room_id: Uuid | None = msgspec.field(default=None, name="channel_id")
    """`read` calls a room a channel."""

    entity_id: Uuid | None = None
    user_name: Annotated[str, Meta(max_length=200)] = ""
    name: Annotated[str, Meta(max_length=200)] = ""


class LogsAsked(Struct, frozen=True):
    """`GET` or `POST /server/logs`."""

    since: int | str | None = None
    level: Annotated[str, Meta(max_length=20)] = "all"
    agent_name: Annotated[str, Meta(max_length=200)] = "all"
    agent_id: Annotated[str, Meta(max_length=200)] = ""
    limit: Annotated[int, Meta(ge=1, le=1_000)] = 100


class LogGiven(Struct, frozen=True, rename="camel"):
    """One line that a client wants in the log."""

    level: Literal["debug", "info", "warn", "error"]
    message: Annotated[str, Meta(min_length=1, max_length=8_192)]
    source: Annotated[str, Meta(max_length=200)] = ""


class LogsGiven(Struct, frozen=True):
    """`POST /server/logs` with lines."""

    logs: Annotated[tuple[LogGiven, ...], Meta(max_length=100)]


class SyncedChannel(Struct, frozen=True, rename="camel"):
    """One channel of `POST /message-servers/:id/sync-channels`."""

    name: Short
    type: ChannelType = "GROUP"
    source_id: str = ""
    source_type: str = ""


class SyncAsked(Struct, frozen=True):
    """`POST /message-servers/:id/sync-channels`."""

    channels: Annotated[tuple[SyncedChannel, ...], Meta(max_length=1_000)] = ()


def read(body: Json, shape: type[T]) -> T:
    """Read a body.

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
    check_metadata(fields.get("metadata"))
    try:
        return msgspec.convert(fields, shape, strict=True)
    except msgspec.ValidationError as error:
        text, _, where = str(error).partition(" - at `$")
        place = where.strip(".`")
        if lacking := LACKING.search(text):
            place = ".".join(filter(None, (place, lacking.group(1))))
        raise wrong(text, place) from None


def is_deep(value: object, left: int = DEEPEST) -> bool:
    """Whether more objects and lists stand in each other than so many."""
    match value:
        case dict():
            inner: Iterable[object] = cast("Json", value).values()
        case list():
            inner = cast("list[object]", value)
        case _:
            return False
    return not left or any(is_deep(each, left - 1) for each in inner)


def check_metadata(metadata: object) -> None:
    """Refuse metadata that is too long.

    Raises:
        ApiError: 400.
    """
    if metadata and len(msgspec.json.encode(metadata)) > LARGEST_METADATA:
        raise wrong(f"is longer than {LARGEST_METADATA} bytes", "metadata")
