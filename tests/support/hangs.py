"""A plugin of pytest: a test that hangs fails alone, whatever it hangs in.

pytest-timeout raises in a test that takes longer than its time. Code that never comes
back to Python does not notice that; some seconds later (`LONGER`) the process ends and
shows where each thread stood. If the process is a worker of pytest-xdist, xdist calls
that one test failed and starts another worker for those that follow.

An actor takes what is raised in it for a failure of its own, and the test goes on
without that actor's work. So a test that is over its time fails for that reason,
whatever came of it.
"""

from __future__ import annotations

import faulthandler
import os
import time
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Generator

LIMIT = "a_test_may_take"
LONGER = "a_process_may_take_longer"

STDERR = pytest.StashKey[int]()
BEGAN = pytest.StashKey[float]()

TOO_LONG = "The test took longer than its {seconds:g} s; what follows came of that."


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
