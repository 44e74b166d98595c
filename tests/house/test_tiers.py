"""Proves that a test that hangs fails alone, and that the tiers are what they say."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import traceback
from collections.abc import Awaitable, Callable
from pathlib import Path

import hypothesis
import pytest
import trio
from _pytest.assertion import rewrite
from trio.testing import MockClock

from tests.support import hangs
from tests.support.tiers import is_deep, rewrite_all, workers

ROOT = Path(__file__).parents[2]

HANGING = """
import ctypes, signal, time
import pytest

def test_before(): pass
def test_that_python_can_end(): time.sleep(600)
def test_between(): pass

@pytest.mark.timeout(1)
def test_that_never_comes_back():
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGALRM})
    ctypes.PyDLL(None).sleep(600)  # keeps the interpreter, too

def test_after(): pass
"""

SETTINGS = """
[pytest]
addopts = -p tests.support.hangs -p no:cacheprovider -p no:randomly
a_test_may_take = 1
a_process_may_take_longer = 1
"""


def run_pytest(folder: Path, *arguments: str) -> str:
    """Run a small project's tests; give what was printed."""
    done = subprocess.run(
        [sys.executable, "-m", "pytest", *arguments, str(folder)],
        cwd=ROOT,
        capture_output=True,
        encoding="utf-8",
        timeout=100,
        check=False,
    )
    return done.stdout


async def wait_for_ever() -> None:
    await trio.sleep_forever()


async def take_turns() -> None:
    while True:
        await trio.lowlevel.checkpoint()


@pytest.mark.parametrize("act", [wait_for_ever, take_turns])
def test_who_gets_nowhere_in_virtual_time_is_ended_at_once(
    act: Callable[[], Awaitable[None]],
) -> None:
    with pytest.raises(trio.TrioInternalError) as caught:
        trio.run(act, clock=MockClock(autojump_threshold=0))
    shown = "".join(traceback.format_exception(caught.value))
    assert "turns of the loop, and no time has passed" in shown


def test_who_does_not_give_way_is_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    async def run() -> None:
        while True:
            pass

    monkeypatch.setattr(hangs, "LONGEST_TURN", 0.2)
    with pytest.raises(hangs.EndlessError, match="did not give way"):
        trio.run(run, clock=MockClock(autojump_threshold=0))
    assert signal.getitimer(signal.ITIMER_VIRTUAL) == (0.0, 0.0)


async def test_a_thread_that_is_waited_for_may_take_its_time(
    monkeypatch: pytest.MonkeyPatch, autojump_clock: MockClock
) -> None:
    monkeypatch.setattr(hangs, "MOST_AT_ONCE", 1000)
    assert autojump_clock.autojump_threshold == 0
    await trio.to_thread.run_sync(threading.Event().wait, 0.2)


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """Write a project of five tests, two of which hang."""
    (tmp_path / "pytest.ini").write_text(SETTINGS)
    (tmp_path / "test_hanging.py").write_text(HANGING)
    return tmp_path


@pytest.mark.deep
def test_a_test_that_hangs_fails_alone(project: Path) -> None:
    settings = ("-c", str(project / "pytest.ini"), "--rootdir", str(project))
    shown = run_pytest(project, *settings, "-n", "1", "-v")
    assert "2 failed, 3 passed" in shown.splitlines()[-1], shown
    assert "Timeout (>1.0s) from pytest-timeout" in shown
    assert "crashed while running" in shown
    for name in ("test_that_python_can_end", "test_that_never_comes_back"):
        assert f"test_hanging.py::{name}" in shown


CATCHING = """
import time
import pytest

@pytest.mark.timeout(0.2)
@pytest.mark.parametrize("what_was_lost", [0, 1])
def test_that_catches_everything(what_was_lost):
    try:
        time.sleep(600)
    except BaseException:  # as an actor does
        pass
    assert not what_was_lost

def test_after(): pass
"""


def test_a_test_that_catches_the_end_of_its_time_fails_for_that(tmp_path: Path) -> None:
    (tmp_path / "pytest.ini").write_text(SETTINGS)
    (tmp_path / "test_catching.py").write_text(CATCHING)
    settings = ("-c", str(tmp_path / "pytest.ini"), "--rootdir", str(tmp_path))
    # without the closing list, which has the words again where CI is set
    shown = run_pytest(tmp_path, *settings, "-n", "0", "-rN")
    assert "2 failed, 1 passed" in shown.splitlines()[-1], shown
    assert shown.count("The test took longer than its 0.2 s") == 2
    assert "assert not 1" in shown


