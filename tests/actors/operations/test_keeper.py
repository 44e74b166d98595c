"""Proves that the store is looked after: old rows, a sick disk, changes by others."""

from __future__ import annotations

import contextlib
import logging

import pytest
import trio.testing

from actors import names
from actors.journal.clock import SureClock
from actors.operations.keeper import (
    KEEP_CALLS,
    KEEP_DEDUP,
    LOOK_EVERY,
    PRUNE_EVERY,
    TOLD_EVERY,
    Keeper,
)
from actors.protocol import DrainOutbox, RouteArrived, RouteUnanswered
from actors.services import Duties
from runtime.errors import StoreUnavailableError
from runtime.store.rows import Commit, Record, Settle
from runtime.telemetry.logs import FIELDS
from tests.fakes.actors.neighbours import probe
from tests.fakes.company.company import EPOCH, TrioClock
from tests.fakes.store.in_memory import MemoryStore
from tests.support.puppet import virtual
from tests.support.store.rows import heard

Clock = trio.testing.MockClock


async def settle_many(store: MemoryStore, count: int, at: float) -> None:
    for number in range(count):
        row = heard(f"m{number}")
        await store.commit(
            Commit(at=at, accepts=(row,), settles=(Settle(row.id, "replied"),))
        )


async def test_what_was_settled_long_ago_is_forgotten(autojump_clock: Clock) -> None:
    store = MemoryStore()
    await settle_many(store, 2500, EPOCH + 1.5 * PRUNE_EVERY - KEEP_DEDUP)
    async with virtual(autojump_clock) as system:
        system.spawn(Keeper(store, SureClock(TrioClock())))
        await trio.sleep(1.1 * PRUNE_EVERY)
        assert (await store.counts()).inbox == {"replied": 2500}
        await trio.sleep(PRUNE_EVERY)
        assert (await store.counts()).inbox == {}


async def note_many(store: MemoryStore, kind: str, count: int, at: float) -> None:
    records = tuple(
        Record(kind=kind, id=str(number), owner="", part=0, body=b"{}")
        for number in range(count)
    )
    await store.commit(Commit(at=at, records=records))


async def test_audit_records_are_kept_as_long_as_was_asked(
    autojump_clock: Clock,
) -> None:
    store = MemoryStore()
    await note_many(store, "audit", 2500, EPOCH + 1.5 * PRUNE_EVERY - 60)
    await note_many(store, "conversation", 1, EPOCH - 10 * PRUNE_EVERY)
    async with virtual(autojump_clock) as system:
        system.spawn(Keeper(store, SureClock(TrioClock()), audit_keep=lambda: 60.0))
        await trio.sleep(1.1 * PRUNE_EVERY)
        assert len(await store.records("audit", limit=5000)) == 2500
        await trio.sleep(PRUNE_EVERY)
        assert await store.records("audit") == ()
        assert len(await store.records("conversation")) == 1


async def test_what_became_of_slots_is_kept_as_long_as_was_asked(
    autojump_clock: Clock,
) -> None:
    store = MemoryStore()
    await note_many(store, "slot", 10, EPOCH - 60)
    await note_many(store, "audit", 10, EPOCH - 60)
    async with virtual(autojump_clock) as system:
        system.spawn(
            Keeper(store, SureClock(TrioClock()), slots_keep=lambda: PRUNE_EVERY)
        )
        await trio.sleep(0.9 * PRUNE_EVERY)
        assert len(await store.records("slot")) == 10
        await trio.sleep(0.2 * PRUNE_EVERY)
        assert await store.records("slot") == ()
        assert len(await store.records("audit")) == 10


async def test_of_several_nodes_one_removes_old_rows(autojump_clock: Clock) -> None:
    store, duties = MemoryStore(), Duties()
    duties.has_rest = False
    await note_many(store, "audit", 1, EPOCH - PRUNE_EVERY)
    async with virtual(autojump_clock) as system:
        clock = SureClock(TrioClock())
        system.spawn(Keeper(store, clock, audit_keep=lambda: 60.0, duties=duties))
        await trio.sleep(1.1 * PRUNE_EVERY)
        assert len(await store.records("audit")) == 1
        duties.has_rest = True
        await trio.sleep(PRUNE_EVERY)
        assert await store.records("audit") == ()


