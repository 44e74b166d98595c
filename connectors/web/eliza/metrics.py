"""Metrics of ElizaOS channels; the labels are bounded."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

    from starlette.types import ASGIApp, Message, Receive, Scope, Send

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
    """The metrics of one connector; on the edge's side.

    Args:
        counters: those of all connectors; None counts nothing.
        connector: its name.
    """

    def __init__(self, counters: ElizaCounters | None, connector: str) -> None:
        self._counters = counters
        self._connector = connector

    def show(self, connected: int) -> None:
        """Set the number of connected Socket.IO clients."""
        if self._counters is not None:
            self._counters.connected.set(connected, self._connector)

    def told(self, event: str) -> None:
        """Count an event that was sent."""
        if self._counters is not None:
            self._counters.told.add(1, self._connector, event)

    def refused(self, why: str) -> None:
        """Count a refused client, or an event that was not sent."""
        if self._counters is not None:
            self._counters.refused.add(1, self._connector, why)

    def request(self, route: str, status: int, bytes_in: int, bytes_out: int) -> None:
        """Count a request that ended; 0 is the status of one without an answer."""
        if self._counters is not None:
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
        path: of the request.
        parameters: the parts of the path that vary; None: unknown route.
    """
    if parameters is None:
        return UNKNOWN
    given = {str(each) for each in parameters.values()}
    words = [each for each in path.split("/") if each and each not in given]
    while words and words[0] in PREFIXES:
        words.pop(0)
    return "/".join(words) or "/"
