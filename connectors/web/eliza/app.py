"""Puts services and routes of the ElizaOS API together.

Services belong to the kernel's side, routes to the edge's loop.

A request may wait for an agent's answer, whole or as a stream. The message itself is
durable: when the client closes the connection, the agents go on, and their answer is
stored in the channel.
"""

from __future__ import annotations

import asyncio
from collections.abc import (
    AsyncGenerator,
    AsyncIterator,
    Awaitable,
    Callable,
    Generator,
    Mapping,
    Sequence,
)
from contextlib import AsyncExitStack, ExitStack, asynccontextmanager, contextmanager
from http import HTTPStatus
from pathlib import Path

import msgspec
import trio
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.routing import BaseRoute
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from actors.messages.inbound import Attachment
from actors.transport import Earlier, RefusedAttempt
from connectors.chat.platforms import TransportParts
from connectors.web.eliza.keys import Keys, RateLimit
from connectors.web.eliza.messages import (
    ElizaMessage,
    Json,
    TellChannel,
    content_fields,
    eliza_history,
    fields_of,
    message_shown,
    refuse,
)
from connectors.web.eliza.platform import WebConfig
from connectors.web.eliza.request import WINDOW, ElizaContext, ElizaRoutes, both, cors
from connectors.web.eliza.routes.agents import (
    AgentRoutes,
    LogRoutes,
    ProgramRoutes,
    RunRoutes,
)
from connectors.web.eliza.routes.audio import AudioRoutes
from connectors.web.eliza.routes.channels import (
    ChannelRoutes,
    ServerRoutes,
    UploadRoutes,
)
from connectors.web.eliza.routes.memories import MemoryRoutes, RoomRoutes
from connectors.web.eliza.routes.messages import (
    DirectRoutes,
    MessageRoutes,
    SayingRoutes,
)
from connectors.web.eliza.routes.sessions import JobRoutes, SessionRoutes
from connectors.web.eliza.services.channels import Channels
from connectors.web.eliza.services.memories import MemoryEditor, MemoryReader
from connectors.web.eliza.services.messages import (
    ChannelMessages,
    NewMessage,
    PostOutcome,
)
from connectors.web.eliza.services.runs import AgentService, RunReader
from connectors.web.eliza.services.sessions import ElizaJobs, ElizaSessions
from connectors.web.eliza.services.uploads import UploadFolder, linked_files, links_of
from connectors.web.eliza.socketio.logs import LogRing
from connectors.web.eliza.socketio.server import LONGEST_FRAME
from connectors.web.exchange import (
    HttpExchange,
    OpenExchanges,
    unanswered,
    watch_client,
)
from connectors.web.history import ConnectorStore
from connectors.web.server import (
    PATH_CODES,
    ApiError,
    HttpSettings,
    http_settings,
    make_app,
)
from runtime.ids import IdSource
from runtime.telemetry.logs import EventLog
from runtime.telemetry.metrics import Metrics

PREFIXES = ("api", "messaging")
UNKNOWN = "unknown"


class ElizaCounters:
    """The metrics that all connectors of this kind share."""

    def __init__(self, metrics: Metrics) -> None:
        name = ("connector",)
        self.connected = metrics.gauge(
            "callboard_web_connected", "Socket.IO clients that are connected.", name
        )
        self.requests = metrics.counter(
            "callboard_web_requests",
            "Requests that ended, by route (its fixed words) and status.",
            (*name, "route", "status"),
        )
        self.told = metrics.counter(
            "callboard_web_told",
            "Events for those who have joined a channel, by kind.",
            (*name, "event"),
        )
        self.refused = metrics.counter(
            "callboard_web_refused",
            "Clients of Socket.IO and events that were refused or not told, by why.",
            (*name, "why"),
        )
        self.bytes = metrics.counter(
            "callboard_web_bytes",
            "Bytes of requests' and answers' bodies, by direction: in, out.",
            (*name, "direction"),
        )


class ElizaMetrics:
    """The metrics of one connector; on the edge's side."""

    def __init__(self, counters: ElizaCounters, connector: str) -> None:
        self._counters = counters
        self._connector = connector

    def show(self, connected: int) -> None:
        """Set the number of connected Socket.IO clients."""
        self._counters.connected.set(connected, self._connector)

    def told(self, event: str) -> None:
        """Count an event that was sent."""
        self._counters.told.add(1, self._connector, event)

    def refused(self, why: str) -> None:
        """Count a refused client, or an event that was not sent."""
        self._counters.refused.add(1, self._connector, why)

    def request(self, route: str, status: int, bytes_in: int, bytes_out: int) -> None:
        """Count a request that ended; 0 is the status of one without an answer."""
        self._counters.requests.add(1, self._connector, route, str(status))
        self._counters.bytes.add(bytes_in, self._connector, "in")
        self._counters.bytes.add(bytes_out, self._connector, "out")


