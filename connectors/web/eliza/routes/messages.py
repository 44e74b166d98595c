"""Messages over HTTP: sent, read, changed, searched and deleted."""

from __future__ import annotations

from typing import TYPE_CHECKING
from uuid import uuid4

from msgspec import structs

from connectors.web.eliza.messages import (
    AGENT_SOURCE,
    ZERO,
    ElizaChannel,
    ElizaMessage,
    Json,
    is_uuid,
    message_shown,
    missing,
    to_agent,
    to_uuid,
    wrong,
)
from connectors.web.eliza.request import (
    ActionPatch,
    CompleteBody,
    DirectMessageBody,
    ElizaCall,
    ElizaRoutes,
    ExternalMessageBody,
    ExternalMessagesBody,
    MessageBody,
    MessagePatch,
    SearchBody,
    SubmitBody,
    Wait,
    both,
    gone,
    ok,
    raw,
    read_body_as,
    read_time,
)
from connectors.web.eliza.routes.channels import API, CHANNEL_PATHS
from connectors.web.eliza.services.messages import PostOutcome, complete_event

if TYPE_CHECKING:
    from starlette.responses import Response
    from starlette.routing import BaseRoute

    from connectors.web.eliza.app import ElizaServices
    from connectors.web.eliza.keys import ApiCaller


MOST_MESSAGES = 500
"""Most messages in one response."""

MOST_SOUGHT = 5_000
"""Messages that one search reads, the newest first."""

PAGE = 200


class MessageRoutes:
    """Routes that read, change and delete messages."""

    def __init__(self, services: ElizaServices) -> None:
        self._channels = services.channels
        self._editor = services.memory_editor
        self._history = services.history
        self._messages = services.messages

    def routes(self, desk: ElizaRoutes) -> list[BaseRoute]:
        """Give the routes, under each of their names."""
        one = f"{API}/messages/{{message}}"
        found: list[BaseRoute] = [
            desk.route("POST", f"{API}/messages/search", "read", self.search),
            desk.route("GET", one, "read", self.show),
            desk.route("PATCH", one, "write", self.change),
        ]
        for place in CHANNEL_PATHS:
            said = f"{API}/{place}/{{channel}}/messages"
            found += [
                desk.route("GET", said, "read", self.page),
                desk.route("DELETE", said, "manage", self.clear),
                desk.route("DELETE", f"{said}/{{message}}", "write", self.forget),
            ]
        return found

    async def page(self, call: ElizaCall) -> Response:
        """List messages of a channel, the newest first."""
        limit = call.number("limit", 50, 1, MOST_MESSAGES)
        before = read_time(call.query("before"), "before")
        after = read_time(call.query("after"), "after")

        async def read() -> tuple[ElizaMessage, ...]:
            channel = self._channels.channel(call.caller, call.id("channel"))
            return await self._history.page(
                channel.id, before=before, after=after, limit=limit
            )

        found = await call.ask(read)
        return ok({"messages": [message_shown(each) for each in found]})

    async def show(self, call: ElizaCall) -> Response:
        """Give one message."""
        found = await call.ask(self._own, call.caller, call.id("message"))
        return ok(message_shown(found))

    async def change(self, call: ElizaCall) -> Response:
        """Change a message; only its author may."""
        asked = call.read(MessagePatch)
        found = await call.ask(self._own, call.caller, call.id("message"))
        call.author(found.author)
        worded = structs.replace(found, content=asked.content)
        changed = await call.ask(self._messages.change, worded)
        return ok(message_shown(changed))

    async def forget(self, call: ElizaCall) -> Response:
        """Delete a message; its author may, and keys with the scope `manage`."""
        found = await call.ask(self._own, call.caller, call.id("message"))
        if found.channel != call.id("channel"):
            raise missing("message", found.id)
        if "manage" not in call.caller.scopes:
            call.author(found.author)
        await call.ask(self._forget, found)
        return gone()

    async def clear(self, call: ElizaCall) -> Response:
        """Delete all messages of a channel."""
        await call.ask(self._clear, call.caller, call.id("channel"))
        return gone()

    async def search(self, call: ElizaCall) -> Response:
        """Find messages by words, author and time, the newest first."""
        asked = call.read(SearchBody)
        if not (asked.query or asked.author_id or asked.channel_id):
            raise wrong("query, authorId or channelId is needed", "query")
        found, is_whole = await call.ask(self._search, call.caller, asked)
        shown = [message_shown(each) for each in found]
        return ok({"messages": shown, "total": len(shown), "isWhole": is_whole})

    async def _forget(self, message: ElizaMessage) -> None:
        """Delete a message, and the facts that agents noted because of it."""
        channel = self._channels.find(message.channel)
        if channel is not None:
            await self._editor.of_message(channel, message)
        await self._messages.forget(message)

    async def _clear(self, caller: ApiCaller, channel_id: str) -> None:
        """Delete all messages of a channel; agents forget it."""
        channel = self._channels.channel(caller, channel_id)
        await self._editor.clear_for_all(channel)
        await self._messages.clear(caller, channel_id)

    async def _own(self, caller: ApiCaller, message_id: str) -> ElizaMessage:
        """Give a message that the caller may see."""
        found = await self._history.get(message_id)
        if found is None:
            raise missing("message", message_id)
        self._channels.channel(caller, found.channel)
        return found

    async def _search(
        self, caller: ApiCaller, asked: SearchBody
    ) -> tuple[list[ElizaMessage], bool]:
        """Search channels; the flag says whether all messages were read."""
        every = self._channels.every()
        channels = [each for each in every if caller.may_enter(each)]
        if asked.channel_id:
            channels = [self._channels.channel(caller, asked.channel_id.lower())]
        before = read_time(str(asked.before or ""), "to")
        after = read_time(str(asked.after or ""), "from")
        found: list[ElizaMessage] = []
        left = MOST_SOUGHT
        for channel in channels:
            at = before
            while left > 0:
                page = await self._history.page(
                    channel.id, before=at, after=after, limit=PAGE
                )
                left -= PAGE
                found += (each for each in page if fits(each, asked))
                if len(page) < PAGE:
                    break
                at = page[-1].at
        found.sort(key=lambda each: -each.at)
        return found[: asked.limit], left > 0


