"""The Socket.IO server: clients join channels, send messages, and get events.

Runs on the edge's loop only, and asks the services on the kernel's side. All events go
through one bounded queue, so that all clients get them in order. The server disconnects
a client that reads too slowly; the client finds the missed messages in the channel's
history.
"""

from __future__ import annotations

import asyncio
import importlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import msgspec
from starlette.requests import Request
from starlette.responses import PlainTextResponse

from actors.rules.text.limits import RecentMap
from connectors.chat.server_transport import caller_at
from connectors.web.eliza.keys import ApiCaller, not_let_in
from connectors.web.eliza.messages import (
    ZERO,
    ChannelEvent,
    ElizaChannel,
    ElizaMessage,
    Json,
    Uuid,
    forbidden,
    is_uuid,
    iso,
    to_uuid,
)
from connectors.web.eliza.request import Words, is_listed, read_body_as
from connectors.web.eliza.services.messages import reply_name
from connectors.web.eliza.socketio.logs import LogStreams
from connectors.web.request import check_access, client_host
from connectors.web.server import EXPECTED_ERRORS, ApiError, translate
from runtime.fairness import PlacesHeld
from runtime.telemetry.logs import EventLog

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from starlette.types import ASGIApp, Receive, Scope, Send

    from actors.messages.deliveries import Draft
    from connectors.web.eliza.app import ElizaServices


ACK = "received_by_server_and_processing"


class SocketClient(msgspec.Struct, frozen=True):
    """A connected client."""

    caller: ApiCaller
    entity: str


class JoinEvent(msgspec.Struct, frozen=True):
    """The payload of a client that joins a channel."""

    channel_id: Uuid
    agent_id: str | None = None
    entity_id: str | None = None
    message_server_id: str | None = None


class SendEvent(msgspec.Struct, frozen=True):
    """The payload of a client that sends a message."""

    channel_id: Uuid
    sender_id: Uuid
    message: Words
    message_server_id: Uuid = ZERO
    sender_name: str | None = None
    message_id: str | None = None
    source: str | None = None
    attachments: list[dict[str, object]] | None = None
    metadata: dict[str, object] | None = None


class SocketRequests:
    """Carries out the requests."""

    def __init__(self, services: ElizaServices) -> None:
        self._services = services

    async def join(self, who: SocketClient, fields: Json) -> Json:
        """Check that a client may join a channel, which need not exist yet.

        Raises:
            ApiError: it may not.
        """
        asked = read_body_as(fields, JoinEvent)
        channel_id = asked.channel_id.lower()
        channel = await self._services.bridge.ask_kernel(self._find, channel_id)
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

    async def send(self, who: SocketClient, fields: Json, sid: str) -> Json:
        """Send a message; give the acknowledgement.

        Raises:
            ApiError: it was not accepted.
            ChatError: likewise.
            KernelError: likewise.
        """
        who.caller.need("write")
        asked = read_body_as(fields, SendEvent)
        author = who.caller.speaker(asked.sender_id.lower())
        client_id = asked.message_id or ""
        message = message_of(asked, author)
        said = await self._services.incoming(message, sender=sid, client_id=client_id)

        async def say() -> ElizaMessage:
            if self._services.channels.find(message.channel) is None:
                await self._services.channels.make(
                    who.caller, channel_of(asked, author)
                )
            posted = await self._services.messages.post(who.caller, said)
            return posted.message

        kept = await self._services.bridge.ask_kernel(say)
        return {
            "clientMessageId": client_id,
            "messageId": kept.id,
            "status": ACK,
            "channelId": kept.channel,
            "roomId": kept.channel,
        }

    async def _find(self, channel_id: str) -> ElizaChannel | None:
        return self._services.channels.find(channel_id)


