"""Server-sent events to tabs that are open; on the edge's loop.

Bounded: so many of one browser (the oldest makes room, and comes back when it is looked
at), each ended with its session, with the server, or when its tab does not read.

Source: HTML Living Standard, 9.2 "Server-sent events".
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING

from starlette.responses import Response

from connectors.web.errors import ApiError, log_refusal
from connectors.web.page.front import refusal

if TYPE_CHECKING:
    from starlette.types import Receive, Scope, Send

    from connectors.web.page.figures import PageFigures
    from connectors.web.page.front import Front, Visit

LINE_END = re.compile(r"\r\n|\n|\r")
"""What ends a line of a stream; other signs that look like it do not."""

RETRY = 2_000
"""Milliseconds after which a browser comes back whose stream broke."""

MOST_STREAMS = 200
"""Streams of all browsers together."""


class Stream:
    """One stream, while it is open.

    Args:
        send: to the browser.
    """

    def __init__(self, send: Send) -> None:
        self._send = send
        self._writing = asyncio.Lock()
        self.cut = asyncio.Event()
        """Set to end it."""

    async def tell(self, event: str, data: str, number: int = 0) -> None:
        """Send an event; waits while the browser does not read.

        Args:
            event: its name.
            data: any text.
            number: by which the stream is taken up again; 0: it has none.
        """
        lines = [f"event: {event}"]
        lines += [f"data: {line}" for line in LINE_END.split(data)]
        if number:
            lines.append(f"id: {number}")
        await self._write("\n".join(lines) + "\n\n")

    async def comment(self) -> None:
        """Send what nobody sees."""
        await self._write(":\n\n")

    async def begin(self) -> None:
        """Say how soon to come back."""
        await self._write(f"retry: {RETRY}\n\n")

    async def _write(self, text: str) -> None:
        async with self._writing:
            await self._send(
                {
                    "type": "http.response.body",
                    "body": text.encode("utf-8", "replace"),
                    "more_body": True,
                }
            )


Source = Callable[[Stream], Awaitable[None]]
"""Tells what there is to tell, until cancelled."""


class Streams:
    """All that are open.

    Args:
        most: of one browser.
        figures: where they are counted.
    """

    def __init__(self, most: int, figures: PageFigures) -> None:
        self._most = most
        self._figures = figures
        self._open: dict[str, list[Stream]] = {}

    def __len__(self) -> int:
        """Count them."""
        return sum(map(len, self._open.values()))

    def open(self, browser: str, stream: Stream) -> None:
        """Add one; the oldest of its browser makes room.

        Raises:
            ApiError: 503: too many of all browsers.
        """
        if len(self) >= MOST_STREAMS:
            text = f"{MOST_STREAMS} tabs are open; close some"
            raise ApiError(503, text, code="overloaded", retry_after=5.0)
        own = self._open.setdefault(browser, [])
        own.append(stream)
        self._figures.stream(1)
        # All that are too many: one that is cut takes a moment to go.
        for each in own[: -self._most]:
            if not each.cut.is_set():
                each.cut.set()
                self._figures.cut("too_many")

    def close(self, browser: str, stream: Stream) -> None:
        """Take one away."""
        own = self._open[browser]
        own.remove(stream)
        self._figures.stream(-1)
        if not own:
            del self._open[browser]


class EventResponse(Response):
    """An answer that goes on for as long as its tab is open.

    Args:
        visit: whose it is.
        streams: all that are open.
        source: what it tells.
    """

    def __init__(self, visit: Visit, streams: Streams, source: Source) -> None:
        super().__init__(media_type="text/event-stream")
        self._visit = visit
        self._streams = streams
        self._source = source
        self.headers["x-accel-buffering"] = "no"  # a proxy is not to hold it back
        del self.headers["content-length"]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Stream until the tab, the session or the server ends."""
        front, stream = self._visit.front, Stream(send)
        try:
            self._streams.open(self._visit.cookie, stream)
        except ApiError as error:
            log_refusal(scope, error)
            await refusal(self._visit, error)(scope, receive, send)
            return
        try:
            start = {"type": "http.response.start", "status": 200}
            await send({**start, "headers": self.raw_headers})
            await stream.begin()
            try:
                await first_of(
                    self._source(stream),
                    gone(receive),
                    watched(self._visit, stream),
                    stream.cut.wait(),
                    front.stopping.wait(),
                )
            except ApiError as error:
                log_refusal(scope, error)  # the tab comes back, and goes on
            if stream.cut.is_set():
                await stream.tell("replaced", "")
            await send({"type": "http.response.body", "body": b""})
        finally:
            self._streams.close(self._visit.cookie, stream)


async def first_of(*doing: Awaitable[object]) -> None:
    """Wait for the first that ends, and end the others.

    Raises:
        BaseException: what that one raised.
    """
    tasks = [asyncio.ensure_future(each) for each in doing]
    try:
        done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
    for task in done:
        task.result()


async def gone(receive: Receive) -> None:
    """Wait until the tab has gone."""
    while (await receive())["type"] != "http.disconnect":
        pass


async def watched(visit: Visit, stream: Stream) -> None:
    """Wait until the session does not hold any more; tell that.

    The comments between show whatever lies on the way that the stream is alive.
    """
    front: Front = visit.front
    while True:
        await asyncio.sleep(front.settings.heartbeat)
        if await visit.ask(front.logins.find, visit.cookie) is None:
            await stream.tell("gone", "")
            return
        await stream.comment()
