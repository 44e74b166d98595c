"""Puts services and routes of the ElizaOS API together.

Services belong to the kernel's side, routes to the edge's loop.
"""

from __future__ import annotations

import asyncio
from http import HTTPStatus
from pathlib import Path
from typing import TYPE_CHECKING

import trio
from starlette.requests import Request
from starlette.responses import Response

from connectors.web.eliza.errors import refuse
from connectors.web.eliza.keys import Keys, RateLimit
from connectors.web.eliza.messages import ElizaMessage, TellChannel, eliza_history
from connectors.web.eliza.metrics import ElizaCounters, ElizaMetrics, MeasuredApp
from connectors.web.eliza.request import WINDOW, ElizaContext, ElizaRoutes, cors
from connectors.web.eliza.routes.agents import AgentRoutes, RunRoutes
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
from connectors.web.eliza.routes.program import LogRoutes, ProgramRoutes
from connectors.web.eliza.routes.sessions import JobRoutes, SessionRoutes
from connectors.web.eliza.services.agents import AgentService
from connectors.web.eliza.services.channels import Channels
from connectors.web.eliza.services.jobs import ElizaJobs
from connectors.web.eliza.services.memories import MemoryEditor, MemoryReader
from connectors.web.eliza.services.messages import ChannelMessages, NewMessage
from connectors.web.eliza.services.runs import RunReader
from connectors.web.eliza.services.sessions import ElizaSessions
from connectors.web.eliza.services.uploads import UploadFolder, linked_files, links_of
from connectors.web.eliza.socketio.logs import LogRing
from connectors.web.eliza.socketio.server import LONGEST_FRAME
from connectors.web.eliza.waiting import AnswerWaiter
from connectors.web.errors import ApiError
from connectors.web.history import ConnectorStore
from connectors.web.server import PATH_CODES, HttpSettings, make_app
from runtime.telemetry.logs import EventLog

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from starlette.routing import BaseRoute
    from starlette.types import ASGIApp, Receive, Scope, Send

    from actors.messages.inbound import Attachment
    from actors.transport import Earlier, RefusedAttempt
    from connectors.chat.platforms import TransportParts
    from connectors.web.eliza.platform import WebConfig


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
    return HttpSettings(
        name=name,
        host=config.host,
        port=config.port,
        api_key=first,
        max_body_bytes=config.max_body_bytes,
        body_timeout=config.body_timeout,
        max_connections=config.max_connections,
        trusted_proxies=config.trusted_proxies,
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
        services: what the requests are about.
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
        app: answers the other requests.
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