def message_of(asked: SendEvent, author: str) -> ElizaMessage:
    """Make the message that a client sends.

    Sent again under the same id, after a lost connection, it is the same message.
    """
    channel = asked.channel_id.lower()
    name = str(uuid4())
    if asked.message_id and len(asked.message_id) >= len(ZERO):
        name = to_uuid(f"{author}/{channel}/{asked.message_id}")
    metadata = asked.metadata or {}
    if asked.attachments:
        metadata = metadata | {"attachments": asked.attachments}
    return ElizaMessage(
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


def channel_of(asked: SendEvent, author: str) -> ElizaChannel:
    """Make the channel of a message, for the case that it does not exist."""
    given = asked.metadata or {}
    target = str(given.get("targetUserId") or given.get("recipientId") or "")
    is_direct = bool(given.get("isDm") or given.get("channelType") == "DM")
    agent = str(given.get("targetAgentId") or "")
    others = [to_uuid(each) for each in (target if is_direct else "", agent) if each]
    name = asked.channel_id.lower()
    return ElizaChannel(
        id=name,
        server=asked.message_server_id.lower(),
        name=f"{'DM' if is_direct else 'Chat'} {name[:8]}",
        type="DM" if is_direct else "GROUP",
        metadata=given,
        participants=(author, *others),
    )


MOST = 1_000


@dataclass
class DraftStream:
    """One answer that is being written, piece by piece."""

    message_id: str
    channel: str
    agent_id: str
    correlation_id: str
    index: int = 0
    text: str = ""


class DraftStreams:
    """The answers that are being written, by reply id.

    Of too many, the oldest is dropped, which loses no answer: it is sent whole.

    Args:
        id_of: gives the id of an agent by its name.
    """

    def __init__(self, id_of: Callable[[str], str]) -> None:
        self._id_of = id_of
        self._open: RecentMap[str, DraftStream] = RecentMap(MOST)

    def piece(self, draft: Draft) -> Json | None:
        """Give the event of one piece; None: it belongs to no reply."""
        if not draft.reply_id:
            return None
        stream = self._open.get(draft.reply_id)
        if stream is None:
            stream = DraftStream(
                message_id=reply_name(draft.reply_id),
                channel=draft.address.chat,
                agent_id=self._id_of(draft.agent),
                correlation_id=draft.correlation_id,
            )
            self._open[draft.reply_id] = stream
        told: Json = {
            "messageId": stream.message_id,
            "chunk": draft.text,
            "index": stream.index,
            "agentId": stream.agent_id,
            "channelId": stream.channel,
        }
        stream.index += 1
        stream.text += draft.text
        return told

    def end(self, reply_id: str) -> None:
        """Note that an answer was sent whole."""
        self._open.pop(reply_id, None)

    def broken(self, correlation_id: str, reason: str) -> list[Json]:
        """Give the events of a message's answers that will never be complete."""
        found = {
            reply_id: each
            for reply_id, each in self._open.items()
            if each.correlation_id == correlation_id
        }
        for reply_id in found:
            del self._open[reply_id]
        return [
            {
                "messageId": each.message_id,
                "channelId": each.channel,
                "agentId": each.agent_id,
                "error": f"the answer was not finished ({reason})",
                "partialText": each.text,
            }
            for each in found.values()
        ]


LOG = EventLog("web")

MOST_TOLD = 10_000
"""Most events that wait to be sent."""

MOST_UNREAD = 1_000
"""Most events that one client may leave unread."""

LONGEST_FRAME = 1_000_000
"""Bytes of one event from a client; as in the official server."""

PLACE = "/socket.io/"

FULL = PlainTextResponse(
    "too many clients; try again later\n", 503, headers={"retry-after": "30"}
)

LINE = "log_stream"
"""The event with a line of the log."""

JOIN, SEND = 1, 2
"""The `type` of a `message`."""


class ClientEvent(msgspec.Struct, frozen=True):
    """An event for one client."""

    sid: str
    event: str
    payload: Json


class SocketServer:
    """All connected clients."""

    def __init__(self, services: ElizaServices, talk: SocketRequests) -> None:
        self._services = services
        self._talk = talk
        self._who: dict[str, SocketClient] = {}
        self._held = PlacesHeld()
        """Those let in, by key or address."""

        self._queue: asyncio.Queue[ChannelEvent | ClientEvent] = asyncio.Queue(
            MOST_TOLD
        )
        self._streams = DraftStreams(services.agent_id)
        self._logs = LogStreams(services.logs, self._tell_line)
        # Why imported here: it is an extra, and slow to import.
        self._library = importlib.import_module("socketio")
        self._server: Any = self._library.AsyncServer(
            async_mode="asgi",
            cors_allowed_origins=self._may_ask,
            ping_interval=25,
            ping_timeout=20,
            max_http_buffer_size=LONGEST_FRAME,
        )
        self._register()

    def wrap(self, app: ASGIApp) -> ASGIApp:
        """Serve Socket.IO at `/socket.io/`, and other paths by an application."""
        wrapped: ASGIApp = self._library.ASGIApp(self._server, app)

        async def bounded(scope: Scope, receive: Receive, send: Send) -> None:
            is_full = self._is_too_many(scope) and not await self._make_room()
            await (FULL if is_full else wrapped)(scope, receive, send)

        return bounded

    def _is_too_many(self, scope: Scope) -> bool:
        """Whether a request opens a new session while there are too many.

        Why: by polling, a session needs neither an open connection nor a key; it ends
        only when a ping is not answered.
        """
        is_new = scope["type"] == "http" and b"sid=" not in scope["query_string"]
        if not is_new or not str(scope["path"]).startswith(PLACE):
            return False
        return len(self._server.eio.sockets) >= self._services.config.max_connections

    async def _make_room(self) -> bool:
        """End the oldest session that nobody has been let in by, if there is one."""
        sockets, manager = self._server.eio.sockets, self._server.manager
        known = {manager.eio_sid_from_sid(each, "/") for each in self._who}
        oldest = next((sid for sid in sockets if sid not in known), None)
        if oldest is None:
            return False
        self._services.metrics.refused("full")
        # Why no `wait`: a stranger may never fetch the words of farewell.
        await sockets.pop(oldest).close(wait=False)
        return True

    def tell(self, news: ChannelEvent | ClientEvent) -> None:
        """Send an event; never waits."""
        try:
            self._queue.put_nowait(news)
        except asyncio.QueueFull:
            LOG.warning("event not told", kind=news.event, why="too many wait")
            self._services.metrics.refused("full_queue")

    def draft(self, draft: Draft) -> None:
        """Show a piece of an answer in its channel."""
        told = self._streams.piece(draft)
        if told is not None:
            self.tell(news_of("messageStreamChunk", draft.address.chat, told))

    def end_draft(self, reply_id: str) -> None:
        """Note that an answer was sent whole."""
        self._streams.end(reply_id)

    def settle(self, correlation_id: str, reason: str) -> None:
        """Send events for answers that will never be complete."""
        for told in self._streams.broken(correlation_id, reason):
            self.tell(news_of("messageStreamError", str(told["channelId"]), told))

    async def run(self) -> None:
        """Send waiting events in order, until cancelled."""
        while True:
            item = await self._queue.get()
            try:
                await self._tell(item)
            except Exception as error:  # noqa: BLE001  the other events are still sent
                LOG.fault("event not told", error, kind=item.event)

    async def aclose(self) -> None:
        """Disconnect all clients, also those not yet authenticated."""
        self._logs.stop()
        for each in tuple(self._server.eio.sockets.values()):
            # Why: a client that polls would hold its request, and with it the end.
            await each.close(wait=False)
        await self._server.shutdown()

    async def _tell(self, item: ChannelEvent | ClientEvent) -> None:
        if isinstance(item, ChannelEvent):
            await self._tell_all(item)
            return
        await self._server.emit(item.event, item.payload, to=item.sid)
        if item.event == LINE:
            await self._cut_off_slow(item.sid)

    async def _tell_all(self, news: ChannelEvent) -> None:
        server = self._server
        self._services.metrics.told(news.event)
        if news.event == "channelUpdated":
            await self._put_out(news)
        await server.emit(
            news.event, news.payload, room=news.channel, skip_sid=news.sender or None
        )
        if news.sender:
            await server.emit(news.event, news.sender_payload, to=news.sender)
        if news.event == "channelDeleted":
            await server.close_room(news.channel)
        for sid, _ in self._members(news.channel):
            await self._cut_off_slow(sid)

    def _members(self, channel: str) -> list[tuple[str, str]]:
        manager = self._server.manager
        if "/" not in manager.rooms or channel not in manager.rooms["/"]:
            return []
        return list(manager.get_participants("/", channel))

    async def _cut_off_slow(self, sid: str) -> None:
        server = self._server
        socket = server.eio.sockets.get(server.manager.eio_sid_from_sid(sid, "/"))
        if socket is not None and socket.queue.qsize() > MOST_UNREAD:
            self._logs.unsubscribe(sid)
            LOG.warning("client cut off", sid=sid, why="it does not read")
            self._services.metrics.refused("slow")
            await server.disconnect(sid)

    async def _put_out(self, news: ChannelEvent) -> None:
        """Remove clients from a channel that may not see it any more."""
        updates = msgspec.convert(news.payload["updates"], dict[str, object])
        inside = updates.get("participantCentralUserIds", [])
        left = msgspec.convert(inside, list[str])
        for sid, _ in self._members(news.channel):
            who = self._who.get(sid)
            if who is not None and who.caller.entity and who.caller.entity not in left:
                await self._server.leave_room(sid, news.channel)

    # --- from clients -------------------------------------------------------------

    def _register(self) -> None:
        on = self._server.on
        on("connect", self._connect)
        on("disconnect", self._disconnect)
        on("message", self._message)
        on(str(JOIN), self._join)
        on(str(SEND), self._send)
        on("subscribe_logs", self._read_log)
        on("unsubscribe_logs", self._leave_log)
        on("update_log_filters", self._filter_log)

    async def _connect(self, sid: str, environ: Any, auth: object = None) -> None:  # noqa: ANN401  the library's
        refused: Any = self._library.exceptions.ConnectionRefusedError
        given = auth_of(auth)
        # Why the type: a WebSocket has the same headers.
        request = Request({**environ["asgi.scope"], "type": "http"})
        key = given.api_key or request.headers.get("x-api-key", "")
        try:
            who = self._let_in(request, key, given.entity_id)
        except ApiError as error:
            self._services.metrics.refused(error.code)
            raise refused(error.text) from error
        most, owner = self._services.config.max_connections, (who.caller.sharer,)
        if len(self._who) >= most or not self._held.may_add(owner, most):
            self._services.metrics.refused("full")
            raise refused("too many clients; try again later")
        self._who[sid] = who
        self._held.add(owner)
        self._services.metrics.show(len(self._who))
        now = iso(int(self._services.clock.wall() * 1000))
        told: Json = {"entityId": who.entity, "timestamp": now}
        self.tell(ClientEvent(sid, "authenticated", told))
        text = "Connected to the Callboard Socket.IO server"
        hello: Json = {"message": text, "socketId": sid}
        self.tell(ClientEvent(sid, "connection_established", hello))

    def _may_ask(self, origin: str | None, environ: dict[str, str]) -> bool:
        """Whether a web page may connect: of this server, or a listed one."""
        host = environ.get("HTTP_HOST", "")
        own = {f"http://{host}", f"https://{host}"}
        return (
            not origin
            or origin in own
            or is_listed(origin, self._services.config.origins)
        )

    def _let_in(self, request: Request, key: str, entity: str) -> SocketClient:
        services = self._services
        caller = services.keys.caller(key)
        if caller is None:
            raise ApiError(401, "Invalid or missing API Key", code=not_let_in().code)
        if not services.keys.are_needed:
            check_access(request, services.settings)
        if not is_uuid(entity):
            raise ApiError(400, "Valid entityId required", code="validation_error")
        caller.need("read")
        address = caller_at(client_host(request.scope))
        caller = msgspec.structs.replace(caller, address=address)
        return SocketClient(caller, caller.speaker(entity.lower()))

    async def _disconnect(self, sid: str, *_reason: object) -> None:
        who = self._who.pop(sid, None)
        if who is not None:
            self._held.remove((who.caller.sharer,))
        self._logs.unsubscribe(sid)
        self._services.metrics.show(len(self._who))

    async def _message(self, sid: str, asked: object = None) -> None:
        fields = fields_of(asked)
        kind = fields.get("type")
        if str(kind) == str(JOIN):
            await self._join(sid, fields.get("payload"))
        elif str(kind) == str(SEND):
            await self._send(sid, fields.get("payload"))
        else:
            self._complain(sid, f"a message of type {kind!r} is not understood")

    async def _join(self, sid: str, asked: object = None) -> None:
        async def join(who: SocketClient) -> None:
            told = await self._talk.join(who, fields_of(asked))
            await self._server.enter_room(sid, str(told["channelId"]))
            self.tell(ClientEvent(sid, "channel_joined", told))
            self.tell(ClientEvent(sid, "room_joined", told))

        await self._serve(sid, join)

    async def _send(self, sid: str, asked: object = None) -> None:
        async def send(who: SocketClient) -> None:
            told = await self._talk.send(who, fields_of(asked), sid)
            self.tell(ClientEvent(sid, "messageAck", told))

        await self._serve(sid, send)

    async def _read_log(self, sid: str, *_: object) -> None:
        told: Json = {"subscribed": True, "message": "Subscribed to the log"}
        try:
            who = self._who.get(sid)
            if who is not None:
                who.caller.need("operate")
                self._logs.subscribe(sid)
        except ApiError as error:
            told = {"subscribed": False, "message": error.text}
        self.tell(ClientEvent(sid, "log_subscription_confirmed", told))

    async def _leave_log(self, sid: str, *_: object) -> None:
        self._logs.unsubscribe(sid)
        told: Json = {"subscribed": False, "message": "Unsubscribed from the log"}
        self.tell(ClientEvent(sid, "log_subscription_confirmed", told))

    async def _filter_log(self, sid: str, asked: object = None) -> None:
        try:
            told: Json = {"success": True, "filters": self._logs.change(sid, asked)}
        except ApiError as error:
            told = {"success": False, "error": error.text}
        self.tell(ClientEvent(sid, "log_filters_updated", told))

    def _tell_line(self, sid: str, told: Json) -> None:
        # Why half: messages have precedence over lines of the log.
        if self._queue.qsize() < MOST_TOLD // 2:
            self.tell(ClientEvent(sid, LINE, told))

    async def _serve(
        self, sid: str, do: Callable[[SocketClient], Awaitable[None]]
    ) -> None:
        who = self._who.get(sid)
        if who is None:
            return  # it is disconnected
        try:
            await do(who)
        except ApiError as error:
            self._services.metrics.refused(error.code)
            self._complain(sid, error.text)
        except EXPECTED_ERRORS as error:
            self._complain(sid, translate(error).text)

    def _complain(self, sid: str, text: str) -> None:
        self.tell(ClientEvent(sid, "messageError", {"error": text}))


class SocketAuth(msgspec.Struct, frozen=True, rename="camel"):
    """The authentication that a client sends when it connects."""

    entity_id: str = ""
    api_key: str = ""


def auth_of(given: object) -> SocketAuth:
    """Read the authentication of a client; a wrong one is empty."""
    try:
        return msgspec.convert(given, SocketAuth)
    except msgspec.ValidationError:
        return SocketAuth()


def fields_of(given: object) -> Json:
    """Read an object; anything else is an empty object.

    Why it is encoded and decoded: the library accepts invalid JSON (NaN, half
    characters, endless nesting), which would break the clients that get it.
    """
    try:
        return msgspec.json.decode(msgspec.json.encode(given), type=dict[str, object])
    except (msgspec.MsgspecError, TypeError, UnicodeError, RecursionError):
        return {}


def news_of(event: str, channel: str, payload: Json) -> ChannelEvent:
    """Make an event for the clients of a channel."""
    return ChannelEvent(event=event, channel=channel, payload=payload)
