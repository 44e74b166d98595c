"""The views: drawn, kept up to date, and acted upon; on the edge's loop."""

from __future__ import annotations

import asyncio
from functools import partial
from typing import TYPE_CHECKING, TypeVar

import trio
from starlette.responses import RedirectResponse

from connectors.web.errors import ApiError
from connectors.web.page.front import Told
from connectors.web.page.streams import EventResponse
from connectors.web.page.views import LONGEST, Asked, Refusal

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from starlette.responses import Response
    from starlette.routing import BaseRoute

    from connectors.web.page.front import Routes, Visit
    from connectors.web.page.streams import Stream, Streams
    from connectors.web.page.views import Act, Inside, Shown, View

T = TypeVar("T")

LIVE = "live"
"""The block of a template that is sent when it changes."""


class ViewRoutes:
    """The routes of one view.

    Args:
        view: which.
        inside: what it looks at.
        streams: the tabs that are open.
    """

    def __init__(self, view: View, inside: Inside, streams: Streams) -> None:
        self._view = view
        self._inside = inside
        self._streams = streams

    def routes(self, routes: Routes) -> list[BaseRoute]:
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

    async def _show(self, visit: Visit) -> Response:
        told = visit.front.told.pop(visit.cookie, None)
        values = await self._load(visit)
        return visit.page(self._view.template, {**values, "told": told})

    async def _act(self, act: Act, visit: Visit) -> Response:
        try:
            told = Told(await visit.ask(within, act, self._asked(visit)))
        except Refusal as error:
            told = Told(str(error), is_refusal=True)
        visit.front.tell_next(visit.cookie, told)
        query = visit.request.url.query
        back = f"/{self._view.name}" + (f"?{query}" if query else "")
        return RedirectResponse(back, status_code=303)

    async def _stream(self, visit: Visit) -> Response:
        return EventResponse(visit, self._streams, partial(self._tell, visit))

    async def _tell(self, visit: Visit, stream: Stream) -> None:
        last = ""
        while True:
            try:
                values = await self._load(visit)
            except ApiError as error:
                await stream.tell("trouble", error.text)
            else:
                now = visit.block(self._view.template, LIVE, values)
                if now != last:
                    await stream.tell("live", now)
                last = now
            await asyncio.sleep(self._view.every)

    async def _load(self, visit: Visit) -> Shown:
        """Ask the view.

        Raises:
            ApiError: it cannot say.
        """
        try:
            values = await visit.ask(within, self._view.load, self._asked(visit))
        except Refusal as error:
            raise ApiError(404, str(error), code="refused") from error
        query = visit.request.url.query
        here = f"/{self._view.name}/events" + (f"?{query}" if query else "")
        return {"view": self._view, "here": here, "told": None, **values}

    def _asked(self, visit: Visit) -> Asked:
        query = dict(visit.request.query_params)
        return Asked(visit.person, self._inside, query, visit.form)


async def within(do: Callable[[Asked], Awaitable[T]], asked: Asked) -> T:
    """Run a view's function in the kernel, in time.

    Raises:
        Refusal: as it says, or it takes too long.
    """
    with trio.move_on_after(LONGEST):
        return await do(asked)
    raise Refusal(f"that takes longer than {LONGEST:g} s; try again")
