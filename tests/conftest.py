"""What every test gets: a clean end, seeded task orders, Hypothesis profiles.

Also counts the live tests that a run left out, so that leaving them out is seen.
"""

from __future__ import annotations

import os
import signal
import threading
from typing import TYPE_CHECKING

import hypothesis
import pykka
import pytest
import trio

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

# No deadline: a shared machine is slow for reasons that are not the code's. In CI
# the examples are fixed, so that a red run is about the change that made it red;
# elsewhere they are new every time, so that somebody finds what CI does not look for.
hypothesis.settings.register_profile("local", deadline=None, print_blob=True)
hypothesis.settings.register_profile(
    "ci", deadline=None, print_blob=True, derandomize=True
)
hypothesis.settings.load_profile("ci" if os.environ.get("CI") else "local")

# A shell has what it starts beside itself (`pytest &`) ignore Ctrl-C, and with it all
# programs that the tests start, and interrupt.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# trio keeps idle worker threads for ten seconds to use them again; they hold nothing.
LINGERING_THREADS = ("Trio thread", "trio.to_thread")

LEFT_OUT = pytest.StashKey[int]()


@pytest.fixture(autouse=True)
def clean_end() -> Iterator[None]:
    """Fail a test that leaves a thread or an actor behind."""
    before = set(threading.enumerate())
    yield
    threads = [
        thread.name
        for thread in threading.enumerate()
        if thread not in before and not thread.name.startswith(LINGERING_THREADS)
    ]
    assert not threads, f"threads still running after the test: {threads}"
    actors = [str(ref) for ref in pykka.ActorRegistry.get_all()]
    assert not actors, f"actors still in pykka's registry after the test: {actors}"


@pytest.fixture(params=range(20), ids=lambda seed: f"order{seed}")
def order(request: pytest.FixtureRequest) -> Iterator[int]:
    """Run the test under one of twenty fixed task orders."""
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


def pytest_terminal_summary(
    terminalreporter: pytest.TerminalReporter, config: pytest.Config
) -> None:
    """Say how many live tests were left out, and how to run them."""
    count = config.stash.get(LEFT_OUT, 0)
    if count:
        terminalreporter.write_line(
            f"{count} live tests left out; "
            "bash tests/live/setup.sh, then: python -m pytest -m live"
        )
