"""Proves that a chat is spoken to in order, and again while its platform is busy."""

from __future__ import annotations

from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

import pytest
import trio.testing

from actors import names
from actors.commits import as_enqueue
from actors.courier import Courier
from actors.errors import DeliveryBusyError, DeliveryError, DeliveryRefusedError
from actors.messages import Draft
from actors.protocol import Deliver, Delivered, Settled, ShowDraft
from actors.rules.sending import TRIES
from runtime.keyed import KeyedConfig, KeyedSupervisor
from runtime.memory_store import MemoryStore
from runtime.messages import Keyed
from runtime.rows import Commit
from tests.fakes.company import Platform
from tests.fakes.neighbours import ROOM, make_services, of_kind, probe, saying, words
from tests.puppet import virtual

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from runtime.ref import ActorRef
    from runtime.testing import Probe

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

    async def outbox(self) -> dict[str, int]:
        counts = await self.store.counts()
        return {str(state): rows for state, rows in counts.outbox.items()}

    def done(self) -> list[str]:
        return [each.delivery_id for each in of_kind(self.connector, Delivered)]


@asynccontextmanager
async def open_road(
    clock: Clock, store: MemoryStore | None = None
) -> AsyncGenerator[Road]:
    store = store or MemoryStore()
    platform = Platform()
    platform._is_listening = True
    services = make_services(store)
    async with virtual(clock) as system:
        connector = probe(system, names.connector("fake"))
        config = KeyedConfig(idle_after=60)
        way = system.spawn(
            KeyedSupervisor(lambda _key: Courier("fake", platform, services), config)
        )
        yield Road(store, platform, connector, way)


async def test_what_was_said_has_a_receipt(autojump_clock: Clock) -> None:
    async with open_road(autojump_clock) as road:
        await road.deliver(1)
        assert await road.connector.wait_for(Delivered) == Delivered("m1:0")
        assert await road.outbox() == {"sent": 1}


@pytest.mark.parametrize(
    ("asked", "least"), [(None, 3), (0.0, 0), (40, 80), (900, 120)]
)
async def test_a_busy_platform_is_asked_again_when_it_says(
    asked: float | None, least: float, autojump_clock: Clock
) -> None:
    async with open_road(autojump_clock) as road:
        error = DeliveryBusyError("x", retry_after=asked)
        road.platform.faults["room"].extend([error] * 2)
        await road.deliver(1, 2)
        await road.connector.wait_count(2, within=1000)
        assert least <= trio.current_time() < least + 1
        assert road.platform.attempts == ["m1:0"] * 3 + ["m2:0"]
        assert await road.outbox() == {"sent": 2}


@pytest.mark.parametrize(
    ("error", "count"),
    [
        (DeliveryBusyError("x"), TRIES),
        (DeliveryRefusedError("gone"), 1),
        (DeliveryError("odd"), 1),
    ],
)
async def test_what_cannot_be_said_is_dead_and_the_next_is_said(
    error: Exception, count: int, autojump_clock: Clock
) -> None:
    async with open_road(autojump_clock) as road:
        road.platform.faults["room"].extend([error] * count)
        await road.deliver(1, 2)
        await road.connector.wait_count(2, within=1000)
        assert await road.outbox() == {"dead": 1, "sent": 1}
        assert road.platform.said() == ["anna: answer 2"]


async def test_a_receipt_waits_for_the_disk_and_nothing_is_said_again(
    autojump_clock: Clock,
) -> None:
    async with open_road(autojump_clock, MemoryStore(fails_at=range(2, 100))) as road:
        await road.deliver(1)
        await trio.sleep(90)  # longer than an idle courier stays awake
        assert road.done() == []
        road.tell(Deliver(saying(1)))
        await road.connector.wait_for(Delivered, within=60)
        assert road.platform.attempts == ["m1:0"]
        assert await road.outbox() == {"sent": 1}


async def test_a_courier_that_crashes_says_nothing_twice_while_the_disk_is_full(
    autojump_clock: Clock,
) -> None:
    async with open_road(autojump_clock, MemoryStore(fails_at=range(2, 100))) as road:
        await road.deliver(1, 2)
        await trio.sleep(5)
        road.tell("nonsense")  # until it is a dead letter
        await trio.sleep(5)
        for number in (1, 2):
            road.tell(Deliver(saying(number)))  # out of the outbox: still pending
        await trio.sleep(5)
        assert road.done() == []
        await trio.sleep(200)
        assert set(road.done()) == {"m1:0", "m2:0"}
        assert road.platform.attempts == ["m1:0", "m2:0"]
        assert await road.outbox() == {"sent": 2}


async def test_handed_over_twice_it_is_said_once(autojump_clock: Clock) -> None:
    async with open_road(autojump_clock) as road:
        await road.deliver(1)
        road.tell(Deliver(saying(1)))
        await road.connector.wait_count(1)
        road.tell(Deliver(saying(1)))
        await road.connector.wait_count(2)
        assert road.done() == ["m1:0"] * 2
        assert road.platform.attempts == ["m1:0"]


async def test_a_receipt_that_cannot_be_is_not_waited_for(
    autojump_clock: Clock,
) -> None:
    async with open_road(autojump_clock) as road:
        road.tell(Deliver(saying(1)))  # never enqueued
        await road.connector.wait_for(Delivered)


async def test_drafts_answers_and_settlements_keep_their_order(
    autojump_clock: Clock,
) -> None:
    draft = Draft(
        correlation_id="m1", turn_id="t", address=ROOM, agent="anna", text="w"
    )
    async with open_road(autojump_clock) as road:
        road.tell(ShowDraft(draft))
        await road.deliver(1)
        road.tell(Settled(words(number=2), "dropped:x"))
        await road.connector.wait_for(Delivered)
        await trio.sleep(1)
        assert road.platform.shown == [draft, saying(1)]
        assert road.platform.settled == [("m2", "dropped:x")]


async def test_a_stranger_s_message_is_a_mistake(autojump_clock: Clock) -> None:
    async with virtual(autojump_clock) as system:
        courier = system.spawn(Courier("fake", Platform(), make_services()))
        courier.tell("nonsense")
        await trio.testing.wait_all_tasks_blocked()
        assert not courier.is_alive()
