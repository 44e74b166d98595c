"""The routes of the page and its views; imported at the first request.

Errors and unknown paths get a page, too. All routes are behind the `Shield`.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Awaitable, Callable
from functools import partial
from http import HTTPStatus
from pathlib import Path
from typing import TypeVar
from urllib.parse import parse_qsl, urlencode

import msgspec
import trio
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import BaseRoute
from starlette.types import ASGIApp

from actors.transport import RefusedAttempt
from connectors.chat.platforms import TransportParts
from connectors.web.operations import probe_routes
from connectors.web.page.chat.files import FileRoutes
from connectors.web.page.chat.hub import ChatParts
from connectors.web.page.chat.messages import PageMessage, message_values
from connectors.web.page.chat.routes import ChatRoutes
from connectors.web.page.event_stream import EventResponse, EventStream, EventStreams
from connectors.web.page.logins import LoginRoutes, Shield, look_cookie
from connectors.web.page.request import (
    ActionResult,
    PageContext,
    PageRoutes,
    PageVisit,
    refusal,
)
from connectors.web.page.views.base import (
    LONGEST,
    Act,
    Refusal,
    View,
    ViewRequest,
    ViewSources,
    ViewValues,
)
from connectors.web.page.words import PageLook
from connectors.web.server import ApiError, make_app

T = TypeVar("T")

LIVE = "live"
"""The block of a template that is sent when it changes."""


class ViewRoutes:
    """The routes of one view."""

    def __init__(
        self, view: View, inside: ViewSources, streams: EventStreams, connector: str
    ) -> None:
        self._connector = connector
        self._view = view
        self._inside = inside
        self._streams = streams

    def routes(self, routes: PageRoutes) -> list[BaseRoute]:
        """Give them."""
        place = f"/{self._view.name}"
        found: list[BaseRoute] = [routes.closed("GET", place, self._show)]
        if self._view.every:
            found.append(routes.closed("GET", f"{place}/events", self._stream))
        found += [
            routes.closed("POST", f"{place}/{name}", partial(self._act, act))
            for name, act in self._view.actions.items()
        ]
        return found

    async def _show(self, visit: PageVisit) -> Response:
        told = visit.front.told.pop(visit.cookie, None)
        values = await self._load(visit)
        return visit.page(self._view.template, {**values, "told": told})

    async def _act(self, act: Act, visit: PageVisit) -> Response:
        try:
            told = ActionResult(await visit.ask(within, act, self._asked(visit)))
        except Refusal as error:
            told = ActionResult(str(error), is_refusal=True)
        said = msgspec.structs.replace(told, text=visit.words.say(told.text))
        visit.front.tell_next(visit.cookie, said)
        query = visit.request.url.query
        back = f"/{self._view.name}" + (f"?{query}" if query else "")
        return RedirectResponse(back, status_code=303)

    async def _stream(self, visit: PageVisit) -> Response:
        return EventResponse(visit, self._streams, partial(self._tell, visit))

    async def _tell(self, visit: PageVisit, stream: EventStream) -> None:
        last = ""
        while True:
            try:
                values = await self._load(visit)
            except ApiError as error:
                await stream.tell("trouble", visit.words.say(error.text))
            else:
                now = visit.block(self._view.template, LIVE, values)
                if now != last:
                    await stream.tell("live", now)
                last = now
            await asyncio.sleep(self._view.every)

    async def _load(self, visit: PageVisit) -> ViewValues:
        """Call the view's function."""
        try:
            values = await visit.ask(within, self._view.load, self._asked(visit))
        except Refusal as error:
            raise ApiError(404, str(error), code="refused") from error
        query = visit.request.url.query
        here = f"/{self._view.name}/events" + (f"?{query}" if query else "")
        return {"view": self._view, "here": here, "told": None, **values}

    def _asked(self, visit: PageVisit) -> ViewRequest:
        query = dict(visit.request.query_params)
        form = visit.form
        return ViewRequest(
            visit.person, self._inside, query, form, self._connector, visit.words
        )


async def within(do: Callable[[ViewRequest], Awaitable[T]], asked: ViewRequest) -> T:
    """Run a view's function on the kernel's side, within `LONGEST` seconds.

    Raises:
        Refusal: by the function, or it takes too long.
    """
    with trio.move_on_after(LONGEST):
        return await do(asked)
    raise Refusal(f"that takes longer than {LONGEST:g} s; try again")


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
