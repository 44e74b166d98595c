"""Makes the transport of one app's numbers from settings."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol, cast

from connectors.chat.whatsapp.figures import WhatsAppCounters
from connectors.chat.whatsapp.transport import Surroundings, WhatsAppTransport

if TYPE_CHECKING:
    from connectors.blobs import BlobFolder
    from connectors.gates import Gates
    from connectors.whatsapp_config import WhatsAppConfig
    from runtime.clock import Clock
    from runtime.ids import IdSource
    from runtime.metrics import Metrics

KIND = "whatsapp"


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
    def metrics(self) -> Metrics:
        """Where figures are registered."""
        ...

    @property
    def gates(self) -> Gates:
        """Where the HTTP server finds who takes what Meta brings."""
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
    name: str, config: WhatsAppConfig, given: Given
) -> WhatsAppTransport:
    """Make the transport of one connector.

    Args:
        name: of the connector.
        config: its settings.
        given: what transports are made from.
    """
    if KIND not in given.kept:
        given.kept[KIND] = WhatsAppCounters(given.metrics)
    surroundings = Surroundings(
        clock=given.clock,
        ids=given.ids,
        counters=cast("WhatsAppCounters", given.kept[KIND]),
        gates=given.gates,
        blobs=given.blobs,
    )
    return WhatsAppTransport(name, config, surroundings)
