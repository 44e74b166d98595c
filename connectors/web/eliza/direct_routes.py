"""The way in which releases before 1.0 spoke to an agent, led to the channels of today.

`POST /api/agents/<id>/message` says something in the channel that is named (`roomId`),
or in that of the two; the answer comes there (F347).
"""

from __future__ import annotations

from typing import TYPE_CHECKING
from uuid import uuid4

from connectors.web.eliza.asked import DirectAsked
from connectors.web.eliza.desk import both
from connectors.web.eliza.errors import wrong
from connectors.web.eliza.ids import ZERO, to_uuid
from connectors.web.eliza.memory_routes import agent_in
from connectors.web.eliza.shapes import Message, message_shown
from connectors.web.eliza.speech import Said

if TYPE_CHECKING:
    from starlette.responses import Response
    from starlette.routing import BaseRoute

    from connectors.web.eliza.desk import Call, Desk
    from connectors.web.eliza.keys import Caller
    from connectors.web.eliza.parts import Parts
    from connectors.web.eliza.shapes import Channel, Json


class DirectRoutes:
    """What is said to one agent.

    Args:
        parts: as of all routes.
    """

    def __init__(self, parts: Parts) -> None:
        self._channels = parts.channels
        self._memories = parts.memories
        self._speech = parts.speech
        self._awaiting = parts.awaiting

    def routes(self, desk: Desk) -> list[BaseRoute]:
        """Give the route."""
        return [desk.route("POST", "/api/agents/{agent}/message", "write", self.say)]

    async def say(self, call: Call) -> Response:
        """Say something to an agent; whoever asks reads the answer in the channel."""
        asked, agent_id = call.read(DirectAsked), agent_in(call)
        text = asked.text or asked.content
        if not text.strip():
            raise wrong("is missing", "text")
        named = asked.user_id or asked.entity_id
        author = call.author(to_uuid(named) if named else None)
        channel = await call.ask(
            self._room, call.caller, agent_id, author, asked.channel_id
        )
        message = Message(
            id=str(uuid4()),
            channel=channel.id,
            server=channel.server,
            author=author,
            author_name=asked.user_name or asked.name,
            content=text,
            source_type="direct",
            metadata={"targetAgentId": agent_id},
            at=0,
        )
        said = Said(message=message, inbound_id=self._awaiting.new_id())
        posted = await call.ask(self._speech.post, call.caller, said)
        told: Json = {
            "message": "Message taken",
            "messageId": posted.message.id,
            "channelId": channel.id,
            "userMessage": message_shown(posted.message),
        }
        return both(told, 202)

    async def _room(
        self, caller: Caller, agent_id: str, author: str, named: str | None
    ) -> Channel:
        """Give the channel that is named, or that of the two."""
        self._channels.need_agent(agent_id)
        if named is not None:
            return self._memories.room(caller, agent_id, named.lower())
        return await self._channels.direct(caller, author, agent_id, ZERO)
