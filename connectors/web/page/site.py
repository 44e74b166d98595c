"""Puts the routes of the page together; imported at the first request.

Errors and unknown paths get a page, too. All routes are behind the `Shield`.
"""

from __future__ import annotations

import asyncio
import hashlib
from http import HTTPStatus
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import parse_qsl, urlencode

from starlette.responses import RedirectResponse, Response

from actors.transport import RefusedAttempt
from connectors.web.operations import probe_routes
from connectors.web.page.chat.files import FileRoutes
from connectors.web.page.chat.messages import PageMessage, message_values
from connectors.web.page.chat.routes import ChatRoutes
from connectors.web.page.event_stream import EventStreams
from connectors.web.page.logins import LoginRoutes, Shield, look_cookie
from connectors.web.page.request import PageContext, PageRoutes, PageVisit, refusal
from connectors.web.page.views.routes import ViewRoutes
from connectors.web.page.words import PageLook
from connectors.web.server import ApiError, make_app

if TYPE_CHECKING:
    from collections.abc import Callable

    from starlette.requests import Request
    from starlette.routing import BaseRoute
    from starlette.types import ASGIApp

    from connectors.chat.platforms import TransportParts
    from connectors.web.page.chat.hub import ChatParts
    from connectors.web.page.views.base import View


async def make_site(
    front: PageContext,
    chat: ChatParts,
    parts: TransportParts,
    all_views: Callable[[], tuple[View, ...]],
) -> ASGIApp:
    """Make the application."""
    routes, inside = PageRoutes(front), parts.inside()
    views = await asyncio.to_thread(all_views)  # this imports them
    files = await StaticRoutes.load()
    await asyncio.to_thread(lambda: front.pages.words)  # this reads the catalogues
    streams = EventStreams(front.config.max_streams, front.metrics)
    front.pages.give({"views": views, "file": files.address, "shown": parts.shown})

    def draw(message: PageMessage, is_writing: bool, language: str) -> str:  # noqa: FBT001  as in the hub
        values = message_values(message, chat, is_writing=is_writing)
        return front.pages.draw("message.html", values, language)

    chat.hub.draw = draw
    found: list[BaseRoute] = [
        *files.routes(routes),
        *LoginRoutes().routes(routes),
        routes.closed("POST", "/look", choose_look),
        *ChatRoutes(chat, streams).routes(routes),
        *FileRoutes(chat).routes(routes),
    ]
    # Health and readiness only, for `callboard doctor` and monitors; no metrics.
    found += probe_routes(parts.operations, front.bridge)
    for view in views:
        found += ViewRoutes(view, inside, streams, chat.talk.name).routes(routes)

    def answer(request: Request, error: ApiError, _headers: dict[str, str]) -> Response:
        return refusal(PageVisit(request, front), error)

    def unknown(request: Request, status: int) -> ApiError:
        text = f"{request.method} {request.url.path}: {HTTPStatus(status).phrase}"
        return ApiError(status, text, code="http_error")

    app = make_app(found, answer, unknown, bug_code="internal")

    def refused(reason: str) -> None:
        front.metrics.refused(reason)
        front.record_attempt(RefusedAttempt(reason))

    return Shield(app, front.config, refused)


async def choose_look(visit: PageVisit) -> Response:
    """Keep what a browser wants the page to look like, and go back to where it was."""
    form = visit.form
    chosen = (form.get(each, "") for each in ("theme", "language", "zone"))
    look = PageLook.read(".".join(chosen))
    back = in_zone(form.get("back", "/"), look.zone)
    is_here = back.startswith("/") and not back.startswith(("//", "/\\"))
    response = RedirectResponse(back if is_here else "/", status_code=303)
    response.headers["set-cookie"] = look_cookie(visit.front.config, look.text)
    return response


def in_zone(address: str, zone: str) -> str:
    """Have an address say in which time zone it is read, unless it is the device's."""
    path, _, query = address.partition("?")
    pairs = parse_qsl(query, keep_blank_values=True)
    kept = [(name, value) for name, value in pairs if name != "zone"]
    if zone != "here":
        kept.append(("zone", zone))
    return f"{path}?{urlencode(kept)}" if kept else path


STATIC_FOLDER = Path(__file__).parent / "static"

TYPES = {
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
}

FOR_EVER = "public, max-age=31536000, immutable"
"""For static files: their paths contain their hash, so a new version has a new path."""


class StaticRoutes:
    """The static files of the page, all in memory: they are few, and small."""

    def __init__(self) -> None:
        self._files = {
            each.name: (each.read_bytes(), TYPES[each.suffix])
            for each in STATIC_FOLDER.iterdir()
            if each.suffix in TYPES
        }
        self._prints = {
            name: hashlib.sha256(content).hexdigest()[:12]
            for name, (content, _) in self._files.items()
        }

    @classmethod
    async def load(cls) -> StaticRoutes:
        """Read all files, in a thread."""
        return await asyncio.to_thread(cls)

    def address(self, name: str) -> str:
        """Give the path of a file; templates call it as `file(name)`.

        Raises:
            KeyError: there is no such file.
        """
        return f"/static/{self._prints[name]}/{name}"

    def routes(self, routes: PageRoutes) -> list[BaseRoute]:
        """Give the route."""
        return [routes.open("GET", "/static/{print}/{name}", self._give)]

    async def _give(self, visit: PageVisit) -> Response:
        name = str(visit.request.path_params["name"])
        found = self._files.get(name)
        if found is None or self._prints[name] != visit.request.path_params["print"]:
            raise ApiError(404, f"there is no file {name!r}", code="not_found")
        content, media_type = found
        headers = {"cache-control": FOR_EVER}
        return Response(content, headers=headers, media_type=media_type)
