"""The two tiers of the tests, as a plugin of pytest.

The first is what `python -m pytest` runs: on all processors, in one order, with the
same examples and the same orders of trio's tasks each time. The second is `--deep`:
tests marked `deep`, and once more, with many more examples, those that depend on
examples or on orders. Its seed is new each time and is shown at the end of a red run.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any
from zlib import crc32

import hypothesis
import pytest
import trio
from _pytest.assertion import rewrite  # private: pinned by test_tiers.py

FIRST = "not live and not deep"
"""The tests of the first tier, as `-m` names them."""

ORDERS = 20
FEW_ORDERS = 5
"""How many orders of tasks the fixture `order` goes through, in both tiers."""

TIMES = 4
"""How many times the examples of the first tier the second one tries."""

MOST_WORKERS = 8
"""Each takes up to 800 MB of memory."""
SEED = 20
DEEP_SECONDS = 900

# No deadline: a shared machine is slow for reasons that are not the code's.
hypothesis.settings.register_profile(
    "first", deadline=None, print_blob=True, derandomize=True
)
hypothesis.settings.register_profile(
    "deep", deadline=None, print_blob=True, max_examples=100 * TIMES
)
hypothesis.settings.load_profile("first")


def is_deep() -> bool:
    """Tell whether the second tier runs."""
    return hypothesis.settings.get_current_profile_name() == "deep"


def examples(first: int, deep: int = 0) -> int:
    """Give how many examples to try.

    Args:
        first: in the first tier.
        deep: in the second; 0: as many times the first's as is usual. Given for what
            takes long, so that few in the first tier are not few in the second, too.
    """
    return (deep or first * TIMES) if is_deep() else first


def pytest_addoption(parser: pytest.Parser) -> None:
    """Have an option for the second tier."""
    parser.addoption(
        "--deep",
        action="store_true",
        help="the second tier: long tests, more examples, orders from a new seed",
    )


@pytest.hookimpl(tryfirst=True)
def pytest_cmdline_main(config: pytest.Config) -> None:
    """Choose the tier, and run it on all processors if it is run as a whole.

    A worker of pytest-xdist reads the command line once more, so it chooses, too.
    """
    options = config.option
    if config.getoption("deep"):
        hypothesis.settings.load_profile("deep")
    is_worker = hasattr(config, "workerinput")
    whole = is_whole(config)
    if not options.markexpr:
        options.markexpr = "not live" if config.getoption("deep") else FIRST
        if whole and not is_worker and getattr(options, "numprocesses", 0) is None:
            os.environ.setdefault("PYTHONHASHSEED", str(SEED))
            # Else each worker, and each program that a test starts, would compile all.
            os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
            options.numprocesses, options.maxprocesses = "logical", MOST_WORKERS
            options.dist = "loadfile"
            if not config.getoption("deep"):
                processors: int = config.hook.pytest_xdist_auto_num_workers(
                    config=config
                )
                options.numprocesses = workers(processors)
    seed = seed_of(config)
    if hasattr(options, "randomly_seed"):
        options.randomly_seed = seed
    if config.getoption("deep") and options.hypothesis_seed is None:
        options.hypothesis_seed = str(seed)


def is_whole(config: pytest.Config) -> bool:
    """Tell whether a run is not told which tests it is about."""
    return config.args_source is not pytest.Config.ArgsSource.ARGS


def workers(processors: int) -> int:
    """Give how many workers the first tier has: three for two processors.

    A worker waits for nearly half of its time: for programs that it started, for the
    disk, and for the few tests in which seconds really pass.
    """
    return processors + processors // 2


@pytest.hookimpl(tryfirst=True)
def pytest_collection(session: pytest.Session) -> None:
    """Have the workers share the work of rewriting the tests' assertions.

    In a fresh checkout that takes 12 seconds of the processor. Each worker imports all
    tests, in the same order and at the same time, and would rewrite all of them. So
    each rewrites some first, and finds the rest done when it comes to import it. Not if
    nothing may be written, or nothing is to be rewritten (`--assert=plain`).
    """
    config = session.config
    handed: dict[str, Any] = getattr(config, "workerinput", {})
    is_rewriting = rewrite.assertstate_key in config.stash
    if handed.get("is_whole") and is_rewriting and not sys.dont_write_bytecode:
        number = int(handed["workerid"].removeprefix("gw"))
        tests = sorted((config.rootpath / "tests").rglob("test_*.py"))
        rewrite_all(
            tests[number % handed["workercount"] :: handed["workercount"]], config
        )


def rewrite_all(tests: Iterable[Path], config: pytest.Config) -> None:
    """Rewrite those of these files that were not yet, or have changed since."""
    state = config.stash[rewrite.assertstate_key]
    for path in tests:
        folder = rewrite.get_cache_dir(path)
        written = folder / (path.stem + rewrite.PYC_TAIL)
        if rewrite._read_pyc(path, written) is None and rewrite.try_makedirs(folder):
            try:
                source_hash, code = rewrite._rewrite_test(path, config)
            except (SyntaxError, ValueError):
                continue  # pytest reports it when it collects the file
            rewrite._write_pyc(state, code, source_hash, written)


def seed_of(config: pytest.Config) -> int:
    """Give the seed that this run was told, or takes: one for all its dice."""
    handed: dict[str, int] = getattr(config, "workerinput", {})
    told = handed.get("seed", getattr(config.option, "randomly_seed", "default"))
    if isinstance(told, int):
        return told
    return int.from_bytes(os.urandom(4)) if config.getoption("deep") else SEED


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node: Any) -> None:
    """Hand a worker the seed, and say whether all tests are to run."""
    node.workerinput["seed"] = getattr(node.config.option, "randomly_seed", SEED)
    node.workerinput["is_whole"] = is_whole(node.config)


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Run tests of orders under few of them or many."""
    marks = metafunc.definition.iter_markers("parametrize")
    if "order" in metafunc.fixturenames and not any(
        "order" in x.args[0] for x in marks
    ):
        orders = range(ORDERS if is_deep() else FEW_ORDERS)
        ids = [f"order{each}" for each in orders]
        metafunc.parametrize("order", orders, ids=ids, indirect=True)


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(
    config: pytest.Config, items: list[pytest.Item]
) -> None:
    """Leave out of the second tier what would only be the first once more."""
    if not config.getoption("deep"):
        return
    for item in items:
        if item.get_closest_marker("timeout") is None:
            item.add_marker(pytest.mark.timeout(DEEP_SECONDS, method="signal"))
    config.hook.pytest_deselected(items=[each for each in items if not digs(each)])
    items[:] = [each for each in items if digs(each)]


def digs(item: pytest.Item) -> bool:
    """Tell whether a test finds more if it is given more time."""
    return bool(
        item.get_closest_marker("deep")
        or item.get_closest_marker("property")
        or getattr(getattr(item, "obj", None), "is_hypothesis_test", False)
        or "order" in getattr(item, "fixturenames", ())
    )


@pytest.fixture(autouse=True)
def dice_of_trio(request: pytest.FixtureRequest) -> None:
    """Have trio run the tasks of a test in its own order, the same each time."""
    seed = getattr(request.config.option, "randomly_seed", SEED)
    trio._core._run._r.seed(crc32(f"{seed} {request.node.nodeid}".encode()))


def pytest_terminal_summary(
    terminalreporter: pytest.TerminalReporter, config: pytest.Config
) -> None:
    """Say how to find again what the second tier has found."""
    if config.getoption("deep") and terminalreporter.stats.get("failed"):
        seed = getattr(config.option, "randomly_seed", SEED)
        terminalreporter.write_line(
            "the same dice again: python -m pytest --deep "
            f"--randomly-seed={seed} --hypothesis-seed={seed} PATH::TEST"
        )