class MeasuredApp:
    """Counts the requests to an application."""

    def __init__(self, app: ASGIApp, metrics: ElizaMetrics) -> None:
        self._app = app
        self._metrics = metrics

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on, and count it when it ends."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        counts = {"status": 0, "in": 0, "out": 0}

        async def hear() -> Message:
            message = await receive()
            counts["in"] += len(message.get("body", b""))
            return message

        async def tell(message: Message) -> None:
            counts["status"] = message.get("status", counts["status"])
            counts["out"] += len(message.get("body", b""))
            await send(message)

        try:
            await self._app(scope, hear, tell)
        finally:
            route = route_of(scope["path"], scope.get("path_params"))
            status = counts["status"]
            self._metrics.request(route, status, counts["in"], counts["out"])


def route_of(path: str, parameters: Mapping[str, object] | None) -> str:
    """Give the fixed words of a route: `channels/messages`.

    Args:
        parameters: the parts of the path that vary; None: unknown route.
    """
    if parameters is None:
        return UNKNOWN
    given = {str(each) for each in parameters.values()}
    words = [each for each in path.split("/") if each and each not in given]
    while words and words[0] in PREFIXES:
        words.pop(0)
    return "/".join(words) or "/"


Recall = Callable[[str], Awaitable["Earlier | None"]]
Post = Callable[[], Awaitable["PostOutcome"]]

EVENT_STREAM = {"cache-control": "no-cache", "x-accel-buffering": "no"}


class AnswerWaiter:
    """Waits for the answers to messages.

    Args:
        timeout: most seconds that a request waits.
        heartbeat: seconds between the comments that keep a silent stream open.
    """

    def __init__(
        self, ids: IdSource, earlier: Recall, timeout: float, heartbeat: float
    ) -> None:
        self._ids = ids
        self._earlier = earlier
        self._timeout = timeout
        self._heartbeat = heartbeat
        self.waiting = OpenExchanges()

    def new_id(self) -> str:
        """Make the id of a message that is to be handed in."""
        return self._ids.new()

    def stop(self) -> None:
        """End all requests that wait, because the server stops."""
        text = "the server is stopping; the message is kept, its answer will be, too"
        for exchange in self.waiting.all():
            exchange.fail(unanswered(503, text, "stopping"))

    async def whole(
        self, request: Request, said: NewMessage, post: Post, beside: Json
    ) -> Response:
        """Post a message and wait for the whole answer.

        Raises:
            ApiError: it was not accepted, no agent hears it, or there is no answer.
        """
        posted, exchange = await self.answer(request, said, post)
        shown: Json = {"userMessage": message_shown(posted.message)}
        shown["agentResponse"] = content_of(exchange)
        return both(shown | beside, 201)

    async def answer(
        self, request: Request, said: NewMessage, post: Post
    ) -> tuple[PostOutcome, HttpExchange]:
        """Post a message, and give the exchange with its whole answer.

        Raises:
            ApiError: it was not accepted, no agent hears it, or there is no answer.
        """
        async with self._asked(request, said, post, is_live=False) as (
            posted,
            exchange,
        ):
            while not exchange.is_over:
                await exchange.wait_news()
            if exchange.failure is not None:
                raise exchange.failure
            return posted, exchange

    async def stream(self, request: Request, said: NewMessage, post: Post) -> Response:
        """Post a message and stream the answer as server-sent events.

        Raises:
            ApiError: it was not accepted, or no agent hears it.
        """
        stack = AsyncExitStack()
        asked = self._asked(request, said, post, is_live=True)
        posted, exchange = await stack.enter_async_context(asked)

        async def events() -> AsyncIterator[bytes]:
            async with stack:
                async for event in self._events(posted, exchange):
                    yield event

        headers = EVENT_STREAM
        return StreamingResponse(events(), 200, headers, "text/event-stream")

    async def _events(
        self, posted: PostOutcome, exchange: HttpExchange
    ) -> AsyncIterator[bytes]:
        shown = message_shown(posted.message)
        yield event_of("user_message", shown)
        index, message_id = 0, posted.message.id
        while True:
            is_over = exchange.is_over
            if text := exchange.take():
                piece: Json = {"messageId": message_id, "chunk": text, "index": index}
                yield event_of("chunk", piece | {"type": "chunk", "text": text})
                index += 1
            if is_over:
                break
            if not await exchange.wait_news(self._heartbeat):
                yield b": still here\n\n"
        if exchange.failure is None:
            done = content_of(exchange) | {"type": "complete"}
            yield event_of("done", done)
        else:
            yield event_of("error", failed(exchange.failure))

    @asynccontextmanager
    async def _asked(
        self, request: Request, said: NewMessage, post: Post, *, is_live: bool
    ) -> AsyncGenerator[tuple[PostOutcome, HttpExchange]]:
        """Post a message and collect its answers; a repeated one gets those it had."""
        with ExitStack() as stack:
            live = self._exchange(request, said.inbound_id, is_live=is_live)
            exchange = stack.enter_context(live)
            posted = await answerable(post)
            if not posted.is_new:
                known = await self._recall(posted)
                again = self._exchange(
                    request, known.inbound.correlation_id, is_live=is_live
                )
                exchange = stack.enter_context(again)
                exchange.catch_up(await self._earlier(posted.message.id) or known)
            yield posted, exchange

    async def _recall(self, posted: PostOutcome) -> Earlier:
        known = await self._earlier(posted.message.id)
        if known is None:
            text = f"message {posted.message.id} was said before; read its channel"
            raise ApiError(409, text, code="duplicate_message", may_repeat=False)
        return known

    @contextmanager
    def _exchange(
        self, request: Request, correlation_id: str, *, is_live: bool
    ) -> Generator[HttpExchange]:
        """Collect the answers to one message, until the deadline at most."""
        exchange = HttpExchange(correlation_id, "", is_live=is_live)
        late = unanswered(
            504, f"no whole answer within {self._timeout:g} s", "answer_timeout"
        )
        loop = asyncio.get_running_loop()
        deadline = loop.call_later(self._timeout, exchange.fail, late)
        watch = asyncio.ensure_future(watch_client(request.receive, exchange))
        try:
            with self.waiting.holding(correlation_id, exchange):
                yield exchange
        finally:
            deadline.cancel()
            watch.cancel()


