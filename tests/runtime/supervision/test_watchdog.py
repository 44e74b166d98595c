"""Proves that a blocked loop is seen, named, and broken off where that is safe."""

from __future__ import annotations

import signal
import sys
import threading
import traceback
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from functools import partial
from operator import methodcaller
from pathlib import Path
from typing import Any, ClassVar

import pytest
import trio
from hypothesis import given, strategies as st

from runtime import clock
from runtime.actor.actor import Actor
from runtime.actor.kernel import Kernel
from runtime.clock import SystemClock, ThreadTime, had_processor, thread_time
from runtime.errors import DeadlineError
from runtime.supervision import watchdog
from runtime.supervision.watchdog import Watchdog, WatchdogConfig, look, sights
from runtime.system import ActorSystem, SystemConfig, open_system
from runtime.testing import Reports
from tests.support import puppet
from tests.support.puppet import Puppet, do

QUICK = WatchdogConfig(period=0.01, limit=0.03)


LONGEST = 60.0
"""Seconds after which a test gives up; no test that passes takes them."""


def never() -> bool:
    return False


def spin(is_enough: Callable[[], bool] = never) -> None:
    """Give nothing back until it is enough, however slow the machine is."""
    now = SystemClock().monotonic
    until = now() + LONGEST
    while now() < until and not is_enough():
        pass


@asynccontextmanager
async def watched(
    reports: Reports, config: WatchdogConfig = QUICK
) -> AsyncGenerator[ActorSystem]:
    before = signal.getsignal(signal.SIGUSR2)
    async with open_system(SystemConfig(watchdog=config), report=reports) as system:
        yield system
    assert signal.getsignal(signal.SIGUSR2) is before
    assert all(thread.name != "watchdog" for thread in threading.enumerate())


def actions(system: ActorSystem) -> set[tuple[str, str]]:
    return set(system.statistics().watchdog)


def was_seen_twice(system: ActorSystem, kind: str) -> bool:
    """Whether all that is done after the first look at a class has been done."""
    return system.kernel.watchdog[kind, "loop_blocked"] >= 2


def actions_on(system: ActorSystem, actor: str) -> set[str]:
    """What was done to one class: a busy machine may stop the loop itself as well."""
    return {action for name, action in actions(system) if name == actor}


@pytest.mark.parametrize("kind", ["plain", "async"])
async def test_a_busy_handler_is_broken_off(kind: str) -> None:
    async def spin_async(_me: Actor) -> None:
        spin()

    reports = Reports()
    async with watched(reports) as system:
        ref = system.spawn(Puppet(), name="spinner")
        handler: Any = spin_async if kind == "async" else do(lambda _me: spin())
        with pytest.raises(DeadlineError, match="spinner blocked the loop"):
            await ref.ask(handler)
        assert not ref.is_alive()
        assert ("Puppet", "broken_off") in actions(system)
        assert system.statistics().loop_lag > 0
    told = [
        one for one in reports.of("the loop is blocked") if one["actor"] == "spinner"
    ]
    assert told
    assert told[0]["seconds"] >= 0.0


