"""What every test gets: a clean end, a time limit, seeded dice, and its tier.

Also says what a run left out: live tests, and modules that are long enough for a look.
"""

from __future__ import annotations

import gc
import os
import signal
import threading
import time
from collections.abc import Generator, Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import httpx
import pykka
import pytest
import trio

pytest_plugins = ("tests.support.hangs", "tests.support.tiers")

# A shell has what it starts beside itself (`pytest &`) ignore Ctrl-C, and `nohup` has
# it ignore the end of the terminal; so would all programs that the tests start and end.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
if signal.getsignal(signal.SIGHUP) is signal.SIG_IGN:
    signal.signal(signal.SIGHUP, signal.SIG_DFL)

# Where the settings that come with the program keep their databases; else that would be
# the home of whoever runs the tests. Relative, so that each test has one of its own.
os.environ["STATE_DIRECTORY"] = "."

# Many servers run at the same time, and not all may have the one port for operators.
os.environ["CALLBOARD_ADMIN__IS_ON"] = "false"

# A client of HTTP reads certifi's certificates when it is made, which takes 20 ms. The
# tests make thousands, and talk to servers without a certificate.
httpx._transports.default.__dict__["create_ssl_context"] = cache(
    httpx.create_ssl_context
)

# trio keeps idle worker threads for ten seconds to use them again; they hold nothing.
LINGERING_THREADS = ("Trio thread", "trio.to_thread")

ENDED_WITHIN = 5.0
"""Seconds."""

LONG = 900
"""Lines of a module from which on it is shown for a look."""

PACKAGES = ("runtime", "actors", "connectors")

LEFT_OUT = pytest.StashKey[int]()


def threads_since(before: set[threading.Thread]) -> list[str]:
    """Name the threads that are new and at work."""
    return [
        thread.name
        for thread in threading.enumerate()
        if thread not in before and not thread.name.startswith(LINGERING_THREADS)
    ]


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_collection() -> Generator[None, object, object]:
    """Keep the garbage collector away from what lives until the end.

    Those are the program, the tests and the libraries: a million objects, which it
    would go through again and again, and with each `gc.collect()` of a test.
    """
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


@pytest.fixture(autouse=True)
def clean_end() -> Iterator[None]:
    """Fail a test that leaves a thread or an actor behind."""
    before = set(threading.enumerate())
    yield
    # A thread that was told to end may need a moment where others share the processor.
    until = time.monotonic() + ENDED_WITHIN
    while (threads := threads_since(before)) and time.monotonic() < until:
        threading.Event().wait(0.01)
    assert not threads, f"threads still running after the test: {threads}"
    actors = [str(ref) for ref in pykka.ActorRegistry.get_all()]
    assert not actors, f"actors still in pykka's registry after the test: {actors}"


@pytest.fixture
def order(request: pytest.FixtureRequest) -> Iterator[int]:
    """Run the test under a few fixed task orders; under twenty in the second tier."""
    seed: int = request.param
    dice = trio._core._run._r  # private: pinned by test_trio_seam.py
    before = dice.getstate()
    dice.seed(seed)
    yield seed
    dice.setstate(before)


def pytest_deselected(items: Sequence[pytest.Item]) -> None:
    """Count the live tests among those that this run leaves out."""
    for item in items:
        if item.get_closest_marker("live"):
            item.config.stash[LEFT_OUT] = item.config.stash.get(LEFT_OUT, 0) + 1


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Tell the process that prints the summary what this one left out."""
    output: dict[str, int] | None = getattr(session.config, "workeroutput", None)
    if output is not None:
        output["left_out"] = session.config.stash.get(LEFT_OUT, 0)


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any) -> None:
    """Take over what a worker has left out; all of them leave out the same."""
    count = getattr(node, "workeroutput", {}).get("left_out", 0)
    node.config.stash[LEFT_OUT] = max(count, node.config.stash.get(LEFT_OUT, 0))


def pytest_terminal_summary(
    terminalreporter: pytest.TerminalReporter, config: pytest.Config
) -> None:
    """Say how to run the live tests, and which modules are long."""
    count = config.stash.get(LEFT_OUT, 0)
    if count:
        terminalreporter.write_line(
            f"{count} live tests left out; "
            "bash tests/live/setup.sh, then: python -m pytest -m live"
        )
    if config.args_source is not pytest.Config.ArgsSource.ARGS:
        for name, lines in long_modules(config.rootpath).items():
            terminalreporter.write_line(f"for a look: {name} has {lines} lines")


def long_modules(root: Path) -> dict[str, int]:
    """Find the modules of the product that may have two reasons to change."""
    found = {
        path.relative_to(root).as_posix(): path.read_bytes().count(b"\n")
        for package in PACKAGES
        for path in sorted((root / package).rglob("*.py"))
    }
    return {name: lines for name, lines in found.items() if lines > LONG}


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport() -> Generator[
    None, pytest.TestReport, pytest.TestReport
]:
    """Let captured text with half characters pass from a worker to the others."""
    report = yield
    report.sections = [
        (name, text.encode("utf-8", "backslashreplace").decode())
        for name, text in report.sections
    ]
    return report