async def answerable(post: Post) -> PostOutcome:
    """Post a message that needs an answer.

    Raises:
        ApiError: it was not accepted, or no agent hears it.
    """
    posted = await post()
    if posted.is_new and not posted.heard:
        text = "no agent is in this channel; add one, or name it in targetAgentId"
        raise ApiError(400, text, code="no_agent", may_repeat=False)
    return posted


def content_of(exchange: HttpExchange) -> Json:
    """Give a whole answer as agents of ElizaOS give theirs."""
    content = content_fields(exchange.text, exchange.thought, exchange.actions)
    return content | {"source": "callboard"}


def failed(error: ApiError) -> Json:
    """Show an error in a stream, for clients of both spellings."""
    return {
        "error": error.text,
        "type": "error",
        "text": error.text,
        "code": fields_of(error)["code"],
    }


def event_of(name: str, shown: Json) -> bytes:
    """Write one event."""
    return b"event: %b\ndata: %b\n\n" % (name.encode(), msgspec.json.encode(shown))


LOG = EventLog("web")

DAY = 86_400.0
"""Seconds."""


class ElizaServices:
    """All that requests and sockets of one connector use.

    Used on the kernel's side only, but for `keys`, `clock` and `logs` (any thread),
    `answers` and `metrics` (the edge's side), and `uploads` (threads).
    """

    def __init__(
        self, name: str, config: WebConfig, parts: TransportParts, tell: TellChannel
    ) -> None:
        place = ConnectorStore(parts.store, parts.clock, name)
        company = parts.backstage
        self.config = config
        self.settings = settings_of(name, config)
        self.clock = parts.clock
        self.bridge = parts.bridge
        self.backstage = company
        self._parts = parts
        self.tell = tell
        self.keys = Keys(config)
        self.metrics = ElizaMetrics(parts.once(ElizaCounters), name)
        self.logs = LogRing(company.services.redact, parts.shown)
        self.uploads = UploadFolder(Path(config.uploads), config.max_uploads_bytes)
        self.history = eliza_history(place)
        self.channels = Channels(place, config, self._shown, self.history, tell)
        channels, history = self.channels, self.history
        self.messages = ChannelMessages(name, channels, history, tell)
        self.sessions = ElizaSessions(place, config.max_jobs, channels)
        self.jobs = ElizaJobs(place, config.max_jobs, channels, self.messages)
        self.messages.on_answer = self.jobs.answered
        self.memories = MemoryReader(place, channels, history, company)
        self.memory_editor = MemoryEditor(
            place, channels, history, self.memories, company
        )
        self.runs = RunReader(place, channels, self.memories, company)
        self.agents = AgentService(place, company)
        self.answers = AnswerWaiter(
            parts.ids.branch(),
            self._earlier,
            config.answer_timeout,
            self.settings.heartbeat,
        )
        self.started = 0
        """When it was asked to serve, in Unix milliseconds."""

    def agent_id(self, name: str) -> str:
        """Give the id of an agent; any thread may call it."""
        return self.channels.agents.id(name)

    def _shown(self) -> dict[str, str]:
        """Give what people call each agent that can be spoken to now."""
        return {name: self._parts.shown(name) for name in self._parts.agents()}

    async def incoming(
        self, message: ElizaMessage, *, sender: str = "", client_id: str = ""
    ) -> NewMessage:
        """Make what is handed in for a message, with the files that it links.

        On the edge's loop. `sender` and `client_id` are those of its socket.
        """
        files: list[Attachment] = []
        if links_of(message):
            files = await asyncio.to_thread(linked_files, self.uploads, message)
        return NewMessage(
            message=message,
            inbound_id=self.answers.new_id(),
            attachments=tuple(files),
            sender=sender,
            client_id=client_id,
        )

    async def load(self) -> None:
        """Read what is kept in memory.

        Raises:
            StoreError: the disk fails.
        """
        for each in (self.channels, self.sessions, self.jobs):
            await each.load()

    async def tidy(self) -> int:
        """Delete what is too old, or too much; count the messages.

        Raises:
            StoreError: the disk fails; the next round goes on.
        """
        await self.sessions.forget_ended()
        await self.jobs.forget_ended()
        await self._tidy_uploads()
        config, chats = self.config, [each.id for each in self.channels.every()]
        return await self.history.tidy(chats, config.keep_days, config.keep_messages)

    async def _earlier(self, message_id: str) -> Earlier | None:
        """Ask the kernel what became of a message; on the edge's side."""
        return await self.bridge.ask_kernel(self.messages.earlier, message_id)

    async def _tidy_uploads(self) -> None:
        now = self.clock.wall()
        kept = frozenset(each.id for each in self.channels.every())
        before = now - self.config.keep_days * DAY
        try:
            await trio.to_thread.run_sync(self.uploads.tidy, kept, now, before)
        except OSError as error:
            LOG.warning("old files not deleted yet", why=error.strerror or "?")


