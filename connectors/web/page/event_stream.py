"""Server-sent events to open tabs; on the edge's loop.

Bounded: of too many streams of one browser the oldest is closed, and reopened when its
tab is looked at. A stream ends with its session, with the server, or when its tab does
not read.

Source: HTML Living Standard, 9.2 "Server-sent events".
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable, Callable

import msgspec
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from connectors.web.page.request import PageContext, PageVisit, refusal
from connectors.web.server import ApiError, log_refusal
from runtime.telemetry.metrics import Metrics

LINE_END = re.compile(r"\r\n|\n|\r")
"""Line ends of the format; other line separators of Unicode are none."""

RETRY = 2_000
"""Milliseconds until a browser reopens a broken stream."""

MOST_STREAMS = 200
"""Most streams of all browsers together."""


class EventStream:
    """One open stream."""

    def __init__(self, send: Send) -> None:
        self._send = send
        self._writing = asyncio.Lock()
        self.cut = asyncio.Event()
        """Set to close it."""

    async def tell(self, event: str, data: str, number: int = 0) -> None:
        """Send an event; waits while the browser does not read.

        Args:
            number: the event's id, at which a reopened stream goes on; 0: none.
        """
        lines = [f"event: {event}"]
        lines += [f"data: {line}" for line in LINE_END.split(data)]
        if number:
            lines.append(f"id: {number}")
        await self._write("\n".join(lines) + "\n\n")

    async def comment(self) -> None:
        """Send a comment, which browsers skip."""
        await self._write(":\n\n")

    async def begin(self) -> None:
        """Send the delay for reopening."""
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


EventSource = Callable[[EventStream], Awaitable[None]]
"""Sends events to a stream, until cancelled."""


class EventStreams:
    """All open streams."""

    def __init__(self, most: int, metrics: PageMetrics) -> None:
        self._most = most
        self._metrics = metrics
        self._open: dict[str, list[EventStream]] = {}

    def __len__(self) -> int:
        """Count the open streams."""
        return sum(map(len, self._open.values()))

    def open(self, browser: str, stream: EventStream) -> None:
        """Add a stream; of too many of its browser, close the oldest.

        Raises:
            ApiError: 503: too many streams of all browsers.
        """
        if len(self) >= MOST_STREAMS:
            text = f"{MOST_STREAMS} tabs are open; close some"
            raise ApiError(503, text, code="overloaded", retry_after=5.0)
        own = self._open.setdefault(browser, [])
        own.append(stream)
        self._metrics.stream(1)
        # All that are too many: a closed stream stays listed for a moment.
        for each in own[: -self._most]:
            if not each.cut.is_set():
                each.cut.set()
                self._metrics.cut("too_many")

    def close(self, browser: str, stream: EventStream) -> None:
        """Remove a stream that has ended."""
        own = self._open[browser]
        own.remove(stream)
        self._metrics.stream(-1)
        if not own:
            del self._open[browser]


class EventResponse(Response):
    """A response that goes on as long as its tab is open."""

    def __init__(
        self, visit: PageVisit, streams: EventStreams, source: EventSource
    ) -> None:
        super().__init__(media_type="text/event-stream")
        self._visit = visit
        self._streams = streams
        self._source = source
        self.headers["x-accel-buffering"] = "no"  # proxies must not buffer it
        del self.headers["content-length"]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Stream until the tab, the session or the server ends."""
        front, stream = self._visit.front, EventStream(send)
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
                log_refusal(scope, error)  # the tab reopens the stream
            if stream.cut.is_set():
                await stream.tell("replaced", "")
            await send({"type": "http.response.body", "body": b""})
        finally:
            self._streams.close(self._visit.cookie, stream)


async def first_of(*doing: Awaitable[object]) -> None:
    """Wait until the first one ends, and cancel the others.

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
    """Wait until the tab is closed."""
    while (await receive())["type"] != "http.disconnect":
        pass


async def watched(visit: PageVisit, stream: EventStream) -> None:
    """Wait until the session has ended, and send that; meanwhile what waits for people.

    Comments in between keep proxies from closing the stream.
    """
    front: PageContext = visit.front
    told = front.badges()
    while True:
        await asyncio.sleep(front.settings.heartbeat)
        if (badges := front.badges()) != told:
            told = badges
            await stream.tell("badges", msgspec.json.encode(dict(told)).decode())
        if await visit.ask(front.logins.find, visit.cookie) is None:
            await stream.tell("gone", "")
            return
        await stream.comment()


class PageCounters:
    """The metrics that all connectors of this kind share."""

    def __init__(self, metrics: Metrics) -> None:
        self.sessions = metrics.gauge(
            "callboard_page_sessions", "Browsers that are logged in.", ("connector",)
        )
        self.streams = metrics.gauge(
            "callboard_page_streams",
            "Tabs that are kept up to date now.",
            ("connector",),
        )
        self.logins = metrics.counter(
            "callboard_page_logins", "Browsers that were logged in.", ("connector",)
        )
        self.refused = metrics.counter(
            "callboard_page_refused",
            "Requests that were refused, by why: links that do not hold, other hosts,"
            " forms of other pages.",
            ("connector", "reason"),
        )
        self.streams_cut = metrics.counter(
            "callboard_page_streams_cut",
            "Streams that were ended, by why: too slow, or too many of one browser.",
            ("connector", "reason"),
        )


class PageMetrics:
    """The metrics of one connector."""

    def __init__(self, counters: PageCounters, connector: str) -> None:
        self._counters = counters
        self._connector = connector
        self._streams = 0

    def sessions(self, count: int) -> None:
        """Set the number of logged-in browsers."""
        self._counters.sessions.set(float(count), self._connector)

    def logged_in(self) -> None:
        """Count a login."""
        self._counters.logins.add(1, self._connector)

    def refused(self, reason: str) -> None:
        """Count a refused request; reasons are a fixed set of words."""
        self._counters.refused.add(1, self._connector, reason)

    def stream(self, change: int) -> None:
        """Add an opened (1) or ended (-1) stream."""
        self._streams += change
        self._counters.streams.set(float(self._streams), self._connector)

    def cut(self, reason: str) -> None:
        """Count a stream that the server closed."""
        self._counters.streams_cut.add(1, self._connector, reason)
