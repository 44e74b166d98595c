"""Rooms, worlds and memories, as the API shows them; pure.

A *room* is a channel as one agent calls it, a *world* a server. A *memory* is either
something that was said in a room, or something that the agent has taken note of: a
fact, a lesson, a summary.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from connectors.web.eliza.ids import to_uuid
from connectors.web.eliza.perspective import as_uuid, own_id
from connectors.web.eliza.shapes import iso

if TYPE_CHECKING:
    from actors.notes import FactKind
    from connectors.web.eliza.shapes import Channel, Json, Message, Server
    from runtime.fact_rows import StoredFact

SAID = "messages"

ALL_KINDS: tuple[FactKind, ...] = (
    "fact",
    "state",
    "lesson",
    "outcome",
    "summary",
    "log",
)

TABLES: dict[str, tuple[FactKind, ...]] = {
    "memories": ALL_KINDS,
    "facts": ("fact",),
    "states": ("state",),
    "lessons": ("lesson",),
    "outcomes": ("outcome",),
    "summaries": ("summary",),
    "logs": ("log",),
    # Official agents have these; ours read documents when they are asked to.
    "documents": (),
    "fragments": (),
    "knowledge": (),
}
"""What is taken note of, by the table that clients ask for."""


class Provenance(msgspec.Struct, frozen=True):
    """Where something remembered comes from; see `actors.considering`."""

    connector: str = ""
    chat: str = ""
    sender: str = ""
    message: str = ""


def room_shown(agent_id: str, channel: Channel) -> Json:
    """Show a channel as the room that an agent knows it as."""
    return {
        "id": own_id(agent_id, channel.id),
        "agentId": agent_id,
        "name": channel.name,
        "type": channel.type,
        "source": channel.source_type or "callboard",
        "channelId": channel.id,
        "messageServerId": channel.server,
        "serverId": channel.server,
        "worldId": own_id(agent_id, channel.server),
        "participants": [own_id(agent_id, each) for each in channel.participants],
        "metadata": channel.metadata,
        "createdAt": iso(channel.created_at),
        "updatedAt": iso(channel.updated_at),
    }


def world_shown(agent_id: str, server: Server) -> Json:
    """Show a server as the world that an agent knows it as."""
    return {
        "id": own_id(agent_id, server.id),
        "agentId": agent_id,
        "name": server.name,
        "messageServerId": server.id,
        "serverId": server.id,
        "metadata": server.metadata,
        "createdAt": iso(server.created_at),
        "updatedAt": iso(server.updated_at),
    }


def said_shown(agent_id: str, channel: Channel, message: Message) -> Json:
    """Show something that was said as an agent remembers it."""
    content: Json = {
        "text": message.content,
        "source": message.source_type,
        "channelType": channel.type,
    }
    content |= {
        name: message.raw[name]
        for name in ("thought", "actions", "attachments")
        if name in message.raw
    }
    if message.reply_to:
        content["inReplyTo"] = own_id(agent_id, message.reply_to)
    return {
        "id": own_id(agent_id, message.id),
        "type": SAID,
        "agentId": agent_id,
        "entityId": own_id(agent_id, message.author),
        "roomId": own_id(agent_id, message.channel),
        "worldId": own_id(agent_id, message.server),
        "content": content,
        "createdAt": message.at,
        "updatedAt": message.updated_at or message.at,
        "metadata": {
            "type": "message",
            "sourceId": message.id,
            "channelId": message.channel,
            "entityName": message.author_name,
        },
    }


def fact_shown(agent_id: str, fact: StoredFact) -> Json:
    """Show something that an agent has taken note of."""
    told = origin(fact)
    content: Json = {"text": fact.text, "source": told.connector or "callboard"}
    if fact.key:
        content["key"] = fact.key
    shown: Json = {
        "id": as_uuid(fact.id),
        "type": fact.kind,
        "agentId": agent_id,
        "entityId": own_id(agent_id, to_uuid(told.sender)) if told.sender else agent_id,
        "content": content,
        "createdAt": int(fact.created_at * 1000),
        "updatedAt": int(fact.created_at * 1000),
        "metadata": {
            "type": fact.kind,
            "category": fact.category,
            "scope": fact.scope.partition(":")[0],
            "usedAt": int(fact.used_at * 1000),
            "expiresAt": int(fact.expires_at * 1000) or None,
        },
    }
    if told.chat:
        shown["roomId"] = own_id(agent_id, to_uuid(told.chat))
    return shown


def origin(fact: StoredFact) -> Provenance:
    """Say where a fact comes from, as far as that is known."""
    try:
        return msgspec.json.decode(fact.provenance or "{}", type=Provenance)
    except (msgspec.MsgspecError, UnicodeDecodeError):
        return Provenance()
