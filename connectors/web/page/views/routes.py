"""The routes of views: show, keep up to date, carry out actions; on the edge's loop."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from functools import partial
from typing import TypeVar

import msgspec
import trio
from starlette.responses import RedirectResponse, Response
from starlette.routing import BaseRoute

from connectors.web.page.event_stream import EventResponse, EventStream, EventStreams
from connectors.web.page.request import ActionResult, PageRoutes, PageVisit
from connectors.web.page.views.base import (
    LONGEST,
    Act,
    Refusal,
    View,
    ViewRequest,
    ViewSources,
    ViewValues,
)
from connectors.web.server import ApiError

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
