"""The listener: runs a transport's `listen` for one account."""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar

import msgspec

from actors import names
from actors.inbound.connector import ConnectorIngress
from actors.transport import Listening
from runtime.actor.actor import Actor
from runtime.errors import StartError
from runtime.store.port import Store


class Listen(msgspec.Struct, frozen=True):
    """A note to itself: begin."""


class Listener(Actor):
    """Runs a transport's `listen`.

    Takes: nothing. Sends: what people write, through `ConnectorIngress`. Keeps:
    nothing. Fails: when the transport raises; it is started again after a back-off.
    Ends: when the platform has ended for good, as at the end of a terminal's input.
    """

    deadline: ClassVar[float | None] = None
    ends_by_interrupt: ClassVar[bool] = True

    def __init__(
        self,
        connector: str,
        transport: Listening,
        store: Store,
        on_end: Callable[[], object],
    ) -> None:
        super().__init__()
        self._connector = connector
        self._transport = transport
        self._store = store
        self._on_end = on_end

    def on_start(self) -> None:
        """Begin to listen."""
        self.note(Listen())

    async def on_receive(self, message: object) -> None:
        """Listen until the end."""
        if not isinstance(message, Listen):
            super().on_receive(message)
            return
        connector = self.find(names.connector(self._connector))
        if connector is None:
            raise StartError(f"the connector {self._connector} is not running")
        await self._transport.listen(ConnectorIngress(connector, self._store))
        self._on_end()
        self.stop()
