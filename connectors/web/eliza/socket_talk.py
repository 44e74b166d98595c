"""What clients of Socket.IO ask: to join a channel, and to say something there.

Lives on the edge's loop; what is kept is asked of the kernel.
"""

from __future__ import annotations

from typing import TYPE_CHECKING
from uuid import uuid4

import msgspec

from connectors.web.eliza.asked import Words, read
from connectors.web.eliza.errors import forbidden
from connectors.web.eliza.ids import ZERO, Uuid, to_uuid
from connectors.web.eliza.keys import Caller
from connectors.web.eliza.shapes import Channel, Message
from connectors.web.eliza.speech import Said

if TYPE_CHECKING:
    from connectors.web.eliza.parts import Parts
    from connectors.web.eliza.shapes import Json

ACK = "received_by_server_and_processing"


class Who(msgspec.Struct, frozen=True):
    """Whoever has connected."""

    caller: Caller
    entity: str


class JoinAsked(msgspec.Struct, frozen=True):
    """Who wants to be told what is said in a channel."""

    channel_id: Uuid
    agent_id: str | None = None
    entity_id: str | None = None
    message_server_id: str | None = None


class SendAsked(msgspec.Struct, frozen=True):
    """What somebody says."""

    channel_id: Uuid
    sender_id: Uuid
    message: Words
    message_server_id: Uuid = ZERO
    sender_name: str | None = None
    message_id: str | None = None
    source: str | None = None
    attachments: list[dict[str, object]] | None = None
    metadata: dict[str, object] | None = None


class Talk:
    """Does it.

    Args:
        parts: as of the routes.
    """

    def __init__(self, parts: Parts) -> None:
        self._parts = parts

    async def join(self, who: Who, fields: Json) -> Json:
        """Check that somebody may join a channel; one that is still to be made, too.

        Raises:
            ApiError: they may not.
        """
        asked = read(fields, JoinAsked)
        channel_id = asked.channel_id.lower()
        channel = await self._parts.bridge.ask_kernel(self._find, channel_id)
        if channel is None:
            may_enter = not who.caller.entity and bool(
                who.caller.channels.fit(channel_id)
            )
        else:
            may_enter = who.caller.may_enter(channel)
        if not may_enter:
            raise forbidden(f"you may not join the channel {channel_id}")
        told: Json = {
            "message": f"Joined channel {channel_id}",
            "channelId": channel_id,
            "roomId": channel_id,
        }
        return told | ({"agentId": asked.agent_id} if asked.agent_id else {})

    async def send(self, who: Who, fields: Json, sid: str) -> Json:
        """Say something; give what its sender is told.

        Raises:
            ApiError: it was not taken.
            ChatError: likewise.
            KernelError: likewise.
        """
        who.caller.need("write")
        asked = read(fields, SendAsked)
        author = who.caller.speaker(asked.sender_id.lower())
        client_id = asked.message_id or ""
        message = message_of(asked, author)
        said = Said(
            message=message,
            inbound_id=self._parts.awaiting.new_id(),
            sender=sid,
            client_id=client_id,
        )

        async def say() -> Message:
            if self._parts.channels.find(message.channel) is None:
                await self._parts.channels.make(who.caller, channel_of(asked, author))
            posted = await self._parts.speech.post(who.caller, said)
            return posted.message

        kept = await self._parts.bridge.ask_kernel(say)
        return {
            "clientMessageId": client_id,
            "messageId": kept.id,
            "status": ACK,
            "channelId": kept.channel,
            "roomId": kept.channel,
        }

    async def _find(self, channel_id: str) -> Channel | None:
        return self._parts.channels.find(channel_id)


def message_of(asked: SendAsked, author: str) -> Message:
    """Make the message that somebody sends.

    One that is sent again under its own id, after a connection was lost, is the same.
    """
    channel = asked.channel_id.lower()
    name = str(uuid4())
    if asked.message_id and len(asked.message_id) >= len(ZERO):
        name = to_uuid(f"{author}/{channel}/{asked.message_id}")
    metadata = asked.metadata or {}
    if asked.attachments:
        metadata = metadata | {"attachments": asked.attachments}
    return Message(
        id=name,
        channel=channel,
        server=asked.message_server_id.lower(),
        author=author,
        author_name=asked.sender_name or "",
        content=asked.message,
        source_type=asked.source or "socketio_client",
        source_id=asked.message_id or "",
        metadata=metadata,
        at=0,
    )


def channel_of(asked: SendAsked, author: str) -> Channel:
    """Make the channel that somebody speaks in, if there is none."""
    given = asked.metadata or {}
    target = str(given.get("targetUserId") or given.get("recipientId") or "")
    is_direct = bool(given.get("isDm") or given.get("channelType") == "DM")
    agent = str(given.get("targetAgentId") or "")
    others = [to_uuid(each) for each in (target if is_direct else "", agent) if each]
    name = asked.channel_id.lower()
    return Channel(
        id=name,
        server=asked.message_server_id.lower(),
        name=f"{'DM' if is_direct else 'Chat'} {name[:8]}",
        type="DM" if is_direct else "GROUP",
        metadata=given,
        participants=(author, *others),
    )
