"""What the ElizaOS API shows: servers, channels, messages, ids, and errors; pure.

Times are in milliseconds since 1970, as in the API. Where the official server and its
client differ, both spellings of a field are shown (snake and camel).

The official client shows a text in `error` as "Unknown error". So every error here is
an object with code, message and, for a wrong field, details.

Ids are UUIDs, derived from a text where there is none. Source: `stringToUuid` of
@elizaos/core 1.7.2. SHA-1 over the percent-encoded text, its first 16 bytes, with
version 0 and the RFC's variant. "Eliza" gives b850bc30-45f8-0041-a00a-83df46d8555d.

Each agent has its own ids for channels (its *rooms*), servers (its *worlds*), people
and messages: the UUID of `<id>:<agent's id>`. Its own id is the same everywhere.
Source: `createUniqueUuid` of @elizaos/core 1.7.2.

ULIDs of this program are shown as the UUID of the same 128 bits, so that a client can
name them again.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from functools import lru_cache
from typing import Annotated, Literal
from urllib.parse import quote
from uuid import UUID, uuid4

import msgspec
from msgspec import Meta
from starlette.responses import Response
from starlette.types import Scope

from actors.messages.deliveries import Delivery
from actors.messages.inbound import SentFile
from connectors.web.history import ConnectorStore, MessageHistory
from connectors.web.server import ApiError, error_headers, log_refusal
from runtime.ids import ALPHABET

Json = dict[str, object]

ChannelType = Literal[
    "SELF",
    "DM",
    "GROUP",
    "VOICE_DM",
    "VOICE_GROUP",
    "FEED",
    "THREAD",
    "WORLD",
    "FORUM",
    "API",
]

DIRECT: frozenset[ChannelType] = frozenset({"SELF", "DM", "VOICE_DM", "API"})
"""Types of channels with one agent and one person."""

AGENT_SOURCE = "agent_response"
"""The `source_type` of agents' messages."""

REPLY = "REPLY"
"""The action of an agent that only answers."""


class ElizaServer(msgspec.Struct, frozen=True, kw_only=True):
    """A group of channels, and the agents that hear what is said in them."""

    id: str
    name: str
    source_type: str = "callboard"
    source_id: str = ""
    metadata: Json = {}
    agents: tuple[str, ...] = ()
    """Ids of agents; the default server has all agents, whatever stands here."""

    created_at: int = 0
    updated_at: int = 0


class ElizaChannel(msgspec.Struct, frozen=True, kw_only=True):
    """A chat and its participants."""

    id: str
    server: str
    name: str
    type: ChannelType = "GROUP"
    source_type: str = ""
    source_id: str = ""
    topic: str = ""
    metadata: Json = {}
    participants: tuple[str, ...] = ()
    """Ids of people and of agents."""

    forgotten: dict[str, int] = {}
    """By agent's id: the time (ms) up to which it has forgotten the messages here."""

    created_at: int = 0
    updated_at: int = 0


class ElizaMessage(msgspec.Struct, frozen=True, kw_only=True):
    """One message in a channel."""

    id: str
    channel: str
    server: str
    author: str
    author_name: str = ""
    content: str
    raw: Json = {}
    """More that its author's program sent: thought, actions, attachments."""

    source_type: str = ""
    source_id: str = ""
    metadata: Json = {}
    reply_to: str = ""
    at: int
    updated_at: int = 0
    delivery: str = ""
    """The id of its delivery, if an agent of this program wrote it."""

    @property
    def chat(self) -> str:
        """Its channel, by the name that histories have for it."""
        return self.channel


def to_agent(
    channel: ElizaChannel, agent_id: str, author: str, name: str, text: str
) -> ElizaMessage:
    """Make a new message to one agent; `name` is its author's."""
    return ElizaMessage(
        id=str(uuid4()),
        channel=channel.id,
        server=channel.server,
        author=author,
        author_name=name,
        content=text,
        metadata={"targetAgentId": agent_id},
        at=0,
    )


ElizaHistory = MessageHistory[ElizaMessage]


def eliza_history(place: ConnectorStore) -> ElizaHistory:
    """Give the history of all channels of a connector."""
    return MessageHistory(place, ElizaMessage, "web_message")


def iso(milliseconds: int) -> str:
    """Write a time as the API does: `2026-01-31T12:00:00.000Z`."""
    at = datetime.fromtimestamp(milliseconds / 1000, UTC)
    return f"{at:%Y-%m-%dT%H:%M:%S}.{milliseconds % 1000:03d}Z"


def server_shown(server: ElizaServer) -> Json:
    """Show a server."""
    return {
        "id": server.id,
        "name": server.name,
        "sourceType": server.source_type,
        "sourceId": server.source_id or None,
        "metadata": server.metadata,
        "createdAt": iso(server.created_at),
        "updatedAt": iso(server.updated_at),
    }


