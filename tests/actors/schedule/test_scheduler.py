"""Proves that each slot is carried out once, or skipped with a reason."""

from __future__ import annotations

import msgspec
import pytest
import trio
import trio.testing

from actors.messages.inbound import Address
from actors.protocol import StopAccepting
from actors.schedule.appointments import slot_name
from actors.schedule.messages import AppointmentsChanged, AppointmentsStored
from actors.schedule.rows import KIND, as_entry
from actors.schedule.scheduler import LOOK_EVERY
from runtime.store.rows import Commit
from tests.fakes.company.company import EPOCH
from tests.fakes.store.in_memory import MemoryStore
from tests.support.schedule_bed import DAY, every, open_bench
from tests.support.tiers import examples

Clock = trio.testing.MockClock


async def test_it_tells_the_router_at_the_second(autojump_clock: Clock) -> None:
    due = EPOCH + 1000
    async with open_bench(autojump_clock, a={"next_due": due}) as bench:
        await trio.sleep(999.9)
        assert bench.slots() == []
        assert bench.kept() == 1
        await trio.sleep(0.2)
        assert bench.slots() == [f"a@{due:.0f}"]
        assert bench.accepted() == bench.slots()
        assert bench.counted("task", "fired") == 1
        assert bench.kept() == 0
        assert await bench.it("a") is None


