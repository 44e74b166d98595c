"""Messages that are said over HTTP, and the ways to wait for what is answered."""

from __future__ import annotations

from typing import TYPE_CHECKING
from uuid import uuid4

from connectors.web.eliza.asked import (
    ActionChange,
    CompleteAsked,
    ExternalAsked,
    ManyAsked,
    MessageAsked,
    SubmitAsked,
    Wait,
    read,
)
from connectors.web.eliza.desk import both, ok, raw
from connectors.web.eliza.errors import missing, wrong
from connectors.web.eliza.ids import ZERO, is_uuid, to_uuid
from connectors.web.eliza.server_routes import API
from connectors.web.eliza.shapes import AGENT_SOURCE, Channel, Message, message_shown
from connectors.web.eliza.speech import Posted, Said
from connectors.web.eliza.telling import News

if TYPE_CHECKING:
    from starlette.responses import Response
    from starlette.routing import BaseRoute

    from connectors.web.eliza.desk import Call, Desk
    from connectors.web.eliza.keys import Caller
    from connectors.web.eliza.parts import Parts
    from connectors.web.eliza.shapes import Json
    from connectors.web.eliza.upload_routes import UploadRoutes

OLD_PLACES = ("channels", "central-channels")


class SayingRoutes:
    """What is said.

    Args:
        parts: as of all routes.
        files: finds what messages have with them.
    """

    def __init__(self, parts: Parts, files: UploadRoutes) -> None:
        self._channels = parts.channels
        self._speech = parts.speech
        self._awaiting = parts.awaiting
        self._tell = parts.tell
        self._files = files

    def routes(self, desk: Desk) -> list[BaseRoute]:
        """Give the routes."""
        found: list[BaseRoute] = [
            desk.route("POST", f"{API}/submit", "act", self.submit),
            desk.route("POST", f"{API}/action", "act", self.submit),
            desk.route("PATCH", f"{API}/action/{{message}}", "act", self.change),
            desk.route("POST", f"{API}/ingest-external", "act", self.ingest),
            desk.route("POST", f"{API}/complete", "act", self.complete),
        ]
        for place in OLD_PLACES:
            path = f"{API}/{place}/{{channel}}/messages"
            found.append(desk.route("POST", path, "write", self.post))
        return found

    async def post(self, call: Call) -> Response:
        """Say something in a channel; the channel is made if there is none."""
        asked = call.read(MessageAsked)
        author = call.author(asked.author_id)
        channel_id = call.id("channel")
        metadata = asked.metadata or {}
        if asked.attachments:
            metadata |= {"attachments": asked.attachments}
        await call.ask(self._ensure, call.caller, channel_id, author, asked)
        message = Message(
            id=(asked.message_id or str(uuid4())).lower(),
            channel=channel_id,
            server=asked.message_server_id.lower(),
            author=author,
            author_name=asked.author_display_name or name_in(metadata),
            content=asked.content,
            raw=asked.raw_message or {},
            source_type=asked.source_type,
            source_id=asked.source_id or "",
            metadata=metadata,
            reply_to=(asked.in_reply_to_message_id or "").lower(),
            at=0,
        )
        return await self.say(call, message, asked.transport)

    async def say(
        self, call: Call, message: Message, transport: Wait, beside: Json | None = None
    ) -> Response:
        """Say a message, and answer as its asker wants to wait.

        Args:
            call: the request.
            message: what is said.
            transport: `http` waits for the answer, `sse` streams it.
            beside: what the body of the response is to have, too.
        """
        files = await self._files.shown(message.channel, message.metadata)
        said = Said(
            message=message, inbound_id=self._awaiting.new_id(), attachments=files
        )

        async def post() -> Posted:
            return await call.ask(self._speech.post, call.caller, said)

        if transport == "http":
            return await self._awaiting.whole(call.request, said, post, beside or {})
        if transport == "sse":
            return await self._awaiting.stream(call.request, said, post)
        posted = await post()
        shown = {"userMessage": message_shown(posted.message)} | (beside or {})
        return both(shown, 201)

    async def submit(self, call: Call) -> Response:
        """Take what an agent says, wherever it runs; other agents hear it."""
        asked = call.read(SubmitAsked)
        author = (asked.author_id or asked.agent_id or call.author(None)).lower()
        metadata = asked.metadata or {}
        name = str(metadata.get("agentName") or "")
        content = asked.content
        if not content and asked.raw_message:
            content = str(asked.raw_message.get("text") or "")
        message = Message(
            id=(asked.message_id or str(uuid4())).lower(),
            channel=asked.channel_id.lower(),
            server=(asked.message_server_id or ZERO).lower(),
            author=author,
            author_name=name or self._channels.agents.name(author),
            content=content,
            raw=asked.raw_message or {"text": content},
            source_type=asked.source_type or AGENT_SOURCE,
            source_id=asked.source_id or "",
            metadata=metadata,
            reply_to=(asked.in_reply_to_message_id or "").lower(),
            at=0,
        )
        said = Said(message=message, inbound_id=self._awaiting.new_id())
        posted = await call.ask(self._speech.post, call.caller, said)
        return ok(message_shown(posted.message), 201)

    async def change(self, call: Call) -> Response:
        """Let what an agent has said read otherwise; what is not said stays."""
        asked = call.read(ActionChange)
        message_id = call.id("message")

        async def change() -> Message:
            found = await self._speech.find(message_id)
            if found is None:
                raise missing("message", message_id)
            self._channels.channel(call.caller, found.channel)
            author = asked.author_id or found.author
            changed = Message(
                id=found.id,
                channel=found.channel,
                server=found.server,
                author=call.caller.speaker(author.lower()),
                author_name=found.author_name,
                content=found.content if asked.content is None else asked.content,
                raw=found.raw if asked.raw_message is None else asked.raw_message,
                source_type=asked.source_type or found.source_type,
                source_id=found.source_id,
                metadata=found.metadata if asked.metadata is None else asked.metadata,
                reply_to=(asked.in_reply_to_message_id or found.reply_to).lower(),
                at=found.at,
                delivery=found.delivery,
            )
            return await self._speech.change(changed)

        return ok(message_shown(await call.ask(change)))

    async def ingest(self, call: Call) -> Response:
        """Take messages of another platform, one or many."""
        shared = {key: call.body[key] for key in call.body if key != "messages"}
        bodies = [shared]
        if "messages" in call.body:
            bodies = [shared | each for each in call.read(ManyAsked).messages]
        asked = [read(rename(body), ExternalAsked) for body in bodies]
        ids = [await self._ingest(call, each) for each in asked]
        text = f"{len(ids)} message{'s' * (len(ids) != 1)} taken"
        data: Json = {"messageId": ids[0] if ids else None, "messageIds": ids}
        return raw({"success": True, "message": text, "data": data}, 202)

    async def complete(self, call: Call) -> Response:
        """Tell a channel that an agent has said all that it wants to say."""
        asked = call.read(CompleteAsked)
        text = "Completion was told"
        channel_id = (asked.channel_id or "").lower()
        if asked.message_id and not channel_id:
            known = await call.ask(self._speech.find, asked.message_id.lower())
            channel_id = known.channel if known is not None else ""
        if not channel_id:
            raise wrong("channelId, or the messageId of a known message, is needed")
        channel = await call.look(self._channels.channel, call.caller, channel_id)
        payload: Json = {
            "channelId": channel.id,
            "roomId": channel.id,
            "serverId": channel.server,
            "messageServerId": channel.server,
            "messageId": asked.message_id,
            "status": asked.status,
            "error": asked.error,
        }
        news = News(event="messageComplete", channel=channel.id, payload=payload)
        await call.look(self._tell, news)
        return both({"message": text} | payload)

    async def _ingest(self, call: Call, asked: ExternalAsked) -> str:
        author = asked.author_id if is_uuid(asked.author_id) else ""
        known_as = f"{asked.source_type}/{asked.author_id}"
        source = asked.source_id or asked.message_id
        own = f"{asked.source_type}/{asked.channel_id}/{source}"
        message = Message(
            id=to_uuid(own) if source else str(uuid4()),
            channel=asked.channel_id.lower(),
            server=asked.message_server_id.lower(),
            author=(author or to_uuid(known_as)).lower(),
            author_name=asked.author_display_name or asked.author_id,
            content=asked.content,
            raw=asked.raw_message or {},
            source_type=asked.source_type,
            source_id=source,
            metadata=asked.metadata or {},
            reply_to=(asked.in_reply_to_message_id or "").lower(),
            at=0,
        )
        said = Said(message=message, inbound_id=self._awaiting.new_id())
        posted = await call.ask(self._speech.post, call.caller, said)
        return posted.message.id

    async def _ensure(
        self, caller: Caller, channel_id: str, author: str, asked: MessageAsked
    ) -> None:
        """Make the channel that somebody speaks in, if there is none."""
        if self._channels.find(channel_id) is not None:
            return
        target = str((asked.metadata or {}).get("targetAgentId") or "")
        target = to_uuid(target) if target else ""
        made = Channel(
            id=channel_id,
            server=asked.message_server_id.lower(),
            name=f"Chat {channel_id[:8]}",
            type="DM" if target else "GROUP",
            participants=tuple(each for each in (author, target) if each),
        )
        await self._channels.make(caller, made)


def name_in(metadata: Json) -> str:
    """Find the name of whoever wrote something in its metadata."""
    for key in ("user_display_name", "userName", "username", "senderName"):
        found = metadata.get(key)
        if isinstance(found, str) and found:
            return found
    return ""


def rename(body: Json) -> Json:
    """Give the fields of another platform's messages the names that ours have."""
    other = {
        "platform": "source_type",
        "text": "content",
        "authorName": "author_display_name",
        "id": "message_id",
    }
    return {other.get(key, key): value for key, value in body.items()}