def settings_of(name: str, config: WebConfig) -> HttpSettings:
    """Say how the server listens."""
    keys = [config.api_key, *(each.key for each in config.keys.values())]
    first = next((each.reveal() for each in keys if each is not None), "")
    return msgspec.structs.replace(
        http_settings(name, config),
        api_key=first,
        answer_timeout=config.answer_timeout,
        max_frame_bytes=LONGEST_FRAME,
    )


def make_api(
    services: ElizaServices,
    record_attempt: Callable[[RefusedAttempt], None],
    further: Sequence[BaseRoute],
) -> ASGIApp:
    """Make the application.

    Args:
        record_attempt: puts on record that somebody was not let in; any thread.
        further: other routes, asked after those of the API.
    """
    config, services.started = services.config, int(services.clock.wall() * 1000)
    context = ElizaContext(
        settings=services.settings,
        keys=services.keys,
        rate=RateLimit(config.rate_limit, WINDOW),
        uploads=RateLimit(config.upload_limit, WINDOW),
        clock=services.clock,
        bridge=services.bridge,
        agents=lambda: services.channels.agents,
        record_attempt=record_attempt,
        origins=config.origins,
    )
    routes = [*routes_of(services, ElizaRoutes(context)), *further]
    app = make_app(routes, answer_error, unknown_endpoint)
    return MeasuredApp(Preflight(app, config.origins), services.metrics)


ROUTES = (
    ServerRoutes,
    ChannelRoutes,
    MessageRoutes,
    UploadRoutes,
    SayingRoutes,
    SessionRoutes,
    JobRoutes,
    DirectRoutes,
    RoomRoutes,
    MemoryRoutes,
    AudioRoutes,
    LogRoutes,
    RunRoutes,
    AgentRoutes,
    ProgramRoutes,
)
"""In the order in which they are asked."""


def routes_of(services: ElizaServices, desk: ElizaRoutes) -> list[BaseRoute]:
    """Give all routes of the API."""
    return [route for each in ROUTES for route in each(services).routes(desk)]


class Preflight:
    """Answers the browser's preflight requests (CORS); passes on all others.

    Args:
        origins: web pages of other servers that may use the API.
    """

    def __init__(self, app: ASGIApp, origins: tuple[str, ...]) -> None:
        self._app = app
        self._origins = origins

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer `OPTIONS`, for which no key is needed."""
        if scope["type"] == "http" and scope["method"] == "OPTIONS":
            headers = cors(Request(scope), self._origins)
            response = Response(status_code=204, headers=headers)
            await response(scope, receive, send)
        else:
            await self._app(scope, receive, send)


def answer_error(
    request: Request, error: ApiError, headers: dict[str, str]
) -> Response:
    """Write an error in the API's shape, and log it."""
    return refuse(request.scope, error, headers)


def unknown_endpoint(request: Request, status: int) -> ApiError:
    """Make the error for an unknown path or method."""
    text = "API endpoint not found" if status == 404 else HTTPStatus(status).phrase
    told = f"{text}: {request.method} {request.url.path}"
    return ApiError(status, told, code=PATH_CODES.get(status, "http_error"))