async def test_calls_are_kept_for_as_long_as_a_budget_may_go_by_them(
    autojump_clock: Clock,
) -> None:
    store = MemoryStore()
    await note_many(store, "call", 1, EPOCH + PRUNE_EVERY - KEEP_CALLS)
    await note_many(store, "usage", 1, 0.0)
    async with virtual(autojump_clock) as system:
        system.spawn(Keeper(store, SureClock(TrioClock())))
        await trio.sleep(0.9 * PRUNE_EVERY)
        assert len(await store.records("call")) == 1
        await trio.sleep(1.2 * PRUNE_EVERY)
        assert await store.records("call") == ()
        assert len(await store.records("usage")) == 1


async def test_audit_records_are_kept_for_ever_unless_asked(
    autojump_clock: Clock,
) -> None:
    store = MemoryStore()
    await note_many(store, "audit", 1, 0.0)
    async with virtual(autojump_clock) as system:
        system.spawn(Keeper(store, SureClock(TrioClock())))
        await trio.sleep(1.1 * PRUNE_EVERY)
        assert len(await store.records("audit")) == 1


async def test_what_another_program_changed_is_looked_for(
    autojump_clock: Clock,
) -> None:
    store = MemoryStore()
    async with virtual(autojump_clock) as system:
        router = probe(system, names.ROUTER)
        cli, web = (probe(system, names.connector(name)) for name in ("cli", "web"))
        system.spawn(
            Keeper(store, SureClock(TrioClock()), connectors=("cli", "web", "gone"))
        )
        await trio.sleep(1.5 * LOOK_EVERY)
        assert router.received == []
        store.changed_outside = True
        await trio.sleep(2 * LOOK_EVERY)
        assert router.received == [RouteUnanswered(), RouteArrived()]
        assert cli.received == web.received == [DrainOutbox()]


async def test_a_sick_store_is_not_asked_for_changes(autojump_clock: Clock) -> None:
    store = MemoryStore(fails_at=range(1, 10))
    try:
        await store.probe()
    except StoreUnavailableError:
        store.changed_outside = True
    async with virtual(autojump_clock) as system:
        router = probe(system, names.ROUTER)
        system.spawn(Keeper(store, SureClock(TrioClock())))
        await trio.sleep(3 * LOOK_EVERY)
        assert router.received == []
        await trio.sleep(10 * LOOK_EVERY)
        assert router.received == [RouteUnanswered(), RouteArrived()]


async def test_a_disk_is_tried_until_it_is_well(autojump_clock: Clock) -> None:
    store = MemoryStore(fails_at=range(1, 4))
    try:
        await store.probe()
    except StoreUnavailableError:
        assert not store.healthy
    async with virtual(autojump_clock) as system:
        system.spawn(Keeper(store, SureClock(TrioClock())))
        await trio.sleep(1.5 * LOOK_EVERY)
        assert not store.healthy
        await trio.sleep(LOOK_EVERY)
        assert store.healthy


async def test_a_disk_that_stays_full_is_told_at_the_change_and_then_rarely(
    autojump_clock: Clock, caplog: pytest.LogCaptureFixture
) -> None:
    store = MemoryStore(fails_at=range(1, TOLD_EVERY + 10))
    with contextlib.suppress(StoreUnavailableError):
        await store.probe()
    caplog.set_level(logging.INFO)
    async with virtual(autojump_clock) as system:
        system.spawn(Keeper(store, SureClock(TrioClock())))
        await trio.sleep((TOLD_EVERY + 20) * LOOK_EVERY)
        assert store.healthy
    said = [each for each in caplog.records if "the store is" in each.getMessage()]
    assert [each.levelname for each in said] == ["WARNING", "WARNING", "INFO"]
    assert [getattr(each, FIELDS)["probes"] for each in said] == [
        1,
        TOLD_EVERY + 1,
        TOLD_EVERY + 9,
    ]


async def test_a_store_that_cannot_forget_is_no_end(autojump_clock: Clock) -> None:
    store = MemoryStore()
    async with virtual(autojump_clock) as system:
        keeper = system.spawn(Keeper(store, SureClock(TrioClock())))
        await store.aclose()
        await trio.sleep(1.1 * PRUNE_EVERY)
        assert keeper.is_alive()


async def test_a_stranger_s_message_is_its_sender_s_mistake(
    autojump_clock: Clock,
) -> None:
    async with virtual(autojump_clock) as system:
        keeper = system.spawn(Keeper(MemoryStore(), SureClock(TrioClock())))
        keeper.tell("nonsense")
        await trio.testing.wait_all_tasks_blocked()
        assert not keeper.is_alive()
