"""Makes the transport of one homeserver from settings."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol, cast

from connectors.chat.bookmarks import StoredBookmarks
from connectors.chat.kept import Shelf
from connectors.chat.matrix.figures import MatrixCounters
from connectors.chat.matrix.transport import MatrixTransport, Surroundings

if TYPE_CHECKING:
    from connectors.blobs import BlobFolder
    from connectors.matrix_config import MatrixConfig
    from runtime.clock import Clock
    from runtime.ids import IdSource
    from runtime.metrics import Metrics
    from runtime.store import Store

KIND = "matrix"
SYNCS = "matrix_sync"
"""How far each account has read, in the database."""


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
        """Keeps how far each account has read."""
        ...

    @property
    def metrics(self) -> Metrics:
        """Where figures are registered."""
        ...

    @property
    def blobs(self) -> BlobFolder | None:
        """Has the bytes of files that agents send."""
        ...

    @property
    def kept(self) -> dict[str, object]:
        """What transports of one kind share, by kind."""
        ...


def make_transport(
    name: str, config: MatrixConfig, owners: tuple[str, ...], given: Given
) -> MatrixTransport:
    """Make the transport of one connector.

    Args:
        name: of the connector.
        config: its settings.
        owners: who runs the company, each as `connector/sender id`.
        given: what transports are made from.
    """
    if KIND not in given.kept:
        given.kept[KIND] = MatrixCounters(given.metrics)
    surroundings = Surroundings(
        clock=given.clock,
        ids=given.ids,
        counters=cast("MatrixCounters", given.kept[KIND]),
        bookmarks=StoredBookmarks(Shelf(given.store, given.clock, name), SYNCS),
        owners=owners,
        blobs=given.blobs,
    )
    return MatrixTransport(name, config, surroundings)
