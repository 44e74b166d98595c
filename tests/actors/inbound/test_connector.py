"""Proves that a message is durable when it is acknowledged, and goes out once."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import replace

import msgspec
import pytest
import trio
import trio.testing

from actors import names
from actors.errors import OverloadedError, UnconfirmedError
from actors.inbound.connector import (
    MOST_STORING,
    SWEEP_EVERY,
    Connector,
    ConnectorIngress,
)
from actors.inbound.listener import Listener
from actors.journal.commits import as_accept, as_enqueue
from actors.messages.deliveries import Delivery, Draft
from actors.protocol import (
    Deliver,
    Delivered,
    DrainOutbox,
    MessageSettled,
    Receive,
    Route,
    RouteUnanswered,
    ShowDraft,
    Undelivered,
)
from runtime.actor.mailbox import MailboxConfig
from runtime.actor.messages import Keyed
from runtime.actor.ref import ActorRef
from runtime.errors import CorruptError, StoreUnavailableError
from runtime.store.port import Done
from runtime.store.rows import Commit, StoredDelivery
from runtime.supervision.child import ChildSpec
from runtime.supervision.supervisor import Supervisor
from runtime.system import ActorSystem
from runtime.testing import Probe
from tests.fakes.actors.neighbours import (
    ROOM,
    make_services,
    of_kind,
    probe,
    saying,
    words,
)
from tests.fakes.company.company import Platform
from tests.fakes.store.in_memory import MemoryStore
from tests.support.puppet import virtual

Clock = trio.testing.MockClock


class SlowStore(MemoryStore):
    """Holds commits back, and fails to be read, to order."""

    is_held = False
    unreadable = 0
    reads = 0
    """Pages of the outbox that were read."""

    def __init__(self) -> None:
        super().__init__()
        self.held: list[tuple[Commit, Done]] = []

    def submit(self, commit: Commit, done: Done) -> None:
        if self.is_held:
            self.held.append((commit, done))
        else:
            super().submit(commit, done)

    def let_go(self) -> None:
        self.is_held = False
        for commit, done in self.held:
            self.submit(commit, done)

    async def undelivered(
        self, connector: str | None = None, after: int = 0, limit: int = 1000
    ) -> tuple[StoredDelivery, ...]:
        self.reads += 1
        if self.unreadable:
            self.unreadable -= 1
            raise StoreUnavailableError("unreadable, to order")
        return await super().undelivered(connector, after, limit)


class Gate:
    """A connector between a router and couriers."""

    def __init__(self, system: ActorSystem, store: MemoryStore) -> None:
        self.system = system
        self.router = probe(system, names.ROUTER)
        self.couriers = probe(system, names.couriers("fake"))
        self.ref: ActorRef = system.spawn(
            Connector("fake", make_services(store)), name=names.connector("fake")
        )
        self.ingress = ConnectorIngress(self.ref, store)

    def sent(self) -> list[str]:
        """Give the ids of what went to couriers."""
        kept = [each.message for each in of_kind(self.couriers, Keyed)]
        return [each.delivery.id for each in kept if isinstance(each, Deliver)]


@asynccontextmanager
async def open_gate(
    clock: Clock, store: MemoryStore | None = None
) -> AsyncGenerator[Gate]:
    async with virtual(clock) as system:
        yield Gate(system, store or MemoryStore())
        await trio.testing.wait_all_tasks_blocked()


async def enqueued(store: MemoryStore, *deliveries: Delivery) -> None:
    rows = tuple(as_enqueue(each, 0) for each in deliveries)
    await store.commit(Commit(at=1.0, deliveries=rows))


async def test_accepting_returns_when_the_message_is_durable(
    autojump_clock: Clock,
) -> None:
    store = SlowStore()
    store.is_held = True
    async with open_gate(autojump_clock, store) as gate, trio.open_nursery() as nursery:
        accepted = trio.Event()

        async def accept() -> None:
            assert await gate.ingress.accept(words())
            accepted.set()

        nursery.start_soon(accept)
        await trio.sleep(1)
        assert not accepted.is_set()
        assert not gate.router.received
        store.let_go()
        await accepted.wait()
        assert await gate.router.wait_for(Route) == Route(words(), 1)
        assert [each.id for each in await store.unsettled()] == ["m1"]


async def test_a_known_message_is_acknowledged_and_not_routed(
    autojump_clock: Clock,
) -> None:
    async with open_gate(autojump_clock) as gate:
        assert await gate.ingress.accept(words())
        assert not await gate.ingress.accept(words(id="m2"))
        assert of_kind(gate.router, Route) == [Route(words(), 1)]


async def test_what_the_disk_refuses_is_not_accepted(autojump_clock: Clock) -> None:
    async with open_gate(autojump_clock, MemoryStore(fails_at=(1,))) as gate:
        with pytest.raises(StoreUnavailableError):
            await gate.ingress.accept(words())
        assert gate.router.received == []


async def test_a_message_told_instead_of_asked_is_stored_too(
    autojump_clock: Clock,
) -> None:
    store = MemoryStore(fails_at=(1,))
    async with open_gate(autojump_clock, store) as gate:
        for _ in range(3):
            gate.ref.tell(Receive(words()))
        await gate.router.wait_for(Route)
        assert len(await store.unsettled()) == 1


async def test_too_much_at_once_is_refused_before_it_is_stored(
    autojump_clock: Clock,
) -> None:
    store = SlowStore()
    store.is_held = True
    async with open_gate(autojump_clock, store) as gate:
        for number in range(MOST_STORING):
            gate.ref.tell(Receive(words(number=number)))
        await trio.testing.wait_all_tasks_blocked()
        with pytest.raises(OverloadedError, match="try again"):
            await gate.ingress.accept(words(number=9999))
        store.let_go()
        await gate.router.wait_count(MOST_STORING)
        assert await gate.ingress.accept(words(number=9999))


async def test_a_full_mailbox_is_an_overload(autojump_clock: Clock) -> None:
    async with virtual(autojump_clock) as system:
        full = system.spawn(Probe(), mailbox=MailboxConfig(capacity=1))
        full.tell("first")
        with pytest.raises(OverloadedError):
            await ConnectorIngress(full, MemoryStore()).accept(words())


async def test_a_connector_that_is_gone_confirms_nothing(autojump_clock: Clock) -> None:
    async with open_gate(autojump_clock) as gate:
        await gate.ref.stop()
        with pytest.raises(UnconfirmedError, match="not confirmed"):
            await gate.ingress.accept(words())


async def test_a_disk_that_never_answers_confirms_nothing(
    autojump_clock: Clock,
) -> None:
    store = SlowStore()
    store.is_held = True
    async with open_gate(autojump_clock, store) as gate:
        with pytest.raises(UnconfirmedError, match="not confirmed"):
            await gate.ingress.accept(words())
        store.let_go()
        await gate.router.wait_for(Route)
        assert not await gate.ingress.accept(words())  # it was stored all the same


async def test_what_waits_in_the_outbox_goes_out_at_the_start_in_order(
    autojump_clock: Clock,
) -> None:
    store = MemoryStore()
    many = [saying(number) for number in range(2300)]
    await enqueued(store, *many)
    async with open_gate(autojump_clock, store) as gate:
        await gate.couriers.wait_count(2300)
        assert gate.sent() == [each.id for each in many]
        (keyed, *_) = of_kind(gate.couriers, Keyed)
        assert keyed.key == "room/"


@pytest.mark.parametrize("body", [b"{", b"\xff", b'{"id": 1}', b'{"id": "\xff"}'])
async def test_a_delivery_that_cannot_be_read_is_left_alone_and_keeps_no_other(
    body: bytes, autojump_clock: Clock
) -> None:
    store = MemoryStore()
    damaged = msgspec.structs.replace(as_enqueue(saying(1), 0), body=body)
    await store.commit(Commit(at=1.0, deliveries=(damaged,)))
    await enqueued(store, saying(2))
    async with open_gate(autojump_clock, store) as gate:
        await trio.sleep(1)
        gate.ref.tell(DrainOutbox())
        await trio.sleep(1)
        assert gate.sent() == ["m2:0"]
        assert gate.ref.is_alive()
    assert (await store.counts()).outbox == {"pending": 2}


async def test_what_is_under_way_is_not_sent_twice(autojump_clock: Clock) -> None:
    store = MemoryStore()
    async with open_gate(autojump_clock, store) as gate:
        await trio.sleep(1)
        await enqueued(store, saying(1))
        gate.ref.tell(Deliver(saying(1)))
        gate.ref.tell(DrainOutbox())
        gate.ref.tell(Deliver(saying(1)))
        await trio.sleep(1)
        assert gate.sent() == ["m1:0"]
        gate.ref.tell(Delivered("m1:0"))
        gate.ref.tell(DrainOutbox())
        await trio.sleep(1)
        assert gate.sent() == ["m1:0"] * 2  # its row says that it was not said


async def test_what_never_came_to_its_courier_is_tried_again_later(
    autojump_clock: Clock,
) -> None:
    store = MemoryStore()
    async with open_gate(autojump_clock, store) as gate:
        await trio.sleep(1)
        await enqueued(store, saying(1), saying(2))
        for number in (1, 2):
            gate.ref.tell(Deliver(saying(number)))
            gate.ref.tell(Undelivered(f"m{number}:0"))
        await trio.sleep(60)
        assert gate.sent() == ["m1:0", "m2:0"] * 2


async def test_an_outbox_that_cannot_be_read_is_read_later(
    autojump_clock: Clock,
) -> None:
    store = SlowStore()
    store.unreadable = 2
    await enqueued(store, saying(1))
    async with open_gate(autojump_clock, store) as gate:
        await trio.sleep(60)
        assert gate.sent() == ["m1:0"]


async def test_a_delivery_waits_for_couriers_that_are_not_there(
    autojump_clock: Clock,
) -> None:
    store = MemoryStore()
    async with open_gate(autojump_clock, store) as gate:
        await gate.couriers.actor_ref.stop()
        await enqueued(store, saying(1))
        gate.ref.tell(Deliver(saying(1)))
        await trio.sleep(1)
        gate.couriers = probe(gate.system, names.couriers("fake"))
        await trio.sleep(60)
        assert gate.sent() == ["m1:0"]


async def test_drafts_and_settlements_go_to_the_courier_of_their_chat(
    autojump_clock: Clock,
) -> None:
    draft = Draft(
        correlation_id="m1", turn_id="t", address=ROOM, agent="anna", text="w"
    )
    async with open_gate(autojump_clock) as gate:
        gate.ref.tell(ShowDraft(draft))
        gate.ref.tell(MessageSettled(words(), "dropped:x"))
        kept = await gate.couriers.wait_count(2)
        assert kept == [
            Keyed("room/", ShowDraft(draft)),
            Keyed("room/", MessageSettled(words(), "dropped:x")),
        ]


async def test_a_connector_that_fails_has_the_router_look_again(
    autojump_clock: Clock,
) -> None:
    async with open_gate(autojump_clock) as gate:
        gate.ref.tell("nonsense")
        await gate.router.wait_for(RouteUnanswered)


class Damaged(MemoryStore):
    """Stores nothing any more."""

    def submit(self, commit: Commit, done: Done) -> None:
        del commit
        error = CorruptError("damaged, to order")
        trio.lowlevel.current_trio_token().run_sync_soon(done, error)


async def test_a_damaged_disk_is_told_to_who_hands_in(autojump_clock: Clock) -> None:
    async with open_gate(autojump_clock, Damaged()) as gate:
        with pytest.raises(CorruptError):
            await gate.ingress.accept(words())


class DamagedOutbox(Damaged):
    """Nor is anything found of what is to be said."""

    async def undelivered(
        self, connector: str | None = None, after: int = 0, limit: int = 1000
    ) -> tuple[StoredDelivery, ...]:
        del connector, after, limit
        await trio.lowlevel.checkpoint()
        raise CorruptError("damaged, to order")


async def test_who_hands_in_is_told_at_once_though_the_outbox_is_damaged_too(
    autojump_clock: Clock,
) -> None:
    async with open_gate(autojump_clock, DamagedOutbox()) as gate:
        for _ in range(10):
            await trio.sleep(SWEEP_EVERY)
            with pytest.raises(CorruptError), trio.fail_after(0.1):
                await gate.ingress.accept(words())


async def test_a_listener_ends_with_its_platform_and_says_so(
    autojump_clock: Clock,
) -> None:
    class Brief(Platform):
        async def listen(self, ingress: object) -> None:
            del ingress
            await trio.sleep(5)

    ended: list[str] = []
    async with open_gate(autojump_clock) as gate:
        listener = gate.system.spawn(
            Listener("fake", Brief(), MemoryStore(), lambda: ended.append("fake"))
        )
        await trio.sleep(10)
        assert ended == ["fake"]
        assert not listener.is_alive()


async def test_a_listener_needs_its_connector(autojump_clock: Clock) -> None:
    async with virtual(autojump_clock) as system:
        spec = ChildSpec(
            name="listener",
            start=lambda: Listener("fake", Platform(), MemoryStore(), list),
        )
        await system.start_root(Supervisor((spec,)), "root")
        await trio.sleep(1)
        assert system.statistics().restarts["Listener", "StartError"] > 0


async def test_a_listener_takes_no_messages(autojump_clock: Clock) -> None:
    async with open_gate(autojump_clock) as gate:
        listener = gate.system.spawn(Listener("fake", Platform(), MemoryStore(), list))
        await trio.sleep(1)
        with pytest.raises(trio.TooSlowError), trio.fail_after(1):
            await listener.ask("nonsense")  # it listens, and hears nothing else
        row = as_accept(words(), 1.0)
        assert row.id == "m1"


async def test_what_is_stored_goes_on_also_when_who_stored_it_is_gone(
    autojump_clock: Clock,
) -> None:
    store = SlowStore()
    store.is_held = True
    async with open_gate(autojump_clock, store) as gate, trio.open_nursery() as nursery:
        nursery.start_soon(refused, gate)
        await trio.sleep(1)
        gate.ref.kill()
        store.let_go()
        assert (await gate.router.wait_for(Route)) == Route(words(), 1)
        nursery.cancel_scope.cancel()


async def refused(gate: Gate) -> None:
    with pytest.raises(OverloadedError):
        await gate.ingress.accept(words())


async def test_a_long_outbox_is_not_read_at_each_hint_of_another_node(
    autojump_clock: Clock,
) -> None:
    store, services = SlowStore(), make_services()
    services = replace(services, store=store)
    services.duties.parts = frozenset()
    services.duties.is_shared = services.duties.is_leased = lambda _: True
    services.duties.accounts = frozenset({"fake"})
    rows = tuple(as_enqueue(saying(number), 7) for number in range(2_000))
    await store.commit(Commit(at=1.0, deliveries=rows))
    async with virtual(autojump_clock) as system:
        couriers = probe(system, names.couriers("fake"))
        connector = system.spawn(Connector("fake", services))
        await trio.testing.wait_all_tasks_blocked()
        assert len(couriers.received) == 2_000
        late = as_enqueue(saying(2_001), 7)
        await store.commit(Commit(at=1.0, deliveries=(late,)))
        before = store.reads
        for _ in range(10):
            connector.tell(DrainOutbox())
            await trio.sleep(0.1)
        assert store.reads == before
        await trio.sleep(1.5)  # two seconds' worth of rows were read
        assert store.reads == before + 3
        assert len(couriers.received) == 2_001
