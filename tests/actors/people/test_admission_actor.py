"""Proves who is let in: not more than may be open, nobody at the end, no stranger."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

import msgspec
import pytest
import trio
import trio.testing

from actors import names
from actors.config.limits import LimitsConfig
from actors.errors import MessageRefusedError, OverloadedError, StoppingError
from actors.inbound.connector import MOST_REFUSALS, Connector, ConnectorIngress
from actors.journal.commits import as_accept, as_enqueue
from actors.journal.records import AuditRecord
from actors.journal.unsettled import COUNT_AGAIN
from actors.messages.priority import NORMAL, OWNER
from actors.protocol import Deliver, MessageSettled, Route, StopAccepting
from actors.transport import RefusedAttempt
from runtime.actor.messages import Keyed
from runtime.actor.ref import ActorRef
from runtime.errors import StoreUnavailableError
from runtime.store.rows import Commit, Receipt, SendAttempt, StoredMessage
from runtime.telemetry.metrics import Metrics
from runtime.testing import Probe
from tests.fakes.actors.neighbours import make_services, probe, saying, words
from tests.fakes.company.furnished import changed
from tests.fakes.store.in_memory import MemoryStore
from tests.support.puppet import virtual

Clock = trio.testing.MockClock

STRANGER = RefusedAttempt("unknown_sender", sender_id="x", chat="front")


class Door:
    """A connector that lets two in, and knows its owner."""

    def __init__(self, ref: ActorRef, store: MemoryStore, metrics: Metrics) -> None:
        self.ref = ref
        self.store = store
        self.ingress = ConnectorIngress(ref, store)
        self.metrics = metrics

    def counted(self, outcome: str) -> int:
        start = f'callboard_messages_total{{connector="fake",outcome="{outcome}"}} '
        lines = self.metrics.render().decode().splitlines()
        found = [line for line in lines if line.startswith(start)]
        return round(float(found[0].removeprefix(start))) if found else 0


class Couriers:
    """What stands around a connector."""

    def __init__(self, router: Probe, couriers: Probe) -> None:
        self.router = router
        self.couriers = couriers


@asynccontextmanager
async def open_door(
    clock: Clock, store: MemoryStore | None = None
) -> AsyncGenerator[tuple[Door, Couriers]]:
    store, metrics = store or MemoryStore(), Metrics()
    limits = LimitsConfig(max_open=3, max_message_chars=9)
    services = make_services(store, limits, metrics)
    services = changed(services, owners=frozenset({"fake/boss"}))
    async with virtual(clock) as system:
        around = Couriers(
            probe(system, names.ROUTER), probe(system, names.couriers("fake"))
        )
        ref = system.spawn(Connector("fake", services), name=names.connector("fake"))
        yield Door(ref, store, metrics), around
        await trio.testing.wait_all_tasks_blocked()


async def test_no_more_are_let_in_than_may_be_open(autojump_clock: Clock) -> None:
    async with open_door(autojump_clock) as (door, _):
        for number in (1, 2, 3):
            message = words(number=number, sender_id=f"person-{number}")
            assert await door.ingress.accept(message)
        with pytest.raises(OverloadedError, match="try again"):
            await door.ingress.accept(words(number=4))
        assert door.counted("overloaded") == 1
        assert len(await door.store.unsettled()) == 3


@pytest.mark.parametrize("kind", ["answer", "settlement", "another's answer"])
async def test_only_the_end_of_an_exchange_makes_room(
    kind: str, autojump_clock: Clock
) -> None:
    async with open_door(autojump_clock) as (door, _):
        for number in (1, 2):
            await door.ingress.accept(words(number=number))
        said = saying(1)
        if kind == "settlement":
            door.ref.tell(MessageSettled(words(), "dropped:x"))
        else:
            is_root = kind == "answer"
            said = msgspec.structs.replace(said, is_root=is_root)
            door.ref.tell(Deliver(said))
        if kind == "another's answer":
            with pytest.raises(OverloadedError):
                await door.ingress.accept(words(number=3))
        else:
            assert await door.ingress.accept(words(number=3))


class SickStore(MemoryStore):
    """Cannot be looked through for the first few times."""

    unreadable = 3

    async def unsettled(
        self, after: int = 0, limit: int = 1000
    ) -> tuple[StoredMessage, ...]:
        if self.unreadable:
            self.unreadable -= 1
            raise StoreUnavailableError("unreadable, to order")
        return await super().unsettled(after, limit)


async def stored(store: MemoryStore, *numbers: int) -> None:
    rows = tuple(as_accept(words(number=number), 1.0) for number in numbers)
    await store.commit(Commit(at=1.0, accepts=rows))


async def test_who_was_let_in_before_a_restart_still_takes_up_room(
    autojump_clock: Clock,
) -> None:
    store = MemoryStore()
    await stored(store, 1, 2)
    async with open_door(autojump_clock, store) as (door, _):
        with pytest.raises(OverloadedError):
            await door.ingress.accept(words(number=3))
        door.ref.tell(Deliver(saying(1)))
        assert await door.ingress.accept(words(number=3))


async def test_a_disk_that_cannot_be_read_is_asked_again_who_waits(
    autojump_clock: Clock,
) -> None:
    store = SickStore()
    await stored(store, 1)
    async with open_door(autojump_clock, store) as (door, _):
        assert await door.ingress.accept(words(number=2))
        await trio.sleep(4 * COUNT_AGAIN)
        assert not store.unreadable
        with pytest.raises(OverloadedError):
            await door.ingress.accept(words(number=3))


async def test_what_the_disk_refused_takes_no_room(autojump_clock: Clock) -> None:
    store = MemoryStore(fails_at=(1, 2, 3))
    async with open_door(autojump_clock, store) as (door, _):
        for number in range(3):
            with pytest.raises(StoreUnavailableError):
                await door.ingress.accept(words(number=number))
        assert await door.ingress.accept(words(number=4))
        assert door.counted("not_stored") == 3


async def test_what_is_too_long_is_refused_for_good(autojump_clock: Clock) -> None:
    async with open_door(autojump_clock) as (door, _):
        assert await door.ingress.accept(words("x" * 9))
        with pytest.raises(MessageRefusedError, match="10 characters, 9 are allowed"):
            await door.ingress.accept(words("x" * 10, 2))
        assert door.counted("too_long") == 1
        assert len(await door.store.unsettled()) == 1


async def test_a_closed_door_lets_nobody_in_and_everything_out(
    autojump_clock: Clock,
) -> None:
    async with open_door(autojump_clock) as (door, around):
        await door.ingress.accept(words())
        door.ref.tell(StopAccepting())
        with pytest.raises(StoppingError):
            await door.ingress.accept(words(number=2))
        with pytest.raises(StoppingError):
            await door.ingress.is_admitted(words(number=2))
        assert door.counted("stopping") == 1
        door.ref.tell(Deliver(saying(1)))
        await around.couriers.wait_for(Keyed)
        assert len(await door.store.unsettled()) == 1


@pytest.mark.parametrize(("sender", "rank"), [("boss", OWNER), ("zoe", NORMAL)])
async def test_who_is_urgent_is_decided_at_the_door(
    sender: str, rank: int, autojump_clock: Clock
) -> None:
    async with open_door(autojump_clock) as (door, around):
        await door.ingress.accept(words(sender_id=sender, priority=2))
        (row,) = await door.store.unsettled()
        assert row.priority == rank
        assert (await around.router.wait_for(Route)).inbound.priority == rank


async def test_a_stranger_is_put_on_record_and_not_routed(
    autojump_clock: Clock,
) -> None:
    async with open_door(autojump_clock) as (door, around):
        door.ingress.refuse(STRANGER)
        await trio.testing.wait_all_tasks_blocked()
        (row,) = await door.store.records("audit")
        audit = msgspec.json.decode(row.body, type=AuditRecord)
        assert (audit.sender_id, audit.chat) == ("x", "front")
        assert (audit.status, audit.reason) == ("unauthorised", "unknown_sender")
        assert around.router.received == []


async def test_strangers_on_record_are_so_many_a_minute(
    autojump_clock: Clock,
) -> None:
    async with open_door(autojump_clock) as (door, _):
        wanted = 0
        for _ in range(3):
            for _ in range(2 * MOST_REFUSALS):
                door.ingress.refuse(STRANGER)
            await trio.testing.wait_all_tasks_blocked()
            wanted += MOST_REFUSALS
            assert len(await door.store.records("audit")) == wanted
            await trio.sleep(60.1)
        assert door.counted("unauthorised") == 6 * MOST_REFUSALS


async def test_a_stranger_is_counted_though_the_disk_is_full(
    autojump_clock: Clock,
) -> None:
    store = MemoryStore(fails_at=range(1, 99))
    async with open_door(autojump_clock, store) as (door, _):
        door.ingress.refuse(STRANGER)
        await trio.testing.wait_all_tasks_blocked()
        assert door.counted("unauthorised") == 1
        assert door.ref.is_alive()


async def test_a_connector_that_is_gone_hears_of_no_stranger(
    autojump_clock: Clock,
) -> None:
    async with open_door(autojump_clock) as (door, _):
        await door.ref.stop()
        door.ingress.refuse(STRANGER)  # and does not fail


async def test_what_was_cut_off_while_it_was_said_is_handed_out_as_such(
    autojump_clock: Clock,
) -> None:
    store = MemoryStore()
    rows = tuple(as_enqueue(saying(number), 0) for number in (1, 2, 3))
    await store.commit(Commit(at=1.0, deliveries=rows))
    attempts = (SendAttempt("m1:0", 2), SendAttempt("m3:0", 1))
    receipts = (Receipt("m3:0", "sent"),)
    await store.commit(Commit(at=1.0, send_attempts=attempts, receipts=receipts))
    began_at = trio.current_time()
    async with open_door(autojump_clock, store) as (_, around):
        kept = await around.couriers.wait_count(2)
        assert [each.message for each in kept] == [
            Deliver(saying(1), 2, was_sending=True, is_again=True, handed_at=began_at),
            Deliver(saying(2), is_again=True, handed_at=began_at),
        ]
