"""Proves that each slot is carried out once, or skipped with a reason."""

from __future__ import annotations

from contextlib import asynccontextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import msgspec
import pytest
import trio
import trio.testing

from actors import names
from actors.messages import Address, Inbound
from actors.protocol import CloseDoor, Deliver, Route
from actors.rules.schedule import Appointment, slot_name
from actors.schedule_config import SchedulerConfig
from actors.schedule_rows import KIND, as_entry, read
from actors.scheduler import LOOK_EVERY, Scheduler
from actors.scheduling import LookAgain, Scheduled
from actors.slot_records import SLOT, SlotRecord
from connectors.model_checks import find_zone
from runtime.memory_store import MemoryStore
from runtime.metrics import Metrics
from runtime.rows import Commit, Settle
from tests.fakes.company import EPOCH
from tests.fakes.neighbours import make_services, of_kind, probe
from tests.puppet import virtual

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from runtime.ref import ActorRef
    from runtime.rows import SettledState
    from runtime.testing import Probe

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
        return replace(
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

    def counted(self, kind: str, outcome: str) -> bool:
        text = self.metrics.render().decode()
        line = f'callboard_appointments_due_total{{kind="{kind}",outcome="{outcome}"}}'
        return any(each.startswith(line) for each in text.splitlines())


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


async def test_it_tells_the_router_at_the_second(autojump_clock: Clock) -> None:
    due = EPOCH + 1000
    async with open_bench(autojump_clock, a={"next_due": due}) as bench:
        await trio.sleep(999.9)
        assert bench.slots() == []
        await trio.sleep(0.2)
        assert bench.slots() == [f"a@{due:.0f}"]
        assert bench.accepted() == bench.slots()
        assert bench.counted("task", "fired")
        assert await bench.it("a") is None


async def test_a_week_of_many_comes_to_each_slot_once(autojump_clock: Clock) -> None:
    rows = {f"e{n}": every(3600 + 60 * n) for n in range(50)}
    async with open_bench(autojump_clock, None, **rows) as bench:
        for _ in range(7 * 24 * 4):
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
            EPOCH + k * period for k in range(1, int(7 * DAY // period) + 1)
        ]


async def test_what_is_not_done_yet_is_not_begun_again(autojump_clock: Clock) -> None:
    async with open_bench(autojump_clock, a=every(600)) as bench:
        await trio.sleep(1900)
        assert bench.slots() == [f"a@{EPOCH + 600:.0f}"]
        assert bench.counted("task", "busy")
        await bench.settle_all()
        await trio.sleep(600)
        assert bench.slots()[1:] == [f"a@{EPOCH + 2400:.0f}"]


async def test_of_each_slot_it_is_kept_what_became_of_it(autojump_clock: Clock) -> None:
    async with open_bench(autojump_clock, a=every(600)) as bench:
        await trio.sleep(1300)
        (begun,) = [each.id for each in bench.heard()]
        fired, skipped = (await bench.store.records(SLOT, "a"))[::-1]
    body = msgspec.json.decode(fired.body, type=SlotRecord)
    assert (fired.id, body.outcome, body.due, body.message) == (
        f"a@{EPOCH + 600:.0f}",
        "fired",
        EPOCH + 600,
        begun,
    )
    body = msgspec.json.decode(skipped.body, type=SlotRecord)
    assert (body.outcome, body.reason, body.due, body.message) == (
        "skipped",
        "busy",
        EPOCH + 1200,
        "",
    )


async def test_what_always_fails_is_paused_and_its_chat_is_told(
    autojump_clock: Clock,
) -> None:
    async with open_bench(autojump_clock, a=every(600)) as bench:
        for _ in range(10):
            await trio.sleep(600)
            await bench.settle_all("dead")
        it = await bench.it("a")
        (told,) = of_kind(bench.connector, Deliver)
    assert len(bench.slots()) == 3
    assert it is not None
    assert (it.paused, it.failures) == ("failures", 3)
    assert told.delivery.address == Address("fake", "room")
    assert "failed 3 times" in told.delivery.text
    assert "schedule resume a" in told.delivery.text


@pytest.mark.parametrize("reason", ["model", "timeout", "context", "untrusted"])
async def test_what_people_were_told_an_excuse_for_has_failed(
    reason: str, autojump_clock: Clock
) -> None:
    async with open_bench(autojump_clock, a=every(600)) as bench:
        for _ in range(5):
            await trio.sleep(600)
            await bench.settle_all("replied", reason)
        it = await bench.it("a")
    assert it is not None
    assert (it.paused, it.fired) == ("failures", 3)


async def test_a_used_up_budget_is_no_failure_and_no_success(
    autojump_clock: Clock,
) -> None:
    async with open_bench(autojump_clock, a=every(600)) as bench:
        for reason in ("model", "model", "budget", "budget", "silent"):
            await trio.sleep(601)
            await bench.settle_all("replied", reason)
            it = await bench.it("a")
            assert it is not None
            assert not it.paused
        it = await bench.it("a")
        assert it is not None
        assert it.failures == 2
        await trio.sleep(600)
        it = await bench.it("a")
    assert it is not None
    assert (it.failures, it.fired) == (0, 6)


async def test_one_success_makes_good_for_failures(autojump_clock: Clock) -> None:
    async with open_bench(autojump_clock, a=every(600)) as bench:
        states: tuple[SettledState, ...] = ("dead", "dead", "replied", "dead", "dead")
        await trio.sleep(1)
        for state in states:
            await trio.sleep(600)
            await bench.settle_all(state)
        await trio.sleep(600)
        it = await bench.it("a")
    assert it is not None
    assert (it.paused, it.fired) == ("", 6)


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
        bench.scheduler.tell(Scheduled(("a",)))
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
        bench.scheduler.tell(LookAgain())
        await trio.sleep(1000)
        assert bench.slots() == [f"b@{EPOCH + 900:.0f}"]


async def test_run_by_hand_it_runs_beside_its_times_also_paused(
    autojump_clock: Clock,
) -> None:
    async with open_bench(autojump_clock, a=every(600)) as bench:
        await bench.put("a", **every(600, paused="by hand", run_at=EPOCH + 5))
        bench.scheduler.tell(Scheduled(("a",)))
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
        bench.scheduler.tell(Scheduled(("a",)))
        with trio.fail_after(1):
            await trio.sleep(0.5)
        it = await bench.it("a")
        assert bench.slots() == [f"a@{at:.0f}"]
    assert it is not None
    assert (it.fired, it.run_at, it.next_due) == (1, 0.0, EPOCH + 1200)


async def test_a_slot_that_comes_again_counts_once_and_fails_once(
    autojump_clock: Clock,
) -> None:
    async with open_bench(autojump_clock, a=every(600)) as bench:
        for _ in range(2):
            await trio.sleep(601)
            await bench.settle_all("dead")
        for _ in range(3):
            bench.clock.wrong_by -= 610
            await trio.sleep(LOOK_EVERY + 560)
        it = await bench.it("a")
        slots = bench.slots()
    assert slots == [f"a@{EPOCH + 600 * n:.0f}" for n in (1, 2)]
    assert it is not None
    assert (it.fired, it.failures, it.paused) == (2, 2, "")
    assert it.skipped == 3


async def test_with_the_door_closed_nothing_is_begun(autojump_clock: Clock) -> None:
    async with open_bench(autojump_clock, a={"next_due": EPOCH + 60}) as bench:
        bench.scheduler.tell(CloseDoor())
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
        bench.scheduler.tell(LookAgain())
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
