"""Makes the transport of some bots from settings."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Protocol, cast

from connectors.chat.kept import Shelf
from connectors.chat.telegram.bookmarks import StoredBookmarks
from connectors.chat.telegram.figures import TelegramCounters
from connectors.chat.telegram.transport import Surroundings, TelegramTransport

if TYPE_CHECKING:
    from connectors.blobs import BlobFolder
    from connectors.gates import Gates
    from connectors.telegram_config import TelegramConfig
    from runtime.clock import Clock
    from runtime.ids import IdSource
    from runtime.metrics import Metrics
    from runtime.store import Store

KIND = "telegram"


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
        """Keeps how far each bot was heard."""
        ...

    @property
    def metrics(self) -> Metrics:
        """Where figures are registered."""
        ...

    @property
    def gates(self) -> Gates:
        """Where the HTTP server finds who takes webhooks."""
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
    name: str, config: TelegramConfig, given: Given
) -> TelegramTransport:
    """Make the transport of one connector.

    Args:
        name: of the connector.
        config: its settings.
        given: what transports are made from.
    """
    if KIND not in given.kept:
        given.kept[KIND] = TelegramCounters(given.metrics)
    surroundings = Surroundings(
        clock=given.clock,
        ids=given.ids,
        counters=cast("TelegramCounters", given.kept[KIND]),
        bookmarks=StoredBookmarks(Shelf(given.store, given.clock, name)),
        gates=given.gates,
        leases=Path(tempfile.gettempdir()),
        blobs=given.blobs,
    )
    return TelegramTransport(name, config, surroundings)