async def test_who_passes_on_without_end_is_broken_off_and_not_the_sender(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # A busy machine may stop the loop in the sender's own lines as well.
    fragile = (*watchdog.FRAGILE, puppet.__file__)
    monkeypatch.setattr(watchdog, "FRAGILE", fragile)

    class Doorway(Puppet):
        passes_on: ClassVar[bool] = True

        def pass_on(self, message: Any) -> bool:
            if message == "spin":
                spin()
            return False

    reports = Reports()
    async with watched(reports) as system:
        door = system.spawn(Doorway(), name="door")
        guest = system.spawn(Puppet(), name="guest")
        assert await guest.ask(methodcaller("tell", door, "spin"))
        assert not door.is_alive()
        assert guest.is_alive()
        assert ("Doorway", "broken_off") in actions(system)
    assert "door" in {one["actor"] for one in reports.of("the loop is blocked")}


async def test_a_handler_in_fragile_code_is_not_broken_off(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    fragile = (*watchdog.FRAGILE, __file__, puppet.__file__)
    monkeypatch.setattr(watchdog, "FRAGILE", fragile)
    monkeypatch.setattr(watchdog, "TRIES", 2)
    reports = Reports()
    async with watched(reports) as system:
        ref = system.spawn(Puppet())
        is_enough = partial(was_seen_twice, system, "Puppet")
        assert await ref.ask(do(lambda _me: spin(is_enough))) is None
        assert actions_on(system, "Puppet") == {"loop_blocked"}


async def test_only_a_handler_is_broken_off(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watchdog, "TRIES", 2)

    class Starter(Puppet):
        def on_start(self) -> None:
            spin(partial(was_seen_twice, system, "Starter"))

    reports = Reports()
    async with watched(reports) as system:
        assert system.spawn(Starter()).is_alive()
        spin(partial(was_seen_twice, system, "kernel"))  # no actor at all
        assert actions(system) == {
            ("Starter", "loop_blocked"),
            ("kernel", "loop_blocked"),
        }


async def test_breaking_off_can_be_forbidden() -> None:
    reports = Reports()
    config = WatchdogConfig(period=0.01, limit=0.03, break_off=False)
    async with watched(reports, config) as system:
        is_enough = partial(was_seen_twice, system, "Puppet")
        assert await system.spawn(Puppet()).ask(do(lambda _me: spin(is_enough))) is None
    assert reports.of("the loop is blocked")


async def test_off_the_main_thread_it_only_reports() -> None:
    reports = Reports()

    async def main() -> None:
        config = SystemConfig(watchdog=QUICK)
        async with open_system(config, report=reports) as system:
            act = do(lambda _me: spin(partial(was_seen_twice, system, "Puppet")))
            assert await system.spawn(Puppet()).ask(act) is None

    await trio.to_thread.run_sync(trio.run, main)
    assert reports.of("the loop is blocked")


@pytest.mark.parametrize("is_told", [True, False])
async def test_a_handler_that_has_no_processor_is_not_blamed(
    monkeypatch: pytest.MonkeyPatch, *, is_told: bool
) -> None:
    looks = 0

    def starved(native_id: int) -> ThreadTime:
        """Wait all the time; the machine tells afterwards, or not yet."""
        nonlocal looks
        looks += native_id == threading.main_thread().native_id
        # Ten times as long as it can be: its clock is not read at the same moment.
        waited = 10 * SystemClock().monotonic() if is_told else 0.0
        return ThreadTime(1.0, waited, is_ready=not is_told)

    monkeypatch.setattr(watchdog, "thread_time", starved)
    reports = Reports()
    config = WatchdogConfig(period=0.001, limit=0.004)
    async with watched(reports, config) as system:
        act = do(lambda _me: spin(lambda: looks >= 10 * watchdog.LOOKS))
        assert await system.spawn(Puppet()).ask(act) is None
        assert actions(system) == set()
    assert reports.all == []


TIMES = st.floats(0.0, 1e6)
SPENT = st.builds(ThreadTime, TIMES, TIMES, st.booleans())


@given(SPENT, SPENT, TIMES)
def test_only_time_that_a_thread_could_use_counts(
    before: ThreadTime, more: ThreadTime, seconds: float
) -> None:
    ran, waited = before.ran + more.ran, before.waited + more.waited
    after = ThreadTime(ran, waited, more.is_ready)
    assert 0.0 <= had_processor(before, after, seconds) <= seconds
    slept = ThreadTime(ran, before.waited, is_ready=False)
    assert had_processor(before, slept, seconds) == seconds
    waits = before._replace(is_ready=True)
    assert had_processor(before, waits, seconds) == 0.0
    assert had_processor(None, after, seconds) == seconds
    assert had_processor(before, None, seconds) == seconds


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells it")
def test_the_time_of_a_thread_is_that_of_the_machine() -> None:
    me = threading.get_native_id()
    before = thread_time(me)
    if before is None:
        pytest.skip("this kernel does not count it")
    assert before.is_ready
    ran = before.ran
    spin(lambda: (thread_time(me) or before).ran > ran)
    done = threading.Event()
    sleeper = threading.Thread(target=done.wait)
    sleeper.start()
    assert sleeper.native_id is not None
    asleep = sleeper.native_id
    spin(lambda: not (thread_time(asleep) or before).is_ready)
    first = thread_time(asleep)
    assert first is not None
    assert not first.is_ready
    done.set()
    sleeper.join()
    spin(lambda: thread_time(asleep) is None)
    assert thread_time(asleep) is None


@pytest.mark.parametrize(
    ("stat", "schedstat", "told"),
    [
        ("7 (a) S (b) R 1 2", "1500000000 500000000 3\n", (1.5, 0.5, True)),
        ("7 (R) S 1 2", "1500000000 500000000 3\n", (1.5, 0.5, False)),
        ("7 (a) R 1 2", "0 0 0\n", None),
        ("7 (a) R 1 2", "", None),
        ("7 (a) R 1 2", "not counted here", None),
        ("", "0 1000000000 1\n", (0.0, 1.0, False)),
    ],
)
def test_what_the_machine_tells_of_a_thread_is_read(
    stat: str,
    schedstat: str,
    told: tuple[float, float, bool] | None,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(clock, "THREADS", tmp_path)
    assert thread_time(7) is None
    folder = tmp_path / "7"
    folder.mkdir()
    (folder / "stat").write_text(stat)
    (folder / "schedstat").write_text(schedstat)
    assert thread_time(7) == told


async def test_an_idle_loop_is_not_reported() -> None:
    reports = Reports()
    config = WatchdogConfig(period=0.005, limit=LONGEST)
    async with watched(reports, config) as system:
        with trio.fail_after(LONGEST / 2):
            while not system.statistics().loop_lag:  # noqa: ASYNC110  a thread's
                await trio.sleep(0.005)
    assert reports.all == []


async def test_a_signal_that_comes_too_late_does_nothing() -> None:
    kernel = Kernel(1.0, Reports())
    dog = Watchdog(kernel, QUICK)
    dog._break_off(signal.SIGUSR2, sys._getframe())
    assert kernel.watchdog == {}


async def test_another_handler_than_the_seen_one_is_spared() -> None:
    kernel = Kernel(1.0, Reports())
    dog = Watchdog(kernel, QUICK)
    async with open_system() as system:
        seen: list[Any] = []

        def run(_me: Actor) -> None:
            frame = sys._getframe()
            seen.append(look(frame))
            dog._suspects = (seen[-1]._replace(handled=99),)
            dog._break_off(signal.SIGUSR2, frame)
            dog._suspects = (seen[-1],)
            with pytest.raises(DeadlineError):
                dog._break_off(signal.SIGUSR2, frame)

        ref = system.spawn(Puppet())
        await ref.ask(run)
        assert seen[0].name == ref.name
        assert seen[0].is_breakable
    assert look(None) is None


async def test_who_was_seen_while_another_passed_on_for_it_is_broken_off() -> None:
    dog = Watchdog(Kernel(1.0, Reports()), QUICK)

    class Doorway(Puppet):
        passes_on: ClassVar[bool] = True

        def pass_on(self, message: Any) -> bool:
            del message
            dog._suspects = tuple(sights(sys._getframe()))
            return True

    async with open_system() as system:
        system.spawn(Doorway(), name="door")

        def run(me: Actor) -> None:
            me.tell("door", "look")
            assert [each.name for each in dog._suspects] == ["door", "guest"]
            with pytest.raises(DeadlineError, match="guest blocked the loop"):
                dog._break_off(signal.SIGUSR2, sys._getframe())
            assert not dog._suspects

        await system.spawn(Puppet(), name="guest").ask(run)


async def test_the_thread_ends_with_its_loop() -> None:
    kernel = Kernel(1.0, Reports())
    dogs: list[Watchdog] = []

    async def main() -> None:
        dogs.append(Watchdog(kernel, QUICK))

    await trio.to_thread.run_sync(trio.run, main)
    await trio.to_thread.run_sync(dogs[0]._watch)
    dogs[0]._bark()  # a thread that is gone has no place
    assert kernel.watchdog == {("kernel", "loop_blocked"): 1}


async def test_stopping_at_the_wrong_moment_is_no_alarm() -> None:
    reports = Reports()
    dog = Watchdog(Kernel(1.0, reports), QUICK)

    class Late(threading.Event):
        """Is set between two looks at it."""

        def wait(self, timeout: float | None = None) -> bool:
            assert timeout is not None
            self.set()
            return False

    dog._stopped = Late()
    dog._watch()
    assert reports.all == []


def test_the_kernels_frames_are_known_by_name() -> None:
    for name in (watchdog.CELL_FILE, watchdog.LIFECYCLE_FILE):
        assert Path(name).is_file()
    frames = [frame.name for frame in traceback.extract_stack()]
    assert not {"step", "pass_on"} & set(frames)
