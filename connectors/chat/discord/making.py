"""Makes the transport of the bots on Discord from settings."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol, cast

from connectors.chat.discord.bookmarks import StoredBookmarks
from connectors.chat.discord.figures import DiscordCounters
from connectors.chat.discord.transport import DiscordTransport, Surroundings
from connectors.chat.kept import Shelf

if TYPE_CHECKING:
    from connectors.blobs import BlobFolder
    from connectors.bridge import Bridge
    from connectors.discord_config import DiscordConfig
    from runtime.clock import Clock
    from runtime.ids import IdSource
    from runtime.metrics import Metrics
    from runtime.store import Store

KIND = "discord"


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
    def bridge(self) -> Bridge:
        """Leads to the edge, where the bots run."""
        ...

    @property
    def store(self) -> Store:
        """Keeps how far each bot has read."""
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


def make_transport(name: str, config: DiscordConfig, given: Given) -> DiscordTransport:
    """Make the transport of one connector.

    Args:
        name: of the connector.
        config: its settings.
        given: what transports are made from.
    """
    if KIND not in given.kept:
        given.kept[KIND] = DiscordCounters(given.metrics)
    surroundings = Surroundings(
        clock=given.clock,
        ids=given.ids,
        bridge=given.bridge,
        counters=cast("DiscordCounters", given.kept[KIND]),
        bookmarks=StoredBookmarks(Shelf(given.store, given.clock, name)),
        blobs=given.blobs,
    )
    return DiscordTransport(name, config, surroundings)
