"""A plugin of pytest: a test that hangs fails alone, whatever it hangs in.

pytest-timeout raises in a test that takes longer than its time. Code that never comes
back to Python does not notice that; some seconds later (`LONGER`) the process ends and
shows where each thread stood. If the process is a worker of pytest-xdist, xdist calls
that one test failed and starts another worker for those that follow.

An actor takes what is raised in it for a failure of its own, and the test goes on
without that actor's work. So a test that is over its time fails for that reason,
whatever came of it.

A test in virtual time need not wait for that. It is ended at once where tasks take turn
after turn and no time passes, or all wait for ever, and nothing outside of the loop
could change it; and where a task does not give way.
"""

from __future__ import annotations

import faulthandler
import os
import signal
import threading
import time
from collections.abc import Generator
from contextlib import contextmanager

import pytest
import trio
from trio.testing import MockClock

LIMIT = "a_test_may_take"
LONGER = "a_process_may_take_longer"

STDERR = pytest.StashKey[int]()
BEGAN = pytest.StashKey[float]()

# Chosen: no test of the kernel, of Telegram or of sessions has a thousand (measured).
MOST_AT_ONCE = 5_000
"""Turns of the loop in one instant of virtual time, twice."""

LONGEST_TURN = 8.0
"""Seconds of the processor, whatever else the machine does, for one turn of such a
loop: whose task then runs never gives way."""

TOO_LONG = "The test took longer than its {seconds:g} s; what follows came of that."


class EndlessError(BaseException):
    """No time passes in a test that goes by virtual time, and never will."""


class Turns(trio.abc.Instrument):
    """Counts the turns of a loop while its virtual time stands still."""

    def __init__(self, clock: MockClock) -> None:
        self._clock = clock
        self._at = clock.current_time()
        self._turns = 0
        self._was_alone = False

    def before_io_wait(self, timeout: float) -> None:
        """Count one; end the run when there were too many."""
        del timeout
        self._may_take(LONGEST_TURN)
        now = self._clock.current_time()
        if now != self._at:
            self._at, self._turns, self._was_alone = now, 0, False
        self._turns += 1
        if self._turns % MOST_AT_ONCE == 0:
            # Why twice in a row: a thread that has just ended wakes its task next.
            was_alone, self._was_alone = self._was_alone, is_alone()
            if was_alone and self._was_alone:
                # Why not raise here: trio would only take the instrument away.
                trio.lowlevel.current_trio_token().run_sync_soon(end)

    def after_run(self) -> None:
        """Measure no more."""
        self._may_take(0.0)

    @staticmethod
    def _may_take(seconds: float) -> None:
        if threading.current_thread() is threading.main_thread():
            signal.setitimer(signal.ITIMER_VIRTUAL, seconds, seconds)


def is_alone() -> bool:
    """Tell whether no thread, process or socket could wake a task of this loop."""
    idle = ("MainThread", "Trio thread")
    threads = (each.name for each in threading.enumerate())
    waiting = trio.lowlevel.current_statistics().io_statistics
    # One waits for what wakes the loop from other threads.
    reads = getattr(waiting, "tasks_waiting_read", 2)
    writes = getattr(waiting, "tasks_waiting_write", 1)
    limiter = trio.to_thread.current_default_thread_limiter()
    is_quiet = reads <= 1 and not writes and not limiter.borrowed_tokens
    return is_quiet and all(name.startswith(idle) for name in threads)


def end() -> None:
    """End a run whose tasks get nowhere."""
    text = f"{2 * MOST_AT_ONCE:,} turns of the loop, and no time has passed"
    raise EndlessError(text)


def give_way(_number: int, _frame: object) -> None:
    """End a task that does not."""
    seconds = signal.getitimer(signal.ITIMER_VIRTUAL)[1]
    text = f"a task ran for {seconds:g} s of the processor and did not give way"
    raise EndlessError(text)


@contextmanager
def computed_within(seconds: float) -> Generator[None]:
    """Fail a test whose block takes more of the processor, as in an endless loop.

    For what waits for nothing, outside of virtual time.
    """
    signal.setitimer(signal.ITIMER_VIRTUAL, seconds, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0.0)


def watch_turns() -> None:
    """Have every loop that goes by virtual time be counted."""
    signal.signal(signal.SIGVTALRM, give_way)
    start_clock = MockClock.start_clock

    def start(clock: MockClock) -> None:
        start_clock(clock)
        trio.lowlevel.add_instrument(Turns(clock))

    monkey = pytest.MonkeyPatch()
    monkey.setattr(MockClock, "start_clock", start)


watch_turns()


def pytest_addoption(parser: pytest.Parser) -> None:
    """Take the limits from the settings."""
    parser.addini(LIMIT, "Seconds that a test may take", default="120")
    parser.addini(LONGER, "Seconds after them until its process ends", default="15")


def pytest_configure(config: pytest.Config) -> None:
    """Keep a way to the real standard error, which pytest captures in tests."""
    config.stash[STDERR] = os.dup(2)


def pytest_unconfigure(config: pytest.Config) -> None:
    """Let go of standard error."""
    os.close(config.stash[STDERR])


def seconds_of(item: pytest.Item) -> float:
    """Tell how long a test may take; zero: for ever."""
    mark = item.get_closest_marker("timeout")
    return float(mark.args[0] if mark else item.config.getini(LIMIT))


def pytest_collection_modifyitems(
    config: pytest.Config, items: list[pytest.Item]
) -> None:
    """Give a limit to each test that has none of its own."""
    if not config.pluginmanager.hasplugin("timeout"):
        return
    for item in items:
        if item.get_closest_marker("timeout") is None:
            item.add_marker(pytest.mark.timeout(seconds_of(item), method="signal"))


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, object, object]:
    """End the process if a test ends neither by itself nor by its limit."""
    seconds = seconds_of(item)
    if not seconds or item.config.getoption("usepdb"):
        return (yield)
    seconds += float(item.config.getini(LONGER))
    item.stash[BEGAN] = time.monotonic()
    stderr = item.config.stash[STDERR]
    faulthandler.dump_traceback_later(seconds, exit=True, file=stderr)
    try:
        return (yield)
    finally:
        faulthandler.cancel_dump_traceback_later()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Have a test that was over its time fail for that."""
    report = yield
    seconds, began = seconds_of(item), item.stash.get(BEGAN, None)
    is_over = began is not None and time.monotonic() - began >= seconds
    if call.when == "call" and is_over and not report.skipped:
        report.outcome = "failed"
        told = TOO_LONG.format(seconds=seconds)
        report.longrepr = f"{told}\n\n{report.longreprtext}"
    return report
