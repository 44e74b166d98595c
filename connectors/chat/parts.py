"""What the app gives every transport factory.

Each chat platform, and each kind of server that people write to, has a module with one
`make_transport(name, config, parts)`; `connectors/chat/platforms.py` finds it.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeVar, cast

from actors.config.presence import PresenceConfig
from connectors.chat.platform_calls import Gates

if TYPE_CHECKING:
    from collections.abc import Callable

    import httpx

    from connectors.asyncio_bridge.bridge import Bridge
    from connectors.files.blobs import BlobFolder
    from connectors.web.context import Backstage
    from connectors.web.operations import Operations
    from connectors.web.page.views.base import ViewSources
    from connectors.web.webhooks import IncomingWebhooks
    from runtime.clock import Clock
    from runtime.ids import IdSource
    from runtime.store.port import Store
    from runtime.telemetry.metrics import Metrics

T = TypeVar("T")


@dataclass(frozen=True)
class TransportParts:
    """Everything that a transport may be made from; each takes what it needs."""

    clock: Clock
    ids: IdSource
    bridge: Bridge
    """Leads to the asyncio loop, where the web server and some SDKs live."""

    operations: Operations
    agents: Callable[[], tuple[str, ...]]
    """Names the agents that people can speak to now; any thread may call it."""

    store: Store
    metrics: Metrics
    backstage: Backstage
    inside: Callable[[], ViewSources]
    """Gives what the operators' views look at, once all of it has been made."""

    blobs: BlobFolder | None = None
    """Has the bytes of files that agents send; None: they send none."""

    doors: IncomingWebhooks | None = None
    """The incoming webhooks; None: there are none."""

    gates: Gates = field(default_factory=Gates)
    """Where the HTTP server finds who takes a platform's calls."""

    owners: tuple[str, ...] = ()
    """Who runs the company, each as `connector/sender id`."""

    presence: Callable[[], PresenceConfig] = PresenceConfig
    """Gives what people are to see while an answer is being made."""

    network: httpx.AsyncBaseTransport | None = None
    """Carries HTTP requests to platforms; None: the network does."""

    _made: dict[object, object] = field(default_factory=dict[object, object])

    def shown(self, agent: str) -> str:
        """Give what people call an agent; any thread may call it."""
        return self.backstage.roster().team.table.shown(agent)

    def once(self, make: Callable[[Metrics], T]) -> T:
        """Make metrics that all connectors of one kind share, at the first call.

        Args:
            make: registers them; later calls with the same one get the same metrics.
        """
        if make not in self._made:
            self._made[make] = make(self.metrics)
        return cast("T", self._made[make])
