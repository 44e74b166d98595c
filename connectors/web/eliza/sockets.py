"""Socket.IO: clients that join channels, speak in them, and are told what is said.

Lives on the edge's loop only. All that is told goes through one bounded queue, so that
everybody hears it in the order in which it happened; whoever reads too slowly is cut
off, and finds what was missed in the channel's history.
"""

from __future__ import annotations

import asyncio
import importlib
from typing import TYPE_CHECKING, Any

import msgspec
from starlette.requests import Request
from starlette.responses import PlainTextResponse

from connectors.web.eliza.desk import is_listed
from connectors.web.eliza.ids import is_uuid
from connectors.web.eliza.keys import not_let_in
from connectors.web.eliza.log_streams import LogStreams
from connectors.web.eliza.shapes import Json, iso
from connectors.web.eliza.socket_talk import Talk, Who
from connectors.web.eliza.streams import Streams
from connectors.web.eliza.telling import News
from connectors.web.errors import EXPECTED_ERRORS, ApiError, translate
from connectors.web.server import check_access
from runtime.logs import EventLog

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from starlette.types import ASGIApp, Receive, Scope, Send

    from actors.deliveries import Draft
    from connectors.web.eliza.parts import Parts


LOG = EventLog("web")

MOST_TOLD = 10_000
"""Events that may wait to be told."""

MOST_UNREAD = 1_000
"""Events that one client may leave unread."""

LONGEST_FRAME = 1_000_000
"""Bytes of one event from a client; as the official server."""

PLACE = "/socket.io/"

FULL = PlainTextResponse(
    "too many clients; try again later\n", 503, headers={"retry-after": "30"}
)

LINE = "log_stream"
"""The event that tells a line of the log."""

JOIN, SEND = 1, 2
"""What a `message` is about, by its `type`."""


class Direct(msgspec.Struct, frozen=True):
    """An event for one client."""

    sid: str
    event: str
    payload: Json


