"""Makes the plain WebSocket of one connector from settings."""

from __future__ import annotations

import secrets
from typing import TYPE_CHECKING, Protocol, cast

from connectors.chat.websocket.figures import SocketCounters
from connectors.chat.websocket.transport import Surroundings, WebSocketTransport

if TYPE_CHECKING:
    from collections.abc import Callable

    from connectors.websocket_config import WebSocketConfig
    from runtime.clock import Clock
    from runtime.ids import IdSource
    from runtime.metrics import Metrics
    from runtime.store import Store

KIND = "websocket"


class Given(Protocol):
    """What every transport is made from, as far as this one needs it."""

    @property
    def clock(self) -> Clock:
        """Gives Unix seconds."""
        ...

    @property
    def ids(self) -> IdSource:
        """Makes the messages' ids."""
        ...

    @property
    def store(self) -> Store:
        """Keeps what was said."""
        ...

    @property
    def agents(self) -> Callable[[], tuple[str, ...]]:
        """Names those that people can speak to now."""
        ...

    @property
    def metrics(self) -> Metrics:
        """Where figures are registered."""
        ...

    @property
    def kept(self) -> dict[str, object]:
        """What transports of one kind share, by kind."""
        ...


def make_transport(
    name: str, config: WebSocketConfig, given: Given
) -> WebSocketTransport:
    """Make the transport of one connector.

    Args:
        name: of the connector.
        config: its settings.
        given: what transports are made from.
    """
    if KIND not in given.kept:
        given.kept[KIND] = SocketCounters(given.metrics)
    surroundings = Surroundings(
        store=given.store,
        clock=given.clock,
        ids=given.ids,
        agents=given.agents,
        counters=cast("SocketCounters", given.kept[KIND]),
        make_client=secrets.token_urlsafe,
    )
    return WebSocketTransport(name, config, surroundings)