@pytest.mark.parametrize(("options", "orders"), [((), 5), (("--deep",), 20)])
def test_the_second_tier_is_other_tests_and_more_orders(
    options: tuple[str, ...], orders: int
) -> None:
    seam = ROOT / "tests/house/kernel/test_trio_seam.py"
    shown = run_pytest(seam, *options, "--collect-only", "-q")
    assert shown.count("test_one_seed_gives_one_order[order") == orders
    assert ("test_hypothesis_made_the_scheduler" in shown) is not bool(options)


def test_the_first_tier_is_the_same_in_each_run() -> None:
    seam = ROOT / "tests/house/kernel/test_trio_seam.py"
    first, second = (run_pytest(seam, "-v").splitlines() for _ in range(2))
    assert "Using --randomly-seed=20" in first
    assert [x for x in first if "PASSED" in x] == [x for x in second if "PASSED" in x]
    assert hypothesis.settings().derandomize is not is_deep()


TIERS = """
[pytest]
addopts = -p tests.support.tiers -p no:cacheprovider
markers = deep: long
"""

TWO = """
import pytest

@pytest.mark.deep
def test_long(): pass

def test_short(): pass
"""


@pytest.mark.parametrize("workers", [pytest.param("0", marks=pytest.mark.deep), "1"])
def test_each_tier_has_its_tests_also_in_a_worker(tmp_path: Path, workers: str) -> None:
    (tmp_path / "pytest.ini").write_text(TIERS)
    (tmp_path / "test_two.py").write_text(TWO)
    settings = ("-c", str(tmp_path / "pytest.ini"), "--rootdir", str(tmp_path))
    for tier, test in (((), "test_short"), (("--deep",), "test_long")):
        shown = run_pytest(tmp_path, *settings, *tier, "-v", "-n", workers)
        assert "1 passed" in shown.splitlines()[-1], shown
        assert f"test_two.py::{test}" in shown


@pytest.mark.parametrize(("processors", "expected"), [(1, 1), (2, 3), (4, 6)])
def test_workers_that_wait_leave_their_processor_to_others(
    processors: int, expected: int
) -> None:
    assert workers(processors) == expected


@pytest.mark.parametrize("mode", ["rewrite", "plain"])
def test_what_a_worker_compiles_is_kept_for_the_others(
    tmp_path: Path, mode: str
) -> None:
    (tmp_path / "pytest.ini").write_text(TIERS.replace("-p tests.support.tiers", ""))
    # As here: a plugin that the command line names would come after pytest-xdist.
    (tmp_path / "conftest.py").write_text("pytest_plugins = 'tests.support.tiers'\n")
    text = "import sys\ndef test(): assert not sys.dont_write_bytecode\n"
    (tmp_path / "test_one.py").write_text(text)
    told = {"PYTHONDONTWRITEBYTECODE": "1", "PYTEST_XDIST_AUTO_NUM_WORKERS": "1"}
    done = subprocess.run(
        [sys.executable, "-m", "pytest", f"--assert={mode}"],
        cwd=tmp_path,
        env=os.environ | told | {"PYTHONPATH": str(ROOT)},
        capture_output=True,
        encoding="utf-8",
        timeout=100,
        check=False,
    )
    assert "1 passed" in done.stdout, done.stdout
    assert "1 worker" in done.stdout


def test_what_one_worker_rewrites_the_others_need_not(
    pytestconfig: pytest.Config, tmp_path: Path
) -> None:
    names = ("test_good.py", "test_wrong.py", "test_more.py")
    good, wrong, more = (tmp_path / name for name in names)
    good.write_text("def test(): assert 1 == 2\n")
    wrong.write_text("assert assert\n")
    more.write_text("def test(): assert 3 == 4\n")
    rewrite_all([good, wrong, more], pytestconfig)
    for path in (good, more):
        folder = rewrite.get_cache_dir(path)
        code = rewrite._read_pyc(path, folder / f"{path.stem}{rewrite.PYC_TAIL}")
        assert code is not None
        assert "@pytest_ar" in code.co_names, "the assertion was rewritten"