def channel_shown(channel: ElizaChannel) -> Json:
    """Show a channel; its participants are in the metadata, where clients look."""
    own = {"participantCentralUserIds": list(channel.participants)}
    return {
        "id": channel.id,
        "messageServerId": channel.server,
        "serverId": channel.server,
        "name": channel.name,
        "type": channel.type,
        "sourceType": channel.source_type or None,
        "sourceId": channel.source_id or None,
        "topic": channel.topic or None,
        "metadata": channel.metadata | own,
        "createdAt": iso(channel.created_at),
        "updatedAt": iso(channel.updated_at),
    }


def message_shown(message: ElizaMessage) -> Json:
    """Show a message, in both spellings."""
    raised = {
        name: message.raw[name]
        for name in ("thought", "actions", "attachments")
        if name in message.raw
    }
    changed = message.updated_at or message.at
    return {
        "id": message.id,
        "channelId": message.channel,
        "channel_id": message.channel,
        "serverId": message.server,
        "messageServerId": message.server,
        "message_server_id": message.server,
        "authorId": message.author,
        "author_id": message.author,
        "author_display_name": message.author_name,
        "content": message.content,
        "rawMessage": message.raw,
        "raw_message": message.raw,
        "sourceType": message.source_type,
        "source_type": message.source_type,
        "sourceId": message.source_id or None,
        "source_id": message.source_id or None,
        "metadata": raised | message.metadata,
        "inReplyToRootMessageId": message.reply_to or None,
        "in_reply_to_message_id": message.reply_to or None,
        "createdAt": iso(message.at),
        "updatedAt": iso(changed),
        "created_at": message.at,
        "updated_at": changed,
    }


def broadcast_of(message: ElizaMessage) -> Json:
    """Show a message as clients that have joined its channel get it."""
    return {
        "id": message.id,
        "senderId": message.author,
        "senderName": message.author_name,
        "text": message.content,
        "channelId": message.channel,
        "roomId": message.channel,
        "serverId": message.server,
        "messageServerId": message.server,
        "createdAt": message.at,
        "updatedAt": message.updated_at or message.at,
        "source": message.source_type,
        "rawMessage": message.raw,
        "thought": message.raw.get("thought") or "",
        "actions": message.raw.get("actions") or [],
        "attachments": message.raw.get("attachments")
        or message.metadata.get("attachments")
        or [],
        "inReplyToMessageId": message.reply_to or None,
        "metadata": message.metadata,
    }


def content_fields(text: str, thought: str, actions: Sequence[str]) -> Json:
    """Give an answer's content in the form of ElizaOS; without actions, it replies."""
    return {"text": text, "thought": thought, "actions": list(actions) or [REPLY]}


class ChannelEvent(msgspec.Struct, frozen=True, kw_only=True):
    """One event for the clients that have joined a channel."""

    event: str
    """As the API names it: `messageBroadcast`, …"""

    channel: str
    payload: Json
    sender: str = ""
    """The socket that caused it, which gets `sender_payload` instead."""

    sender_payload: Json = {}


TellChannel = Callable[[ChannelEvent], None]
"""Sends an event to the clients of its channel; never waits, never fails."""


CONTENT_TYPES = {"image": "image", "audio": "audio", "voice": "audio", "video": "video"}


def attachment_of(file: SentFile, url: str) -> Json:
    """Show a file; `url` is its path on this server, which needs the same key."""
    return {
        "id": url.rpartition("/")[2].partition(".")[0],
        "url": url,
        "title": file.name,
        "source": "agent",
        "description": file.caption,
        "text": "",
        "contentType": CONTENT_TYPES.get(file.kind, "document"),
        "mediaType": file.media_type,
        "size": file.size,
    }


def linked(delivery: Delivery, shown: Json) -> Delivery:
    """Link the file of a delivery in its text, for requests that wait for text only."""
    if not shown:
        return delivery
    sign = "!" if shown["contentType"] == "image" else ""
    title = str(shown["title"]).replace("[", "(").replace("]", ")")
    link = f"{sign}[{title}]({shown['url']})"
    text = f"{delivery.text}\n{link}".strip()
    return msgspec.structs.replace(delivery, text=text, file=None)


OFFICIAL = {
    "invalid_api_key": "UNAUTHORIZED",
    "overloaded": "SERVICE_OVERLOADED",
    "not_admitted": "FORBIDDEN",
}
"""Codes that have another name in this API; the others are written in capitals."""


