"""A courier between a connector and a platform that are fakes."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import replace

import trio
import trio.testing

from actors import names
from actors.config.presence import PresenceConfig
from actors.inbound.connector import read_deliver
from actors.journal.commits import as_enqueue
from actors.messages.deliveries import Abilities
from actors.outbound.courier import Courier
from actors.outbound.retry import OnUnknown
from actors.protocol import Deliver, Delivered, Undelivered
from actors.services import Duties
from actors.transport import Account
from runtime.actor.messages import Keyed
from runtime.actor.ref import ActorRef
from runtime.store.rows import Commit
from runtime.supervision.keyed import KeyedConfig, KeyedSupervisor
from runtime.testing import Probe
from tests.fakes.actors.neighbours import make_services, of_kind, probe, saying
from tests.fakes.company.company import AT_ONCE, Platform
from tests.fakes.company.furnished import changed
from tests.fakes.store.in_memory import MemoryStore
from tests.support.puppet import virtual

Clock = trio.testing.MockClock


class Road:
    """A courier that sleeps when idle, a platform that listens, a connector."""

    def __init__(
        self, store: MemoryStore, platform: Platform, connector: Probe, way: ActorRef
    ) -> None:
        self.store = store
        self.platform = platform
        self.connector = connector
        self._way = way

    def tell(self, message: object) -> None:
        self._way.tell(Keyed("room/", message))

    async def deliver(self, *numbers: int) -> None:
        rows = tuple(as_enqueue(saying(number), 0) for number in numbers)
        await self.store.commit(Commit(at=1.0, deliveries=rows))
        for number in numbers:
            self.tell(Deliver(saying(number)))

    async def row(self, number: int = 1) -> tuple[str, int]:
        """Give how a delivery stands, and how often it was asked for."""
        await trio.lowlevel.checkpoint()
        row = self.store._rows.outbox[f"m{number}:0"]
        return row.state, row.attempts

    async def outbox(self) -> dict[str, int]:
        counts = await self.store.counts()
        return {str(state): rows for state, rows in counts.outbox.items()}

    async def hand_over_again(self, *numbers: int) -> None:
        """Hand over what is in the outbox, as the connector does."""
        for number in numbers:
            await trio.lowlevel.checkpoint()
            row = self.store._rows.outbox[f"m{number}:0"]
            if row.state in {"pending", "sending"}:
                self.tell(read_deliver(saying(number), row))

    def handed_back(self) -> list[str]:
        return [each.delivery_id for each in of_kind(self.connector, Undelivered)]

    def done(self) -> list[str]:
        return [each.delivery_id for each in of_kind(self.connector, Delivered)]


@asynccontextmanager
async def open_road(  # noqa: PLR0913  what a courier is given
    clock: Clock,
    store: MemoryStore | None = None,
    abilities: Abilities | None = None,
    on_unknown: OnUnknown = "resend",
    platform: Platform | None = None,
    presence: PresenceConfig = AT_ONCE,
    *,
    duties: Duties | None = None,
) -> AsyncGenerator[Road]:
    store = store or MemoryStore()
    platform = platform or Platform()
    platform._is_listening = True
    platform.can = abilities or platform.can
    account = Account(platform.can, on_unknown=on_unknown)
    services = changed(
        make_services(store), accounts={"fake": account}, presence=presence
    )
    services = replace(services, duties=duties or services.duties)
    async with virtual(clock) as system:
        connector = probe(system, names.connector("fake"))
        config = KeyedConfig(idle_after=60)
        way = system.spawn(
            KeyedSupervisor(lambda _key: Courier("fake", platform, services), config)
        )
        yield Road(store, platform, connector, way)