class Sockets:
    """All clients that have connected.

    Args:
        parts: as of the routes.
        talk: does what they ask.
    """

    def __init__(self, parts: Parts, talk: Talk) -> None:
        self._parts = parts
        self._talk = talk
        self._who: dict[str, Who] = {}
        self._queue: asyncio.Queue[News | Direct] = asyncio.Queue(MOST_TOLD)
        self._streams = Streams()
        self._logs = LogStreams(parts.logs, self._tell_line)
        # Why imported here: an extra, and it takes its time.
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
        """Serve Socket.IO at `/socket.io/`, and all else by another application."""
        wrapped: ASGIApp = self._library.ASGIApp(self._server, app)

        async def bounded(scope: Scope, receive: Receive, send: Send) -> None:
            answer = FULL if self._is_too_many(scope) else wrapped
            await answer(scope, receive, send)

        return bounded

    def _is_too_many(self, scope: Scope) -> bool:
        """Whether somebody asks for a session, and there are as many as may be.

        Why: by polling a session needs no connection that stays, and no key either; it
        is forgotten when no answer to a ping comes.
        """
        is_new = scope["type"] == "http" and b"sid=" not in scope["query_string"]
        if not is_new or not str(scope["path"]).startswith(PLACE):
            return False
        return len(self._server.eio.sockets) >= self._parts.config.max_connections

    def tell(self, news: News | Direct) -> None:
        """Have something told; never waits."""
        try:
            self._queue.put_nowait(news)
        except asyncio.QueueFull:
            LOG.warning("event not told", kind=news.event, why="too many wait")
            self._parts.figures.refused("full_queue")

    def draft(self, draft: Draft) -> None:
        """Show a piece of an answer in its channel."""
        told = self._streams.piece(draft)
        if told is not None:
            self.tell(news_of("messageStreamChunk", draft.address.chat, told))

    def end_draft(self, reply_id: str) -> None:
        """Learn that an answer is told whole."""
        self._streams.end(reply_id)

    def settle(self, correlation_id: str, reason: str) -> None:
        """Tell of answers that were begun and never will be whole."""
        for told in self._streams.broken(correlation_id, reason):
            self.tell(news_of("messageStreamError", str(told["channelId"]), told))

    async def run(self) -> None:
        """Tell what waits, in its order, until cancelled."""
        while True:
            item = await self._queue.get()
            try:
                await self._tell(item)
            except Exception as error:  # noqa: BLE001  the others are told all the same
                LOG.fault("event not told", error, kind=item.event)

    async def aclose(self) -> None:
        """Let all clients go, those too that never said who they are."""
        self._logs.stop()
        await self._server.shutdown()

    async def _tell(self, item: News | Direct) -> None:
        if isinstance(item, News):
            await self._tell_all(item)
            return
        await self._server.emit(item.event, item.payload, to=item.sid)
        if item.event == LINE:
            await self._cut_off_slow(item.sid)

    async def _tell_all(self, news: News) -> None:
        server = self._server
        self._parts.figures.told(news.event)
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
            self._parts.figures.refused("slow")
            await server.disconnect(sid)

    async def _put_out(self, news: News) -> None:
        """Put those out of a channel who may not see it any more."""
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
            self._parts.figures.refused(error.code)
            raise refused(error.text) from error
        if len(self._who) >= self._parts.config.max_connections:
            self._parts.figures.refused("full")
            raise refused("too many clients; try again later")
        self._who[sid] = who
        self._parts.figures.show(len(self._who))
        now = iso(int(self._parts.clock.wall() * 1000))
        told: Json = {"entityId": who.entity, "timestamp": now}
        self.tell(Direct(sid, "authenticated", told))
        text = "Connected to the Callboard Socket.IO server"
        hello: Json = {"message": text, "socketId": sid}
        self.tell(Direct(sid, "connection_established", hello))

    def _may_ask(self, origin: str | None, environ: dict[str, str]) -> bool:
        """Whether a page may connect: one of this server, or one that is listed."""
        host = environ.get("HTTP_HOST", "")
        own = {f"http://{host}", f"https://{host}"}
        return (
            not origin or origin in own or is_listed(origin, self._parts.config.origins)
        )

    def _let_in(self, request: Request, key: str, entity: str) -> Who:
        parts = self._parts
        caller = parts.keys.caller(key)
        if caller is None:
            raise ApiError(401, "Invalid or missing API Key", code=not_let_in().code)
        if not parts.keys.are_needed:
            check_access(request, parts.settings)
        if not is_uuid(entity):
            raise ApiError(400, "Valid entityId required", code="validation_error")
        caller.need("read")
        return Who(caller, caller.speaker(entity.lower()))

    async def _disconnect(self, sid: str, *_reason: object) -> None:
        self._who.pop(sid, None)
        self._logs.unsubscribe(sid)
        self._parts.figures.show(len(self._who))

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
        async def join(who: Who) -> None:
            told = await self._talk.join(who, fields_of(asked))
            await self._server.enter_room(sid, str(told["channelId"]))
            self.tell(Direct(sid, "channel_joined", told))
            self.tell(Direct(sid, "room_joined", told))

        await self._serve(sid, join)

    async def _send(self, sid: str, asked: object = None) -> None:
        async def send(who: Who) -> None:
            told = await self._talk.send(who, fields_of(asked), sid)
            self.tell(Direct(sid, "messageAck", told))

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
        self.tell(Direct(sid, "log_subscription_confirmed", told))

    async def _leave_log(self, sid: str, *_: object) -> None:
        self._logs.unsubscribe(sid)
        told: Json = {"subscribed": False, "message": "Unsubscribed from the log"}
        self.tell(Direct(sid, "log_subscription_confirmed", told))

    async def _filter_log(self, sid: str, asked: object = None) -> None:
        try:
            told: Json = {"success": True, "filters": self._logs.change(sid, asked)}
        except ApiError as error:
            told = {"success": False, "error": error.text}
        self.tell(Direct(sid, "log_filters_updated", told))

    def _tell_line(self, sid: str, told: Json) -> None:
        # Why so few: what is said in channels comes before what is logged.
        if self._queue.qsize() < MOST_TOLD // 2:
            self.tell(Direct(sid, LINE, told))

    async def _serve(self, sid: str, do: Callable[[Who], Awaitable[None]]) -> None:
        who = self._who.get(sid)
        if who is None:
            return  # it has gone
        try:
            await do(who)
        except ApiError as error:
            self._parts.figures.refused(error.code)
            self._complain(sid, error.text)
        except EXPECTED_ERRORS as error:
            self._complain(sid, translate(error).text)

    def _complain(self, sid: str, text: str) -> None:
        self.tell(Direct(sid, "messageError", {"error": text}))


class Auth(msgspec.Struct, frozen=True, rename="camel"):
    """What a client says of itself when it connects."""

    entity_id: str = ""
    api_key: str = ""


def auth_of(given: object) -> Auth:
    """Read what a client says of itself; nonsense is nothing."""
    try:
        return msgspec.convert(given, Auth)
    except msgspec.ValidationError:
        return Auth()


def fields_of(given: object) -> Json:
    """Read an object; nonsense is an empty one.

    Why it is written anew: the library takes for JSON what is none (NaN, halves of
    characters, what is nested without end), and clients that were told it would stop.
    """
    try:
        return msgspec.json.decode(msgspec.json.encode(given), type=dict[str, object])
    except (msgspec.MsgspecError, TypeError, UnicodeError, RecursionError):
        return {}


def news_of(event: str, channel: str, payload: Json) -> News:
    """Make an event for those who have joined a channel."""
    return News(event=event, channel=channel, payload=payload)
