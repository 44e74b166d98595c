"""Proves that the scheduler knows how each slot has ended, and what follows."""

from __future__ import annotations

import msgspec
import pytest
import trio
import trio.testing

from actors.messages.inbound import Address
from actors.protocol import Deliver
from actors.schedule.rows import SLOT, SlotRecord
from actors.schedule.scheduler import LOOK_EVERY
from runtime.store.rows import SettledState
from tests.fakes.actors.neighbours import of_kind
from tests.fakes.company.company import EPOCH
from tests.support.schedule_bed import every, open_bench

Clock = trio.testing.MockClock


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
