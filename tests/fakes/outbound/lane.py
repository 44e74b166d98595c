"""The way out to one chat, and somebody who changes the outbox by hand beside it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

import trio
import trio.testing
from msgspec import structs

from actors import names
from actors.inbound.connector import Connector
from actors.journal.commits import as_enqueue
from actors.messages.deliveries import Abilities, Delivery
from actors.outbound.courier import Courier
from actors.outbound.retry import OnUnknown
from actors.protocol import Deliver, DrainOutbox
from actors.transport import Account
from runtime.actor.messages import Keyed
from runtime.actor.ref import ActorRef
from runtime.store.database import DROPPED
from runtime.store.rows import BY_HAND, Commit, StoredDelivery
from runtime.supervision.keyed import KeyedConfig, KeyedSupervisor
from tests.fakes.actors.neighbours import make_services, saying
from tests.fakes.company.company import AT_ONCE, Platform
from tests.fakes.company.furnished import changed
from tests.fakes.store.in_memory import MemoryStore
from tests.support.puppet import virtual

# Chosen: longer than any test: a courier that sleeps forgets what it has said.
AWAKE = 1e6


class NotingPlatform(Platform):
    """Notes when it showed what."""

    def __init__(self, log: defaultdict[str, list[tuple[str, float]]]) -> None:
        super().__init__()
        self._log = log
        self._is_listening = True

    async def deliver(self, delivery: Delivery) -> str:
        receipt = await super().deliver(delivery)
        self._log[delivery.id].append(("shown", trio.current_time()))
        return receipt


class Lane:
    """A connector, a courier, a platform; `drop` and `retry` as the operator's."""

    def __init__(self, store: MemoryStore) -> None:
        self.store = store
        self.log: defaultdict[str, list[tuple[str, float]]] = defaultdict(list)
        """By delivery: when it was shown, dropped or retried."""

        self.platform = NotingPlatform(self.log)
        self.connector: ActorRef
        self.couriers: ActorRef

    async def say(self, *numbers: int) -> None:
        rows = tuple(as_enqueue(saying(number), 0) for number in numbers)
        await self.store.commit(Commit(at=1.0, deliveries=rows))
        for number in numbers:
            self.connector.tell(Deliver(saying(number)))

    def drop(self, number: int) -> bool:
        """Do as `runtime.sqlite.database.drop_delivery`; tell whether it was done."""
        row = self.row(number)
        if row.state not in {"pending", "unknown"}:
            return False
        self._write(row, "drop", state="dead", receipt=DROPPED, settled_at=1.0)
        return True

    def retry(self, number: int) -> bool:
        """Do as `runtime.sqlite.database.retry_delivery`; tell whether it was done."""
        row = self.row(number)
        if row.state not in {"dead", "unknown"}:
            return False
        self._write(row, "retry", state="pending", receipt=BY_HAND, settled_at=0.0)
        return True

    def _write(self, row: StoredDelivery, what: str, **changes: object) -> None:
        self.store._rows.outbox[row.id] = structs.replace(row, **changes)
        self.log[row.id].append((what, trio.current_time()))
        self.connector.tell(DrainOutbox())

    def break_courier(self) -> None:
        self.couriers.tell(Keyed("room/", "nonsense"))

    def row(self, number: int = 1) -> StoredDelivery:
        return self.store._rows.outbox[f"m{number}:0"]

    @property
    def rows(self) -> list[StoredDelivery]:
        return [*self.store._rows.outbox.values()]

    @property
    def states(self) -> list[str]:
        return [row.state for row in self.rows]


@asynccontextmanager
async def open_lane(
    clock: trio.testing.MockClock,
    abilities: Abilities,
    on_unknown: OnUnknown = "resend",
    store: MemoryStore | None = None,
) -> AsyncGenerator[Lane]:
    lane = Lane(store or MemoryStore())
    lane.platform.can = abilities
    account = Account(abilities, on_unknown=on_unknown)
    services = changed(
        make_services(lane.store), accounts={"fake": account}, presence=AT_ONCE
    )
    async with virtual(clock) as system:
        lane.couriers = system.spawn(
            KeyedSupervisor(
                lambda _key: Courier("fake", lane.platform, services),
                KeyedConfig(idle_after=AWAKE, intensity=1000),
            ),
            name=names.couriers("fake"),
        )
        lane.connector = system.spawn(
            Connector("fake", services), name=names.connector("fake")
        )
        await trio.sleep(1)
        yield lane
