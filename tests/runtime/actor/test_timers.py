"""Proves that timers fire once, in order, not early, and leave nothing behind."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from math import nan
from typing import Any

import pytest
import trio
import trio.testing
from hypothesis import given, strategies as st
from trio.testing import MockClock

from runtime.actor.actor import Actor
from runtime.actor.dispatcher import MESSAGES_PER_TURN, Turn
from runtime.actor.mailbox import MailboxConfig
from runtime.actor.ref import cell_of
from runtime.actor.timers import SWEEP_ABOVE, Timer, Timers
from runtime.errors import MisuseError
from runtime.testing import CrashError, wait_settled
from tests.support.puppet import Puppet, do, supervise, virtual, wait


@given(
    delays=st.lists(st.integers(0, 50), max_size=30),
    cancelled=st.sets(st.integers(0, 29)),
)
def test_timers_fire_in_order_and_never_when_cancelled(
    delays: list[int], cancelled: set[int]
) -> None:
    fired: list[tuple[float, int]] = []

    def note(number: int) -> None:
        fired.append((trio.current_time(), number))

    async def main() -> None:
        timers = Timers(Turn().spend)
        made = [
            timers.call_in(delay, partial(note, n)) for n, delay in enumerate(delays)
        ]
        start = trio.current_time()
        kept = [n for n in range(len(delays)) if n not in cancelled]
        for number in cancelled:
            if number < len(made):
                assert made[number].cancel()
                assert not made[number].cancel()
        assert len(timers) == len(kept)
        with trio.move_on_after(100):
            await timers.run()
        expected = sorted((start + delays[n], n) for n in kept)
        assert fired == expected
        assert len(timers) == 0
        assert not any(timer.is_active for timer in made)

    trio.run(main, clock=trio.testing.MockClock(autojump_threshold=0))


async def test_a_timer_fires_at_its_very_second(autojump_clock: MockClock) -> None:
    timers = Timers(Turn().spend)
    fired: list[float] = []
    timers.call_in(2, lambda: fired.append(autojump_clock.current_time()))
    timers._fire_due()
    assert fired == []
    autojump_clock.jump(2)
    timers._fire_due()  # `run` would wait for ever for a timer that does not
    assert fired == [2]


async def test_cancelled_timers_are_swept(autojump_clock: MockClock) -> None:
    assert autojump_clock.current_time() == 0
    timers = Timers(Turn().spend)
    for _ in range(SWEEP_ABOVE * 20):
        timers.call_in(30, print).cancel()
    assert len(timers) == 0
    assert len(timers._heap) <= SWEEP_ABOVE * 2


async def test_a_timer_that_sets_itself_again_lets_others_run(
    autojump_clock: MockClock,
) -> None:
    timers = Timers(Turn().spend)
    count = [0]

    def again() -> None:
        count[0] += 1
        if count[0] < 100:
            timers.call_in(0, again)

    timers.call_in(0, again)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(timers.run)
        await trio.lowlevel.checkpoint()
        assert count[0] < 100
        await trio.sleep(1)
        timers.call_in(1, partial(count.append, 7))  # wakes an idle heap
        await trio.sleep(2)
        nursery.cancel_scope.cancel()
    assert count == [100, 7]
    assert autojump_clock.current_time() == 3


async def test_timers_due_in_one_instant_let_others_run(
    autojump_clock: MockClock,
) -> None:
    async with virtual(autojump_clock) as system:
        fired: list[int] = []
        for number in range(5 * MESSAGES_PER_TURN):
            system.kernel.timers.call_in(1, partial(fired.append, number))
        await trio.sleep(1)
        most = len(fired)
        while len(fired) < 5 * MESSAGES_PER_TURN:
            before = len(fired)
            await trio.lowlevel.checkpoint()
            most = max(most, len(fired) - before)
        assert most <= 2 * MESSAGES_PER_TURN  # the round before and this one
        assert fired == sorted(fired)
        assert trio.current_time() == 1


async def test_a_sooner_timer_is_not_late(autojump_clock: MockClock) -> None:
    async with virtual(autojump_clock) as system:
        log: list[float] = []
        timers = system.kernel.timers
        timers.call_in(10, lambda: log.append(trio.current_time()))
        await trio.sleep(1)
        timers.call_in(1, lambda: log.append(trio.current_time()))
        await trio.sleep(20)
        assert log == [pytest.approx(2), pytest.approx(10)]


async def test_another_thread_leaves_a_timer_alone() -> None:
    timer = Timers(Turn().spend).call_in(30, print)
    assert not await trio.to_thread.run_sync(timer.cancel)
    assert timer.is_active
    assert timer.cancel()
    assert not timer.is_active


@pytest.mark.parametrize("delay", [-1, nan])
async def test_delays_that_mean_nothing_are_refused(
    delay: float, autojump_clock: MockClock
) -> None:
    async with virtual(autojump_clock) as system:
        ref = system.spawn(Puppet())
        with pytest.raises(MisuseError, match="0 seconds or more"):
            await ref.ask(do(lambda me: me.after(delay, "x")))
        with pytest.raises(MisuseError, match="above 0"):
            await ref.ask(do(lambda me: me.every(delay, "x")))
        with pytest.raises(MisuseError, match="nan"):
            system.kernel.timers.call_in(nan, print)


async def test_a_cancelled_timer_leaves_its_actor(autojump_clock: MockClock) -> None:
    async with virtual(autojump_clock) as system:
        puppet = Puppet()
        ref = system.spawn(puppet)
        timer: Timer = await ref.ask(do(lambda me: me.after(5, "never")))
        kept: Timer = await ref.ask(do(lambda me: me.after(6, "six")))
        stop: Any = await ref.ask(do(lambda me: me.every(4, "tick")))
        assert puppet._cell.timers is not None
        assert timer.cancel()
        assert len(puppet._cell.timers) == 2
        await trio.sleep(7)
        assert stop()
        assert not stop()
        assert not kept.cancel()
        assert puppet._cell.timers is None
        assert puppet.log == ["start", "tick", "six"]


async def test_a_tick_of_an_ended_incarnation_is_not_heard(
    autojump_clock: MockClock,
) -> None:
    async with virtual(autojump_clock) as system:
        log: list[Any] = []
        (ref,) = await supervise(system, partial(Puppet, log))
        await ref.ask(do(lambda me: me.every(1, "tick")))
        ref.tell(wait(3.5))
        await trio.sleep(2.5)
        ref.kill()  # while a tick waits
        ref.tell("next")
        await trio.sleep(5)
        assert log == ["start", "start", "next"]


async def test_an_answered_ask_leaves_no_timer(autojump_clock: MockClock) -> None:
    async with virtual(autojump_clock) as system:
        ref = system.spawn(Puppet())
        await ref.ask("one")
        assert system.statistics().timers == 0
        deferred = ref.ask(do(lambda me: me.log.append(me.defer_reply())))
        puppet = system.kernel.names[ref.name].actor
        assert isinstance(puppet, Puppet)
        await wait_settled(system)
        puppet.log[-1].set("later")
        assert await deferred == "later"
        assert system.statistics().timers == 0


async def ticks(clock: MockClock, late: dict[int, float], until: float) -> list[float]:
    """Have a tick each second; give when, if the loop is late at some of them."""
    told: list[float] = []
    async with virtual(clock) as system:
        for second, lateness in late.items():
            system.kernel.timers.call_in(second, partial(clock.jump, lateness))
        ref = system.spawn(Puppet())
        tick = do(lambda _me: told.append(round(trio.current_time(), 2)))
        await ref.ask(do(lambda me: me.every(1.0, tick)))
        await trio.sleep_until(until)
    return told


async def test_a_late_loop_does_not_shift_later_ticks(
    autojump_clock: MockClock,
) -> None:
    late = dict.fromkeys(range(1, 6), 0.15)
    told = await ticks(autojump_clock, late, 7.5)
    assert told == [1.15, 2.15, 3.15, 4.15, 5.15, 6.0, 7.0]


async def test_ticks_that_were_missed_are_not_made_up_for(
    autojump_clock: MockClock,
) -> None:
    told = await ticks(autojump_clock, {2: 100.3}, 105.5)
    assert told == [1.0, 102.3, 103.0, 104.0, 105.0]


async def test_a_tick_that_is_set_aside_is_not_told_again(
    autojump_clock: MockClock,
) -> None:
    async with virtual(autojump_clock) as system:
        puppet = Puppet()
        ref = system.spawn(puppet)
        tick = do(
            lambda me: me.log.append("tick") if me.log.count("go") else me.stash()
        )
        await ref.ask(do(lambda me: me.every(1.0, tick)))
        await trio.sleep(5.5)
        assert ref.actor_inbox.stashed == 1
        ref.tell("go")
        ref.tell(Puppet.unstash)
        await wait_settled(system)
        assert puppet.log == ["start", "go", "tick"]
        await trio.sleep(1)
        assert puppet.log == ["start", "go", "tick", "tick"]


async def test_a_tick_that_was_set_aside_and_failed_is_followed_by_others(
    autojump_clock: MockClock,
) -> None:
    seen: list[float] = []

    class Clumsy(Puppet):
        def on_start(self) -> None:
            if not seen:
                self.every(1, "tick", survives_restart=True)

        def on_receive(self, message: Any) -> None:
            del message
            seen.append(trio.current_time())
            if len(seen) == 1:
                self.stash()
                raise CrashError("to order")

    async with virtual(autojump_clock) as system:
        await supervise(system, Clumsy)
        await trio.sleep(5.5)
        assert seen == [1, 2, 3, 4, 5]


async def test_a_tick_that_was_dropped_is_followed_by_others(
    autojump_clock: MockClock,
) -> None:
    class Narrow(Puppet):
        mailbox = MailboxConfig(capacity=1, overflow="drop_oldest")

        def on_start(self) -> None:
            self.every(1, "tick")

        def on_receive(self, message: Any) -> Any:
            if message == "tick" and "set aside" not in self.log:
                self.log.append("set aside")
                self.stash()
                return None
            return super().on_receive(message)

    def push_out(me: Puppet) -> None:
        me.unstash()
        me.tell(me.actor_ref, "in its place")

    puppet = Narrow()
    async with virtual(autojump_clock) as system:
        ref = system.spawn(puppet)
        await trio.sleep(1.5)
        cell_of(ref).post_system(push_out)
        await trio.sleep(4)
        assert puppet.log == ["set aside", "in its place", *["tick"] * 4]
        assert system.dead_letters.counts == {"dropped_oldest": 1}


async def test_a_period_too_short_to_count_goes_on_all_the_same(
    autojump_clock: MockClock,
) -> None:
    async with virtual(autojump_clock) as system:
        puppet = Puppet()
        ref = system.spawn(puppet)

        def begin(me: Actor) -> None:
            cancel.append(me.every(5e-324, "tick"))

        cancel: list[Callable[[], bool]] = []
        ref.tell(begin)
        await trio.testing.wait_all_tasks_blocked()
        for _ in range(3):
            autojump_clock.jump(1)
            for _ in range(10):
                await trio.lowlevel.checkpoint()
        assert puppet.log.count("tick") >= 3
        assert cancel[0]()
