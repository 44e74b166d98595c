"""A plugin of pytest: notes which blocks each test runs, and runs the nearest tests.

    python -m pytest -p tests.mutants.related --note-blocks=FOLDER tests/…
    python -m pytest -p tests.mutants.related --nearest=FILE tests/…

The first writes a page for each test file: which blocks of the program each test ran
that passed, and how long that took. The second runs only the tests that FILE names, in
its order, and ends at the first that fails otherwise than by time.
"""

from __future__ import annotations

import hashlib
import json
import time
from collections import Counter
from collections.abc import Generator, Iterable
from operator import itemgetter
from pathlib import Path
from typing import Any, NamedTuple

import hypothesis
import pytest

from tests.mutants.blocks import Marks

AT_ONCE = 8
"""Tests of the likeliest file that run before the next one's turn; of that half, …"""

MOST_HUNG = 3
"""Tests that may hang before a run is given up."""

HUNG = "from pytest-timeout"
"""What the report of a test says that pytest-timeout ended."""

PHASES = (hypothesis.Phase.explicit, hypothesis.Phase.generate)


class Page(NamedTuple):
    """What is noted of one file of tests."""

    digest: str
    """Of the file when its tests ran."""

    tests: dict[str, float]
    """The seconds that each test took that passed, of the processor alone: whatever
    else the machine does."""

    ran: dict[str, dict[str, str]]
    """By file of the program and block (`Mailbox.put:3`), the tests that ran it: a
    hexadecimal number with one bit for each, the first test's is the lowest."""


def pytest_addoption(parser: pytest.Parser) -> None:
    """Take the folder or the file."""
    parser.addoption("--note-blocks", type=Path, help="note what each test runs here")
    parser.addoption("--nearest", type=Path, help="run the tests that this file names")


def pytest_configure(config: pytest.Config) -> None:
    """Begin to note, or to choose."""
    folder, nearest = config.getoption("note_blocks"), config.getoption("nearest")
    # pytest-xdist hands its workers the options, so that each notes its own files.
    if folder and getattr(config.option, "numprocesses", None) is None:
        config.pluginmanager.register(Noter(folder, config.rootpath))
    if nearest:
        # A property that fails is enough; to look for its shortest example takes long.
        first = hypothesis.settings.get_profile("first")
        hypothesis.settings.register_profile("nearest", first, phases=PHASES)
        hypothesis.settings.load_profile("nearest")
        config.pluginmanager.register(Chooser(nearest))


class Noter:
    """Notes which blocks each test runs: a page for each file of tests."""

    def __init__(self, folder: Path, root: Path) -> None:
        self._folder = folder
        folder.mkdir(parents=True, exist_ok=True)
        self._root = root
        self._marks = Marks(root)
        self._file = ""
        self._tests: dict[str, float] = {}
        self._ran: dict[str, dict[str, int]] = {}
        self._passed = False

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Generator[None, Any, Any]:
        """Note the blocks that one test runs."""
        file = item.nodeid.split("::", maxsplit=1)[0]
        if file != self._file:
            self._end_page()
            self._file = file
        self._passed = True
        self._marks.take()
        began = time.process_time()
        try:
            return (yield)
        finally:
            if self._passed:
                self._note(item.nodeid, time.process_time() - began)

    def _note(self, test: str, seconds: float) -> None:
        bit = 1 << len(self._tests)
        self._tests[test] = seconds
        for file, blocks in self._marks.take().items():
            ran = self._ran.setdefault(file, {})
            for block in blocks:
                name = f"{block.function}:{block.line}"
                ran[name] = ran.get(name, 0) | bit

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """See whether the test passes."""
        self._passed &= report.passed

    def pytest_sessionfinish(self) -> None:
        """Write what was noted last."""
        self._end_page()

    def _end_page(self) -> None:
        """Write what was noted of a file: the process may end in the next one."""
        if self._file:
            ran = {
                file: {name: f"{tests:x}" for name, tests in blocks.items()}
                for file, blocks in self._ran.items()
            }
            page = Page(digest((self._root / self._file,)), self._tests, ran)
            text = json.dumps(page._asdict())
            page_of(self._folder, self._file).write_text(text, encoding="utf-8")
        self._tests, self._ran = {}, {}


class Chooser:
    """Runs the tests that a file names, and writes what became of them beside it."""

    def __init__(self, file: Path) -> None:
        self._file = file
        self._order = {
            test: place for place, test in enumerate(file.read_text().splitlines())
        }
        self._hung: list[str] = []
        self._failed = ""

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        """Leave out the others; the nearest first.

        Where files are named, a few tests of each in turn, the more the likelier it is,
        so that no slow file keeps the others from being tried.
        """
        turns: Counter[str] = Counter()
        placed: list[tuple[int, int, pytest.Item]] = []
        for item in items:
            file = item.nodeid.split("::", maxsplit=1)[0]
            if item.nodeid in self._order:
                placed.append((-1, self._order[item.nodeid], item))
            elif file in self._order:
                order = self._order[file]
                placed.append((turns[file] // max(1, AT_ONCE >> order), order, item))
                turns[file] += 1
        items[:] = [item for *_, item in sorted(placed, key=itemgetter(0, 1))]

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        """Count as failed what cannot even be imported."""
        if report.failed:
            self._failed = self._failed or report.nodeid

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Generator[None, Any, Any]:
        """Write what is known after each test: the process may end in the next one."""
        self._write(item.nodeid)
        result = yield
        self._write("")
        if self._failed or len(self._hung) == MOST_HUNG:
            item.session.shouldstop = "enough is known"
        return result

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Tell a test that failed from one that hung."""
        if not report.failed:
            return
        if HUNG in report.longreprtext:
            self._hung.append(report.nodeid)
        else:
            self._failed = self._failed or report.nodeid

    def pytest_sessionfinish(self) -> None:
        """Write the end."""
        self._write("")

    def _write(self, at: str) -> None:
        told = {"failed": self._failed, "hung": self._hung, "at": at}
        # Why in two steps: it is read after whatever ended this process.
        written = self._file.with_suffix(".new")
        written.write_text(json.dumps(told), encoding="utf-8")
        written.replace(outcome_of(self._file))


def page_of(folder: Path, file: str) -> Path:
    """Say where the page of a test file lies."""
    return folder / (file.replace("/", "+") + ".json")


def digest(files: Iterable[Path]) -> str:
    """Give what changes with the text of any of the files."""
    sums = [hashlib.sha256(each.read_bytes()).hexdigest() for each in files]
    return hashlib.sha256(" ".join(sums).encode()).hexdigest()[:16]


def outcome_of(nearest: Path) -> Path:
    """Say where a run of the nearest tests writes what became of them."""
    return nearest.with_suffix(".json")
