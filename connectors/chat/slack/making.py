"""Makes the transport of one workspace from settings."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol, cast

from connectors.chat.bookmarks import StoredBookmarks
from connectors.chat.kept import Shelf
from connectors.chat.slack.figures import SlackCounters
from connectors.chat.slack.sdk import SdkWire
from connectors.chat.slack.transport import SlackTransport, Surroundings

if TYPE_CHECKING:
    from connectors.blobs import BlobFolder
    from connectors.bridge import Bridge
    from connectors.gates import Gates
    from connectors.slack_config import SlackConfig
    from runtime.clock import Clock
    from runtime.ids import IdSource
    from runtime.metrics import Metrics
    from runtime.store import Store

KIND = "slack"

MARKS = "slack_mark"
"""The kind of the rows that say up to where all is in."""


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
        """Leads to the loop that slack_sdk lives on."""
        ...

    @property
    def store(self) -> Store:
        """Keeps up to where all is in."""
        ...

    @property
    def metrics(self) -> Metrics:
        """Where figures are registered."""
        ...

    @property
    def gates(self) -> Gates:
        """Where the HTTP server finds who takes Slack's calls."""
        ...

    @property
    def blobs(self) -> BlobFolder | None:
        """Has the bytes of files that agents send."""
        ...

    @property
    def kept(self) -> dict[str, object]:
        """What transports of one kind share, by kind."""
        ...


def make_transport(name: str, config: SlackConfig, given: Given) -> SlackTransport:
    """Make the transport of one connector.

    Args:
        name: of the connector.
        config: its settings.
        given: what transports are made from.
    """
    if KIND not in given.kept:
        given.kept[KIND] = SlackCounters(given.metrics)
    wire = SdkWire(
        given.bridge, config.base_url, config.request_timeout, config.ping_every
    )
    surroundings = Surroundings(
        clock=given.clock,
        ids=given.ids,
        counters=cast("SlackCounters", given.kept[KIND]),
        bookmarks=StoredBookmarks(Shelf(given.store, given.clock, name), MARKS),
        gates=given.gates,
        wire=wire,
        blobs=given.blobs,
    )
    return SlackTransport(name, config, surroundings)