def fits(message: ElizaMessage, asked: SearchBody) -> bool:
    """Whether a message fits a search."""
    author = (asked.author_id or "").lower()
    is_theirs = not author or message.author == author
    return is_theirs and asked.query.casefold() in message.content.casefold()


class SayingRoutes:
    """Routes that send messages, and wait for answers if wanted."""

    def __init__(self, services: ElizaServices) -> None:
        self._channels = services.channels
        self._messages = services.messages
        self._incoming = services.incoming
        self._answers = services.answers
        self._tell = services.tell

    def routes(self, desk: ElizaRoutes) -> list[BaseRoute]:
        """Give the routes."""
        found: list[BaseRoute] = [
            desk.route("POST", f"{API}/submit", "act", self.submit),
            desk.route("POST", f"{API}/action", "act", self.submit),
            desk.route("PATCH", f"{API}/action/{{message}}", "act", self.change),
            desk.route("POST", f"{API}/ingest-external", "act", self.ingest),
            desk.route("POST", f"{API}/complete", "act", self.complete),
        ]
        for place in CHANNEL_PATHS:
            path = f"{API}/{place}/{{channel}}/messages"
            found.append(desk.route("POST", path, "write", self.post))
        return found

    async def post(self, call: ElizaCall) -> Response:
        """Send a message to a channel, which is created if needed."""
        asked = call.read(MessageBody)
        author = call.author(asked.author_id)
        channel_id = call.id("channel")
        metadata = asked.metadata or {}
        if asked.attachments:
            metadata |= {"attachments": asked.attachments}
        await call.ask(self._ensure, call.caller, channel_id, author, asked)
        message = ElizaMessage(
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
        self,
        call: ElizaCall,
        message: ElizaMessage,
        transport: Wait,
        beside: Json | None = None,
    ) -> Response:
        """Send a message, and respond as its client wants to wait.

        Args:
            transport: `http` waits for the answer, `sse` streams it.
            beside: further fields of the response.
        """
        said = await self._incoming(message)

        async def post() -> PostOutcome:
            return await call.ask(self._messages.post, call.caller, said)

        if transport == "http":
            return await self._answers.whole(call.request, said, post, beside or {})
        if transport == "sse":
            return await self._answers.stream(call.request, said, post)
        posted = await post()
        shown = {"userMessage": message_shown(posted.message)} | (beside or {})
        return both(shown, 201)

    async def submit(self, call: ElizaCall) -> Response:
        """Accept a message of an agent of any program; other agents hear it."""
        asked = call.read(SubmitBody)
        author = (asked.author_id or asked.agent_id or call.author(None)).lower()
        metadata = asked.metadata or {}
        name = str(metadata.get("agentName") or "")
        agents, content = self._channels.agents, asked.content
        if not content and asked.raw_message:
            content = str(asked.raw_message.get("text") or "")
        message = ElizaMessage(
            id=(asked.message_id or str(uuid4())).lower(),
            channel=asked.channel_id.lower(),
            server=(asked.message_server_id or ZERO).lower(),
            author=author,
            author_name=name or agents.shown(agents.name(author)),
            content=content,
            raw=asked.raw_message or {"text": content},
            source_type=asked.source_type or AGENT_SOURCE,
            source_id=asked.source_id or "",
            metadata=metadata,
            reply_to=(asked.in_reply_to_message_id or "").lower(),
            at=0,
        )
        said = await self._incoming(message)
        posted = await call.ask(self._messages.post, call.caller, said)
        return ok(message_shown(posted.message), 201)

    async def change(self, call: ElizaCall) -> Response:
        """Change a message of an agent; fields that are missing stay."""
        asked = call.read(ActionPatch)
        message_id = call.id("message")

        async def change() -> ElizaMessage:
            found = await self._messages.find(message_id)
            if found is None:
                raise missing("message", message_id)
            self._channels.channel(call.caller, found.channel)
            author = asked.author_id or found.author
            changed = ElizaMessage(
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
            return await self._messages.change(changed)

        return ok(message_shown(await call.ask(change)))

    async def ingest(self, call: ElizaCall) -> Response:
        """Accept messages of another platform, one or many."""
        shared = {key: call.body[key] for key in call.body if key != "messages"}
        bodies = [shared]
        if "messages" in call.body:
            bodies = [
                shared | each for each in call.read(ExternalMessagesBody).messages
            ]
        asked = [read_body_as(rename(body), ExternalMessageBody) for body in bodies]
        ids = [await self._ingest(call, each) for each in asked]
        text = f"{len(ids)} message{'s' * (len(ids) != 1)} taken"
        data: Json = {"messageId": ids[0] if ids else None, "messageIds": ids}
        return raw({"success": True, "message": text, "data": data}, 202)

    async def complete(self, call: ElizaCall) -> Response:
        """Send an event to a channel: an agent has finished."""
        asked = call.read(CompleteBody)
        text = "Completion was told"
        channel_id = (asked.channel_id or "").lower()
        if asked.message_id and not channel_id:
            known = await call.ask(self._messages.find, asked.message_id.lower())
            channel_id = known.channel if known is not None else ""
        if not channel_id:
            raise wrong("channelId, or the messageId of a known message, is needed")
        channel = await call.look(self._channels.channel, call.caller, channel_id)
        news = complete_event(channel, asked.message_id, asked.status, asked.error)
        await call.look(self._tell, news)
        return both({"message": text} | news.payload)

    async def _ingest(self, call: ElizaCall, asked: ExternalMessageBody) -> str:
        author = asked.author_id if is_uuid(asked.author_id) else ""
        known_as = f"{asked.source_type}/{asked.author_id}"
        source = asked.source_id or asked.message_id
        own = f"{asked.source_type}/{asked.channel_id}/{source}"
        message = ElizaMessage(
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
        said = await self._incoming(message)
        posted = await call.ask(self._messages.post, call.caller, said)
        return posted.message.id

    async def _ensure(
        self, caller: ApiCaller, channel_id: str, author: str, asked: MessageBody
    ) -> None:
        """Create the channel of a message, if it does not exist."""
        if self._channels.find(channel_id) is not None:
            return
        target = str((asked.metadata or {}).get("targetAgentId") or "")
        target = to_uuid(target) if target else ""
        made = ElizaChannel(
            id=channel_id,
            server=asked.message_server_id.lower(),
            name=f"Chat {channel_id[:8]}",
            type="DM" if target else "GROUP",
            participants=tuple(each for each in (author, target) if each),
        )
        await self._channels.make(caller, made)


def name_in(metadata: Json) -> str:
    """Find the author's name in metadata; empty: none."""
    for key in ("user_display_name", "userName", "username", "senderName"):
        found = metadata.get(key)
        if isinstance(found, str) and found:
            return found
    return ""


def rename(body: Json) -> Json:
    """Rename fields of another platform's messages."""
    other = {
        "platform": "source_type",
        "text": "content",
        "authorName": "author_display_name",
        "id": "message_id",
    }
    return {other.get(key, key): value for key, value in body.items()}


class DirectRoutes:
    """The route of releases before 1.0: send a message to one agent."""

    def __init__(self, services: ElizaServices) -> None:
        self._memories = services.memories
        self._messages = services.messages
        self._incoming = services.incoming

    def routes(self, desk: ElizaRoutes) -> list[BaseRoute]:
        """Give the route."""
        return [desk.route("POST", "/api/agents/{agent}/message", "write", self.say)]

    async def say(self, call: ElizaCall) -> Response:
        """Send a message to an agent; the client reads the answer in the channel."""
        asked, agent_id = call.read(DirectMessageBody), call.agent()
        text = asked.text or asked.content
        if not text.strip():
            raise wrong("is missing", "text")
        named = asked.user_id or asked.entity_id
        author = call.author(to_uuid(named) if named else None)
        find = self._memories.room_or_direct
        channel = await call.ask(find, call.caller, agent_id, author, asked.channel_id)
        name = asked.user_name or asked.name
        message = to_agent(channel, agent_id, author, name, text)
        said = await self._incoming(structs.replace(message, source_type="direct"))
        posted = await call.ask(self._messages.post, call.caller, said)
        told: Json = {
            "message": "ElizaMessage taken",
            "messageId": posted.message.id,
            "channelId": channel.id,
            "userMessage": message_shown(posted.message),
        }
        return both(told, 202)