def refuse(
    scope: Scope, error: ApiError, headers: dict[str, str] | None = None
) -> Response:
    """Log one line and make the response to a refused request."""
    log_refusal(scope, error)
    return Response(
        msgspec.json.encode(error_shown(error)),
        status_code=error.status,
        headers=error_headers(error) | (headers or {}),
        media_type="application/json",
    )


def error_shown(error: ApiError) -> Json:
    """Show an error; for a missing key, older clients read `message`."""
    shown: Json = {"success": False, "error": fields_of(error)}
    if error.status == 401:
        shown["message"] = error.text
    return shown


def fields_of(error: ApiError) -> Json:
    """Give the fields of an error."""
    code = OFFICIAL.get(error.code, error.code.upper())
    fields: Json = {"code": code, "message": error.text}
    if error.param:
        fields["details"] = f"field: {error.param}"
    return fields


def missing(what: str, name: str) -> ApiError:
    """Make the error for a thing that does not exist."""
    text = f"{what} {name} does not exist"
    return ApiError(404, text, code=f"{what.replace(' ', '_')}_not_found")


def wrong(text: str, field: str = "") -> ApiError:
    """Make the error for a request with a wrong field."""
    return ApiError(400, text, code="validation_error", param=field or None)


def forbidden(text: str) -> ApiError:
    """Make the error for something that this key may not do."""
    return ApiError(403, text, code="forbidden")


def full(text: str) -> ApiError:
    """Make the error for a limit of the settings."""
    return ApiError(429, text, code="limit_reached", may_repeat=False)


UUID_TEXT = r"^[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}$"
SHAPE = re.compile(UUID_TEXT)

Uuid = Annotated[str, Meta(pattern=UUID_TEXT)]
"""A UUID of any version, the zero UUID included."""

ZERO = "00000000-0000-0000-0000-000000000000"
"""The id of the server that every company has."""

UNQUOTED = "!~*'()-_."
"""Characters that JavaScript's `encodeURIComponent` does not escape."""


def is_uuid(text: str) -> bool:
    """Whether a text is a UUID."""
    return SHAPE.fullmatch(text) is not None


def to_uuid(text: str) -> str:
    """Give the UUID of a text; of a UUID, itself in lower case."""
    if is_uuid(text):
        return text.lower()
    digest = bytearray(hashlib.sha1(quote(text, safe=UNQUOTED).encode()).digest()[:16])  # noqa: S324  no secret: the API's rule
    digest[6] &= 0x0F
    digest[8] = digest[8] & 0x3F | 0x80
    return str(UUID(bytes=bytes(digest)))


class AgentIds:
    """The UUIDs of agents: those of what people call them.

    Args:
        shown: what people call each agent, by its name in the settings.
    """

    def __init__(self, shown: Mapping[str, str]) -> None:
        self._shown = shown
        self._names = {to_uuid(text): name for name, text in shown.items()}
        self._known = {to_uuid(name): name for name in shown} | self._names
        """With ids from before an agent had a display name."""

    def name(self, agent_id: str) -> str:
        """Give an agent's name by an id or a name of it; empty: it does not exist."""
        return self._known.get(to_uuid(agent_id), "")

    def shown(self, name: str) -> str:
        """Give what people call an agent; of one that has gone, its name."""
        return self._shown.get(name, name)

    def id(self, agent: str) -> str:
        """Give the id of an agent by an id or a name of it, as of nobody's name."""
        return to_uuid(self.shown(self.name(agent) or agent))

    def all(self) -> dict[str, str]:
        """Give all names by id."""
        return dict(self._names)

    def among(self, ids: tuple[str, ...]) -> tuple[str, ...]:
        """Give the names of those ids that are agents, in their order."""
        found = (self._known[each] for each in ids if each in self._known)
        return tuple(dict.fromkeys(found))


ULID = re.compile(rf"[0-7][{ALPHABET}]{{25}}")

LONGEST = 26


@lru_cache(maxsize=16_384)
def own_id(agent_id: str, name: str) -> str:
    """Give the id that an agent has for something.

    Args:
        name: id of a channel, server, person or message; a UUID.
    """
    return agent_id if name == agent_id else to_uuid(f"{name}:{agent_id}")


def as_uuid(ulid: str) -> str:
    """Write a ULID as a UUID; any other id becomes the UUID of its text."""
    if not ULID.fullmatch(ulid):
        return to_uuid(ulid)
    number = 0
    for letter in ulid:
        number = number << 5 | ALPHABET.index(letter)
    return str(UUID(int=number))


def as_ulid(uuid: str) -> str:
    """Give the ULID that `as_uuid` wrote as this UUID."""
    number, letters = UUID(uuid).int, ""
    for _ in range(LONGEST):
        letters = ALPHABET[number & 31] + letters
        number >>= 5
    return letters