@pytest.mark.property
async def test_days_of_many_come_to_each_slot_once(autojump_clock: Clock) -> None:
    days = examples(2, deep=7)
    rows = {f"e{n}": every(3600 + 60 * n) for n in range(50)}
    async with open_bench(autojump_clock, None, **rows) as bench:
        for _ in range(days * 24 * 4):
            await trio.sleep(900)
            await bench.settle_all()
        await trio.sleep(1)
        slots = bench.slots()
    assert len(set(slots)) == len(slots)
    for n in range(50):
        mine = [
            float(slot[len(f"e{n}@") :]) for slot in slots if slot.startswith(f"e{n}@")
        ]
        period = 3600 + 60 * n
        assert mine == [
            EPOCH + k * period for k in range(1, int(days * DAY // period) + 1)
        ]


async def test_killed_before_the_router_hears_it_the_slot_is_stored_once(
    autojump_clock: Clock,
) -> None:
    store = MemoryStore()
    async with open_bench(autojump_clock, store, a=every(600)) as bench:
        await trio.sleep(601)
        (row,) = await bench.store.unsettled()
        assert row.platform_id == f"a@{EPOCH + 600:.0f}"
    # The router's own look at the start finds it; the scheduler begins nothing anew.
    async with open_bench(autojump_clock, store.reopened()) as bench:
        await trio.sleep(300)
        assert bench.slots() == []
        await bench.settle_all()
        await trio.sleep(500)
        assert bench.slots() == [f"a@{EPOCH + 1200:.0f}"]


async def test_two_who_start_at_the_boundary_carry_a_slot_out_once(
    autojump_clock: Clock,
) -> None:
    store = MemoryStore()
    async with (
        open_bench(autojump_clock, store, a=every(600)) as one,
        open_bench(autojump_clock, store) as other,
    ):
        await trio.sleep(1)
        for _ in range(5):
            await trio.sleep(600)
            await one.settle_all()
        slots = one.slots() + other.slots()
    assert sorted(slots) == [f"a@{EPOCH + 600 * n:.0f}" for n in range(1, 6)]
    assert sorted(slots) == sorted(one.accepted())


async def test_written_back_by_an_answer_a_slot_is_not_carried_out_again(
    autojump_clock: Clock,
) -> None:
    async with open_bench(autojump_clock, a=every(600)) as bench:
        await trio.sleep(601)
        await bench.settle_all()
        # As if it was read before, and stored after, the slot was carried out.
        await bench.put("a", **every(600, text="changed"))
        bench.scheduler.tell(AppointmentsStored(("a",)))
        await trio.sleep(10)
        assert bench.slots() == [f"a@{EPOCH + 600:.0f}"]
        assert bench.counted("task", "again")
        await trio.sleep(600)
        assert len(bench.slots()) == 2


async def test_a_month_ahead_and_back_nothing_comes_twice_or_falls_silent(
    autojump_clock: Clock,
) -> None:
    async with open_bench(autojump_clock, a=every(3600)) as bench:
        await trio.sleep(3601)
        await bench.settle_all()
        bench.clock.wrong_by = 30 * DAY
        await trio.sleep(LOOK_EVERY + 1)
        await bench.settle_all()
        assert len(bench.slots()) == 2, "the last one that was missed"
        bench.clock.wrong_by = 0.0
        for _ in range(30):
            await trio.sleep(3600)
            await bench.settle_all()
        slots = bench.slots()
    assert len(slots) == len(set(slots)) == 32


async def test_a_clock_set_back_while_it_stood_silences_nobody(
    autojump_clock: Clock,
) -> None:
    store = MemoryStore()
    async with open_bench(autojump_clock, store) as bench:
        bench.clock.wrong_by = 30 * DAY
        await bench.put("a", **every(3600, next_due=EPOCH + 30 * DAY))
    async with open_bench(autojump_clock, store) as bench:
        await trio.sleep(3700)
        assert len(bench.slots()) == 1


async def test_a_disk_that_fails_for_a_while_loses_no_slot(
    autojump_clock: Clock,
) -> None:
    store = MemoryStore(fails_at=(2, 3, 4))
    async with open_bench(autojump_clock, store, a={"next_due": EPOCH + 60}) as bench:
        await trio.sleep(61)
        assert bench.slots() == []
        await trio.sleep(30)
        assert bench.slots() == [f"a@{EPOCH + 60:.0f}"]


async def test_what_another_program_wrote_counts(autojump_clock: Clock) -> None:
    async with open_bench(autojump_clock, a=every(600)) as bench:
        await bench.put("a", **every(600, paused="by hand"))
        await bench.put("b", next_due=EPOCH + 900)
        bench.scheduler.tell(AppointmentsChanged())
        await trio.sleep(1000)
        assert bench.slots() == [f"b@{EPOCH + 900:.0f}"]


async def test_run_by_hand_it_runs_beside_its_times_also_paused(
    autojump_clock: Clock,
) -> None:
    async with open_bench(autojump_clock, a=every(600)) as bench:
        await bench.put("a", **every(600, paused="by hand", run_at=EPOCH + 5))
        bench.scheduler.tell(AppointmentsStored(("a",)))
        await trio.sleep(3600)
        it = await bench.it("a")
    assert bench.slots() == [f"a@{EPOCH + 5:.0f}"]
    assert it is not None
    assert (it.run_at, it.paused, it.next_due) == (0.0, "by hand", EPOCH + 600)


async def test_run_by_hand_at_the_very_second_of_a_slot_it_runs_once(
    autojump_clock: Clock,
) -> None:
    store = MemoryStore()
    at = EPOCH + 600
    async with open_bench(autojump_clock, store) as bench:
        await trio.sleep(700)
        await bench.put("a", **every(600, next_due=at, run_at=at))
        bench.scheduler.tell(AppointmentsStored(("a",)))
        with trio.fail_after(1):
            await trio.sleep(0.5)
        it = await bench.it("a")
        assert bench.slots() == [f"a@{at:.0f}"]
    assert it is not None
    assert (it.fired, it.run_at, it.next_due) == (1, 0.0, EPOCH + 1200)


async def test_with_the_door_closed_nothing_is_begun(autojump_clock: Clock) -> None:
    async with open_bench(autojump_clock, a={"next_due": EPOCH + 60}) as bench:
        bench.scheduler.tell(StopAccepting())
        await trio.sleep(200)
        assert bench.slots() == []
        assert await bench.it("a") is not None


async def test_what_belongs_to_others_or_cannot_be_read_is_left_alone(
    autojump_clock: Clock,
) -> None:
    elsewhere = {"address": Address("gone", "room"), "next_due": EPOCH + 60}
    store = MemoryStore()
    async with open_bench(autojump_clock, store, a=elsewhere) as bench:
        entry = msgspec.structs.replace(as_entry("b", "", None, 7, None), body=b"{")
        await store.commit(Commit(at=EPOCH, entries=(entry,)))
        bench.scheduler.tell(AppointmentsChanged())
        await trio.sleep(600)
        assert bench.slots() == []
    assert len(await store.entries(KIND)) == 2


@pytest.mark.parametrize("repeat", ["beat 0", "beat x", "a b c d e"])
async def test_a_rule_that_cannot_be_reckoned_keeps_no_other_from_its_time(
    repeat: str, autojump_clock: Clock
) -> None:
    broken = {"repeat": repeat, "next_due": EPOCH + 60}
    async with open_bench(autojump_clock, None, a=broken, b=every(90)) as bench:
        await trio.sleep(100)
        assert bench.slots() == [slot_name("b", EPOCH + 90)]
        bench.clock.wrong_by = -30 * DAY
        await trio.sleep(100)
        assert await bench.it("a") is not None


async def test_an_idle_scheduler_writes_nothing(autojump_clock: Clock) -> None:
    rows = {f"e{n}": {"next_due": EPOCH + 30 * DAY} for n in range(100)}
    async with open_bench(autojump_clock, None, **rows) as bench:
        await trio.sleep(10)
        before = bench.store._rows.entries.copy()
        await trio.sleep(DAY)
        assert bench.store._rows.entries == before
        assert bench.accepted() == []
