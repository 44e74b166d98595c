"""Makes the web channel of one connector from settings."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol, cast

from connectors.web.eliza.figures import WebCounters
from connectors.web.eliza.transport import Surroundings, WebTransport

if TYPE_CHECKING:
    from collections.abc import Callable

    from connectors.blobs import BlobFolder
    from connectors.bridge import Bridge
    from connectors.web.backstage import Backstage
    from connectors.web_config import WebConfig
    from runtime.clock import Clock
    from runtime.metrics import Metrics
    from runtime.store import Store

KIND = "web"


class Given(Protocol):
    """What every transport is made from, as far as this one needs it."""

    @property
    def clock(self) -> Clock:
        """Gives Unix seconds."""
        ...

    @property
    def bridge(self) -> Bridge:
        """Its loop runs the server."""
        ...

    @property
    def store(self) -> Store:
        """Keeps what there is."""
        ...

    @property
    def backstage(self) -> Backstage:
        """The company itself."""
        ...

    @property
    def blobs(self) -> BlobFolder | None:
        """Has the bytes of files that agents send."""
        ...

    @property
    def metrics(self) -> Metrics:
        """Where figures are registered."""
        ...

    @property
    def kept(self) -> dict[str, object]:
        """What transports of one kind share, by kind."""
        ...

    @property
    def agents(self) -> Callable[[], tuple[str, ...]]:
        """Names those that people can speak to now."""
        ...


def make_transport(name: str, config: WebConfig, given: Given) -> WebTransport:
    """Make the transport of one connector.

    Args:
        name: of the connector.
        config: its settings.
        given: what transports are made from.
    """
    if KIND not in given.kept:
        given.kept[KIND] = WebCounters(given.metrics)
    surroundings = Surroundings(
        bridge=given.bridge,
        store=given.store,
        clock=given.clock,
        agents=given.agents,
        backstage=given.backstage,
        blobs=given.blobs,
        counters=cast("WebCounters", given.kept[KIND]),
    )
    return WebTransport(name, config, surroundings)
