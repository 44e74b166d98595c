"""A scheduler between probes, over a store in memory and a clock that may jump."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

import trio
import trio.testing

from actors import names
from actors.config.schedule import SchedulerConfig
from actors.messages.inbound import Address, Inbound
from actors.protocol import Route
from actors.schedule.appointments import Appointment
from actors.schedule.rows import KIND, as_entry, read
from actors.schedule.scheduler import Scheduler
from connectors.config.checks import find_zone
from runtime.actor.ref import ActorRef
from runtime.store.rows import Commit, Settle, SettledState
from runtime.telemetry.metrics import Metrics
from runtime.testing import Probe
from tests.fakes.actors.neighbours import make_services, of_kind, probe
from tests.fakes.company.company import EPOCH
from tests.fakes.company.furnished import changed
from tests.fakes.store.in_memory import MemoryStore
from tests.support.puppet import virtual

Clock = trio.testing.MockClock

DAY = 86_400.0


class JumpingClock:
    """Trio's clock, and one on the wall that may be set wrong."""

    def __init__(self) -> None:
        self.wrong_by = 0.0

    def monotonic(self) -> float:
        return trio.current_time()

    def wall(self) -> float:
        return EPOCH + trio.current_time() + self.wrong_by


class Bench:
    """A scheduler, and what it told its neighbours."""

    def __init__(self, store: MemoryStore) -> None:
        self.store = store
        self.clock = JumpingClock()
        self.metrics = Metrics()
        self.scheduler: ActorRef
        self.router: Probe
        self.connector: Probe

    def services(self) -> Any:
        services = make_services(self.store, metrics=self.metrics)
        return changed(
            services,
            clock=self.clock,
            scheduler=SchedulerConfig(),
            find_zone=find_zone,
        )

    async def put(self, name: str, **fields: Any) -> None:
        await self.store.commit(self.row(name, **fields))

    def row(self, name: str, expected: int | None = None, **fields: Any) -> Commit:
        given: dict[str, Any] = {
            "kind": "task",
            "agent": "anna",
            "address": Address("fake", "room"),
            "sender_id": "zoe",
            "text": name,
            "anchor": fields.get("next_due", 0.0),
        }
        it = Appointment(**{**given, **fields})
        entry = as_entry(name, "person:fake/zoe", it, 7, expected)
        return Commit(at=self.clock.wall(), entries=(entry,))

    def heard(self) -> list[Inbound]:
        return [route.inbound for route in of_kind(self.router, Route)]

    def slots(self) -> list[str]:
        return [each.platform_id for each in self.heard()]

    def accepted(self) -> list[str]:
        return [row.platform_id for row in self.store._rows.inbox.values()]

    async def settle_all(
        self, state: SettledState = "replied", reason: str = "ok"
    ) -> None:
        rows = await self.store.unsettled()
        settles = tuple(Settle(row.id, state, reason) for row in rows)
        await self.store.commit(Commit(at=self.clock.wall(), settles=settles))

    async def it(self, name: str) -> Appointment | None:
        row = await self.store.entry(KIND, name)
        return None if row is None else read(row)

    def counted(self, kind: str, outcome: str) -> float:
        labels = f'{{kind="{kind}",outcome="{outcome}"}}'
        return self._figure(f"callboard_appointments_due_total{labels}")

    def kept(self) -> float:
        return self._figure("callboard_appointments")

    def _figure(self, name: str) -> float:
        text = self.metrics.render().decode()
        found = (each.removeprefix(f"{name} ") for each in text.splitlines())
        return next((float(each) for each in found if each[:1].isdigit()), 0.0)


@asynccontextmanager
async def open_bench(
    clock: Clock,
    store: MemoryStore | None = None,
    **rows: dict[str, Any],
) -> AsyncGenerator[Bench]:
    bench = Bench(store or MemoryStore())
    for name, fields in rows.items():
        await bench.put(name, **fields)
    async with virtual(clock) as system:
        bench.router = probe(system, names.ROUTER)
        bench.connector = probe(system, names.connector("fake"))
        scheduler = Scheduler(bench.services(), frozenset({"fake"}))
        bench.scheduler = system.spawn(scheduler, name=names.SCHEDULER)
        yield bench


def every(seconds: float, **fields: Any) -> dict[str, Any]:
    repeat = f"every {seconds:.0f}s"
    return {"repeat": repeat, "anchor": EPOCH, "next_due": EPOCH + seconds, **fields}
