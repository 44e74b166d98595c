"""Servers, channels and messages, as they are stored and as the API shows them; pure.

Times are in milliseconds since 1970, as in the API. Where the official server and its
client differ, both spellings of a field are shown (snake and camel).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Literal

import msgspec

from connectors.web.history import ConnectorStore, MessageHistory

if TYPE_CHECKING:
    from actors.messages.deliveries import Delivery
    from actors.messages.inbound import SentFile


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
