"""Puts the routes together; on the edge's loop.

A client that asks for what is not served is told so in the API's own shape.
"""

from __future__ import annotations

from http import HTTPStatus
from typing import TYPE_CHECKING

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

from connectors.web.eliza.agent_routes import AgentRoutes
from connectors.web.eliza.audio_routes import AudioRoutes
from connectors.web.eliza.channel_routes import ChannelRoutes
from connectors.web.eliza.desk import WINDOW, Desk, Front, cors
from connectors.web.eliza.direct_routes import DirectRoutes
from connectors.web.eliza.errors import refuse
from connectors.web.eliza.figures import Measured
from connectors.web.eliza.job_routes import JobRoutes
from connectors.web.eliza.log_routes import LogRoutes
from connectors.web.eliza.memory_routes import MemoryRoutes
from connectors.web.eliza.message_routes import MessageRoutes
from connectors.web.eliza.program_routes import ProgramRoutes
from connectors.web.eliza.rates import Rate
from connectors.web.eliza.room_routes import RoomRoutes
from connectors.web.eliza.run_routes import RunRoutes
from connectors.web.eliza.saying_routes import SayingRoutes
from connectors.web.eliza.server_routes import ServerRoutes
from connectors.web.eliza.session_routes import SessionRoutes
from connectors.web.eliza.upload_routes import UploadRoutes
from connectors.web.errors import ApiError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from starlette.routing import BaseRoute
    from starlette.types import ASGIApp, Receive, Scope, Send

    from connectors.web.eliza.parts import Parts


def make_api(parts: Parts, further: Sequence[BaseRoute]) -> ASGIApp:
    """Make the application.

    Args:
        parts: what the routes need.
        further: other routes, asked after those of the API.
    """
    front = Front(
        settings=parts.settings,
        keys=parts.keys,
        rate=Rate(parts.config.rate_limit, WINDOW),
        uploads=Rate(parts.config.upload_limit, WINDOW),
        clock=parts.clock,
        bridge=parts.bridge,
        refused=parts.refused,
        origins=parts.config.origins,
    )
    app = Starlette(
        routes=[*routes_of(parts, Desk(front)), *further],
        exception_handlers={HTTPException: on_http_error, Exception: on_bug},
    )
    # Why: a redirect would make clients repeat a POST with its whole body.
    app.router.redirect_slashes = False
    return Measured(Preflight(app, parts.config.origins), parts.figures)


def routes_of(parts: Parts, desk: Desk) -> list[BaseRoute]:
    """Give all routes of the API, in the order in which they are asked."""
    started = int(parts.clock.wall() * 1000)
    limit = parts.config.max_upload_bytes
    files = UploadRoutes(parts.uploads, parts.channels, limit)
    saying = SayingRoutes(parts, files)
    history = parts.speech.history
    sessions = SessionRoutes(parts.sessions, parts.channels, history, saying, started)
    return [
        *ServerRoutes(parts.channels).routes(desk),
        *ChannelRoutes(parts.channels, history, parts.forgetting).routes(desk),
        *MessageRoutes(parts.channels, parts.speech, parts.forgetting).routes(desk),
        *files.routes(desk),
        *saying.routes(desk),
        *sessions.routes(desk),
        *JobRoutes(parts.jobs, parts.awaiting).routes(desk),
        *DirectRoutes(parts).routes(desk),
        *RoomRoutes(parts).routes(desk),
        *MemoryRoutes(parts).routes(desk),
        *AudioRoutes(parts).routes(desk),
        *LogRoutes(parts.logs, parts.channels).routes(desk),
        *RunRoutes(parts).routes(desk),
        *AgentRoutes(parts.employing).routes(desk),
        *ProgramRoutes(parts.channels, parts.backstage, started).routes(desk),
    ]


class Preflight:
    """Tells browsers which pages may ask; all else is the application's.

    Args:
        app: what is asked then.
        origins: of the pages that may.
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


async def on_http_error(request: Request, error: Exception) -> Response:
    """Answer an unknown path or method."""
    status = error.status_code if isinstance(error, HTTPException) else 500
    headers = dict((error.headers or {}) if isinstance(error, HTTPException) else {})
    code = {404: "not_found", 405: "method_not_allowed"}.get(status, "http_error")
    text = "API endpoint not found" if status == 404 else HTTPStatus(status).phrase
    told = f"{text}: {request.method} {request.url.path}"
    return refuse(request.scope, ApiError(status, told, code=code), headers)


async def on_bug(request: Request, _error: Exception) -> Response:
    """Answer a request that met a bug; Starlette and uvicorn log the traceback."""
    text = "something is wrong on the server; its log says what"
    return refuse(request.scope, ApiError(500, text, code="internal_error"))
