"""Puts the page's routes together; imported at the first request.

Unknown addresses and bugs get a page, too; all stands behind the `Shield`.
"""

from __future__ import annotations

import asyncio
from http import HTTPStatus
from typing import TYPE_CHECKING, Protocol

from starlette.applications import Starlette
from starlette.exceptions import HTTPException

from actors.ingress import RefusedAttempt
from connectors.web.errors import ApiError
from connectors.web.operations import operation_routes
from connectors.web.page.chat_routes import ChatRoutes
from connectors.web.page.file_routes import FileRoutes
from connectors.web.page.front import Routes, Visit, refusal
from connectors.web.page.login_routes import LoginRoutes
from connectors.web.page.saying import drawn_with
from connectors.web.page.shield import Shield
from connectors.web.page.static_routes import StaticRoutes
from connectors.web.page.streams import Streams
from connectors.web.page.view_routes import ViewRoutes

if TYPE_CHECKING:
    from collections.abc import Callable

    from starlette.requests import Request
    from starlette.responses import Response
    from starlette.routing import BaseRoute
    from starlette.types import ASGIApp

    from connectors.web.operations import Operations
    from connectors.web.page.chat import Chat
    from connectors.web.page.front import Front
    from connectors.web.page.messages import Message
    from connectors.web.page.views import Inside, View


class Given(Protocol):
    """What the company gives."""

    @property
    def operations(self) -> Operations:
        """What `/readyz` shows."""
        ...

    @property
    def inside(self) -> Callable[[], Inside]:
        """What views look at."""
        ...

    @property
    def views(self) -> Callable[[], tuple[View, ...]]:
        """Gives all views."""
        ...


async def make_site(front: Front, chat: Chat, given: Given) -> ASGIApp:
    """Make the application.

    Args:
        front: what every request needs.
        chat: what the chat is made of.
        given: what the company gives.
    """
    routes, inside = Routes(front), given.inside()
    views = await asyncio.to_thread(given.views)  # it imports them
    files = await StaticRoutes.load()
    streams = Streams(front.config.max_streams, front.figures)
    front.pages.give({"views": views, "file": files.address})

    def draw(message: Message, is_writing: bool) -> str:  # noqa: FBT001  as in the hub
        values = drawn_with(message, chat.blobs, is_writing=is_writing)
        return front.pages.draw("message.html", values)

    chat.hub.draw = draw
    found: list[BaseRoute] = [
        *files.routes(routes),
        *LoginRoutes().routes(routes),
        *ChatRoutes(chat, streams).routes(routes),
        *FileRoutes(chat).routes(routes),
    ]
    # For `callboard doctor`, and whoever watches the process; the figures are not.
    found += operation_routes(given.operations, front.bridge, nobody)[:2]
    for view in views:
        found += ViewRoutes(view, inside, streams).routes(routes)

    async def on_http_error(request: Request, error: Exception) -> Response:
        status = error.status_code if isinstance(error, HTTPException) else 500
        text = f"{request.method} {request.url.path}: {HTTPStatus(status).phrase}"
        return refusal(Visit(request, front), ApiError(status, text, code="http_error"))

    async def on_bug(request: Request, _error: Exception) -> Response:
        text = "something is wrong on the server; its log says what"
        return refusal(Visit(request, front), ApiError(500, text, code="internal"))

    app = Starlette(
        routes=found,
        exception_handlers={HTTPException: on_http_error, Exception: on_bug},
    )
    app.router.redirect_slashes = False

    def refused(reason: str) -> None:
        front.figures.refused(reason)
        front.refused(RefusedAttempt(reason))

    return Shield(app, front.config, refused)


def nobody(_request: Request) -> None:
    """Refuse nobody: health and readiness are for whoever asks from this machine."""
