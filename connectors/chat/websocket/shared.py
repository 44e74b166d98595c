"""What all visits of one connector share: metrics, settings, and caches."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from actors.transport import Ingress
    from connectors.chat.outbox import ClientOutbox
    from connectors.chat.server_transport import AwaitedMessages
    from connectors.chat.websocket.platform import WebSocketConfig
    from runtime.clock import Clock
    from runtime.ids import IdSource
    from runtime.telemetry.metrics import Metrics


class SocketCounters:
    """The metrics that all WebSocket connectors share."""

    def __init__(self, metrics: Metrics) -> None:
        name = ("connector",)
        self.connected = metrics.gauge(
            "callboard_websocket_connected", "Clients that are connected now.", name
        )
        self.ended = metrics.counter(
            "callboard_websocket_ended",
            "Connections that ended, by why: closed, broken, slow, silent, idle, …",
            (*name, "why"),
        )
        self.frames = metrics.counter(
            "callboard_websocket_frames",
            "Frames of clients, by what became of them: a type, or an error's code.",
            (*name, "outcome"),
        )
        self.told = metrics.counter(
            "callboard_websocket_told",
            "Frames that clients were told: message, draft, lost, …",
            (*name, "type"),
        )
        self.bytes = metrics.counter(
            "callboard_websocket_bytes",
            "Bytes of connections that have ended, by direction: in, out.",
            (*name, "direction"),
        )


class SocketMetrics:
    """The metrics of one connector."""

    def __init__(self, counters: SocketCounters, connector: str) -> None:
        self._counters = counters
        self._connector = connector

    def show(self, connected: int) -> None:
        """Show how many clients are connected."""
        self._counters.connected.set(connected, self._connector)

    def end(self, why: str, bytes_in: int, bytes_out: int) -> None:
        """Count a connection that ended."""
        self._counters.ended.add(1, self._connector, why)
        self._counters.bytes.add(bytes_in, self._connector, "in")
        self._counters.bytes.add(bytes_out, self._connector, "out")

    def frame(self, outcome: str) -> None:
        """Count a frame of a client."""
        self._counters.frames.add(1, self._connector, outcome)

    def told(self, kind: str) -> None:
        """Count a frame that a client was told."""
        self._counters.told.add(1, self._connector, kind)


@dataclass(frozen=True)
class SocketShared:
    """What all visits of one connector share: metrics, settings, and caches."""

    connector: str
    config: WebSocketConfig
    clock: Clock
    ids: IdSource
    kept: ClientOutbox
    metrics: SocketMetrics
    agents: Callable[[], tuple[str, ...]]
    """Names those that people can speak to now."""

    make_client: Callable[[], str]
    """Makes an id for a client that brings none; nobody can guess it."""

    ingress: Ingress
    awaited: AwaitedMessages
