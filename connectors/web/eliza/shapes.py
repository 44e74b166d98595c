"""Servers, channels and messages: as they are kept, and as the API shows them; pure.

Every time here is in milliseconds since 1970, as in the API. Shown are both spellings
of a field where the official server and its client differ (snake and camel).
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Literal

import msgspec

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
"""Kinds of channels in which one agent and one person are by themselves."""

AGENT_SOURCE = "agent_response"
"""The `source_type` of what agents say."""


class Server(msgspec.Struct, frozen=True, kw_only=True):
    """A group of channels, and the agents that hear what is said in them."""

    id: str
    name: str
    source_type: str = "callboard"
    source_id: str = ""
    metadata: Json = {}
    agents: tuple[str, ...] = ()
    """Their ids; of the default server all agents are, whatever stands here."""

    created_at: int = 0
    updated_at: int = 0


class Channel(msgspec.Struct, frozen=True, kw_only=True):
    """A chat, and who is in it."""

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
    """By agent's id: until when (ms) it has forgotten what was said here."""

    created_at: int = 0
    updated_at: int = 0


class Message(msgspec.Struct, frozen=True, kw_only=True):
    """What somebody has said in a channel."""

    id: str
    channel: str
    server: str
    author: str
    author_name: str = ""
    content: str
    raw: Json = {}
    """What its author's program knows of it beside: thought, actions, attachments."""

    source_type: str = ""
    source_id: str = ""
    metadata: Json = {}
    reply_to: str = ""
    at: int
    updated_at: int = 0
    delivery: str = ""
    """The id of the delivery that said it, if an agent of ours did."""


def iso(milliseconds: int) -> str:
    """Write a time as the API does: `2026-01-31T12:00:00.000Z`."""
    at = datetime.fromtimestamp(milliseconds / 1000, UTC)
    return f"{at:%Y-%m-%dT%H:%M:%S}.{milliseconds % 1000:03d}Z"


def server_shown(server: Server) -> Json:
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


def channel_shown(channel: Channel) -> Json:
    """Show a channel; its participants stand in the metadata, where clients look."""
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


def message_shown(message: Message) -> Json:
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


def broadcast_of(message: Message) -> Json:
    """Show a message as it is told to those who have joined its channel."""
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
        "thought": message.raw.get("thought"),
        "actions": message.raw.get("actions"),
        "attachments": message.raw.get("attachments")
        or message.metadata.get("attachments"),
        "inReplyToMessageId": message.reply_to or None,
        "metadata": message.metadata,
    }
