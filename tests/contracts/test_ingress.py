"""Every way in keeps the promises of `actors.transport.Ingress` about who may write."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

import pytest
import trio.testing

from actors import names
from actors.config.access import AccessConfig
from actors.inbound.connector import Connector, ConnectorIngress
from actors.people.access import policy
from actors.transport import Account, Ingress
from runtime.telemetry.metrics import Metrics
from tests.fakes.actors.neighbours import make_services, probe, words
from tests.fakes.actors.noting import Noting
from tests.fakes.chat.ingress import FakeIngress
from tests.fakes.company.furnished import changed
from tests.fakes.store.in_memory import MemoryStore
from tests.support.puppet import virtual

Clock = trio.testing.MockClock

ALL = pytest.mark.parametrize("kind", ["fake", "noting", "connector"])
FRIEND, STRANGER = words(number=1), words(number=2, sender_id="eve")


class Way:
    """A way in that lets zoe in, and nobody else.

    Args:
        ingress: the way in.
        store: what is kept, if that is a store.
        metrics: what is counted.
    """

    def __init__(self, ingress: Ingress, store: MemoryStore, metrics: Metrics) -> None:
        self.ingress = ingress
        self._store = store
        self._metrics = metrics

    async def kept(self) -> tuple[object, ...]:
        """Give all that would tell that something was asked."""
        await trio.testing.wait_all_tasks_blocked()
        rows = await self._store.unsettled()
        return rows, await self._store.records("audit"), self._refusals()

    def _refusals(self) -> list[bytes]:
        lines = self._metrics.render().splitlines()
        starts = (b"callboard_refusals", b"callboard_messages_total")
        return [each for each in lines if each.startswith(starts)]


@asynccontextmanager
async def open_way(kind: str, clock: Clock) -> AsyncGenerator[Way]:
    store, metrics = MemoryStore(), Metrics()
    fake = FakeIngress()
    fake.strangers.add("eve")
    rules = policy(AccessConfig(allowed=("zoe",)), ())
    services = changed(
        make_services(store, metrics=metrics), accounts={"fake": Account(policy=rules)}
    )
    services.guests.replace(())
    async with virtual(clock) as system:
        probe(system, names.ROUTER)
        ref = system.spawn(Connector("fake", services), name=names.connector("fake"))
        ways: dict[str, Ingress] = {
            "fake": fake,
            "noting": Noting(fake),
            "connector": ConnectorIngress(ref, store),
        }
        yield Way(ways[kind], store, metrics)
        await trio.testing.wait_all_tasks_blocked()


@ALL
async def test_who_is_admitted_is_taken_in(kind: str, autojump_clock: Clock) -> None:
    async with open_way(kind, autojump_clock) as way:
        assert await way.ingress.is_admitted(FRIEND)
        assert await way.ingress.accept(FRIEND)
        assert not await way.ingress.is_admitted(STRANGER)
        assert not await way.ingress.accept(STRANGER)


@ALL
async def test_asking_keeps_and_counts_nothing(
    kind: str, autojump_clock: Clock
) -> None:
    async with open_way(kind, autojump_clock) as way:
        before = await way.kept()
        for inbound in (FRIEND, STRANGER, STRANGER):
            await way.ingress.is_admitted(inbound)
        assert await way.kept() == before
        assert await way.ingress.accept(FRIEND)
