"""Makes the page of one connector from settings."""

from __future__ import annotations

import secrets
from typing import TYPE_CHECKING, Protocol, cast

from connectors.web.page.figures import PageCounters, PageFigures
from connectors.web.page.logins import Logins
from connectors.web.page.transport import PageTransport, Surroundings
from runtime.errors import MisuseError

if TYPE_CHECKING:
    from collections.abc import Callable

    from connectors.blobs import BlobFolder
    from connectors.bridge import Bridge
    from connectors.page_config import PageConfig
    from connectors.web.operations import Operations
    from connectors.web.page.views import Inside
    from runtime.clock import Clock
    from runtime.metrics import Metrics
    from runtime.store import Store

KIND = "page"


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
        """Keeps what was said, and who is logged in."""
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

    @property
    def blobs(self) -> BlobFolder | None:
        """Has the bytes of files that agents send."""
        ...

    @property
    def operations(self) -> Operations:
        """What `/readyz` shows."""
        ...

    @property
    def inside(self) -> Callable[[], Inside] | None:
        """What views look at, as soon as all of it is there."""
        ...


def make_transport(name: str, config: PageConfig, given: Given) -> PageTransport:
    """Make the transport of one connector.

    Args:
        name: of the connector.
        config: its settings.
        given: what transports are made from.

    Raises:
        MisuseError: nothing is given to look at.
    """
    if given.inside is None:
        raise MisuseError("a page needs something to look at: set Parts.inside")
    counters = given.kept.get(KIND)
    if counters is None:
        counters = given.kept[KIND] = PageCounters(given.metrics)
    surroundings = Surroundings(
        bridge=given.bridge,
        store=given.store,
        clock=given.clock,
        agents=given.agents,
        figures=PageFigures(cast("PageCounters", counters), name),
        logins=Logins(name, config, given.store, given.clock, secrets.token_bytes),
        inside=given.inside,
        operations=given.operations,
        blobs=given.blobs,
    )
    return PageTransport(name, config, surroundings)
