"""Proves that the test kit waits, counts and crashes as it says."""

from __future__ import annotations

from typing import Any

import pytest
import trio
from trio.testing import MockClock

from runtime.testing import (
    CrashError,
    Probe,
    Reports,
    crash_on,
    seeded_order,
    wait_settled,
)
from tests.support.puppet import Puppet, hang, supervise, virtual
from tests.typing import stranger_actor


async def test_a_probe_waits_for_a_number_of_messages(
    autojump_clock: MockClock,
) -> None:
    async with virtual(autojump_clock) as system:
        probe = Probe()
        ref = system.spawn(probe)
        system.kernel.timers.call_in(1, lambda: ref.tell("one"))
        assert await probe.wait_count(1) == ["one"]
        assert await ref.ask("two") is None
        with pytest.raises(AssertionError, match="2 of 3 messages came"):
            await probe.wait_count(3)


async def test_a_probe_waits_for_a_kind_of_message(autojump_clock: MockClock) -> None:
    async with virtual(autojump_clock) as system:
        probe = Probe()
        ref = system.spawn(probe)
        ref.tell("text")
        system.kernel.timers.call_in(1, lambda: ref.tell(7))
        assert await probe.wait_for(int) == 7
        with pytest.raises(AssertionError, match="no float came"):
            await probe.wait_for(float)


async def test_crashes_come_to_order(autojump_clock: MockClock) -> None:
    async with virtual(autojump_clock) as system:
        crashing: Any = crash_on(Puppet, 2)
        assert crashing.__name__ == "CrashOnPuppet"
        log: list[Any] = []
        (ref,) = await supervise(system, lambda: crashing(log))
        for word in ("one", "two", "three"):
            ref.tell(word)
        await wait_settled(system)
        assert log == ["start", "one", "failure", "start", "two", "three"]
        with pytest.raises(CrashError, match="to order"):
            await system.spawn(crash_on(Probe, 1)()).ask("now")


async def test_settling_waits_for_handlers_and_gives_up_in_time(
    autojump_clock: MockClock,
) -> None:
    async with virtual(autojump_clock) as system:
        ref = system.spawn(Puppet(), name="busy")
        ref.tell(hang)
        with pytest.raises(AssertionError, match="still busy after 5 s: busy"):
            await wait_settled(system, within=5)
        ref.interrupt()
        await wait_settled(system)


async def test_reports_are_found_by_event(autojump_clock: MockClock) -> None:
    reports = Reports()
    async with virtual(autojump_clock, reports) as system:
        system.kernel.report("event", {"actor": "anna"})
        system.kernel.report("other", {})
    assert reports.of("event") == [{"actor": "anna"}]


def test_a_seed_fixes_the_order_of_tasks() -> None:
    def run() -> list[int]:
        order: list[int] = []

        async def note(number: int) -> None:
            order.append(number)

        async def main() -> None:
            async with trio.open_nursery() as nursery:
                for number in range(50):
                    nursery.start_soon(note, number)

        with seeded_order(7):
            trio.run(main)
        return order

    assert run() == run()


async def test_a_strangers_actor_works() -> None:
    assert await stranger_actor.main() == 3 + 10 + 6
