"""Which tests are the nearest to a line: noted by running them once, and kept.

What was noted lies in a folder for temporary files, a page for each file of tests. It
is only a hint and need not be new: blocks are named by their function, and so stay
known while others change. A page is noted again when its test file has changed.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import NamedTuple

from tests.mutants.blocks import Block, Blocks, block_at, blocks_of
from tests.mutants.chance import Slip, product
from tests.mutants.related import Page, digest, page_of

LEFT_OUT = ("house", "kills", "live", "mutants", "processes", "typing")
"""Folders of tests that look at no single line, or only at other processes."""

TAKEN = ("tests/house/kernel", "tests/house/settings")
"""But these do."""

HERE = b"run_here("
"""So does a file of the latter that runs commands in its own process, too."""

MOST_TESTS = 200
MOST_SECONDS = 30.0
"""Of all tests that are run for one mistake, as noted."""

SLOW = 5.0
"""Seconds; a slower test could not be told from one that hangs."""

ALIKE = 6
"""Tests of one function that come before those of others; then its next ones."""

MOST_MENTIONS = 300


class Near(NamedTuple):
    """A test that may find a mistake."""

    test: str
    seconds: float
    blocks: int
    """Of the program, that it runs; the fewer, the nearer it is to each."""


class Nearest:
    """Knows which tests run which blocks.

    Args:
        root: of the repository.
        folder: keeps what was noted.
    """

    def __init__(self, root: Path, folder: Path) -> None:
        self._root = root
        self.folder = folder
        self.folder.mkdir(exist_ok=True)
        self._tests: list[Near] = []
        self._running: dict[str, dict[str, list[tuple[int, int]]]] = {}
        """By file and block: numbers of a page's first test, and a bit for each."""

        self._blocks = cache(self._blocks_of)

    def unnoted(self, files: Iterable[str]) -> list[str]:
        """List the test files that were never noted, or have changed since."""
        return [each for each in files if not self._is_new(each)]

    def _is_new(self, file: str) -> bool:
        page = self._page(file)
        return page is not None and page.digest == digest((self._root / file,))

    def _page(self, file: str) -> Page | None:
        path = page_of(self.folder, file)
        if not path.exists():
            return None
        return Page(**json.loads(path.read_bytes()))

    def read(self) -> None:
        """Take in what was noted."""
        for file in files_of_tests(self._root):
            if page := self._page(file):
                self._take_in(page)

    def _take_in(self, page: Page) -> None:
        first = len(self._tests)
        counts: Counter[int] = Counter()
        for file, blocks in page.ran.items():
            running = self._running.setdefault(file, {})
            for block, digits in blocks.items():
                tests = int(digits, 16)
                running.setdefault(block, []).append((first, tests))
                counts.update(bits(tests))
        for number, (test, seconds) in enumerate(page.tests.items()):
            self._tests.append(Near(test, seconds, counts[number]))

    def to(self, slip: Slip, naming: Collection[str] = ()) -> list[str]:
        """List the tests that are the nearest to a mistake, the nearest first.

        Args:
            slip: the mistake.
            naming: test files that name its function; their tests come first.
        """
        if slip.name:
            places = self._mentions(slip)
        else:
            places = [(slip.file, self._at(slip.file, slip.lines[0], slip.inside))]
        found = {
            first + bit
            for file, block in places
            for first, tests in self._tests_of(file, block)
            for bit in bits(tests)
        }
        return self._cut([self._tests[number] for number in found], naming)

    def _tests_of(self, file: str, block: Block | None) -> list[tuple[int, int]]:
        """Find who runs a block; if its function has changed, who runs that."""
        running = self._running.get(file, {})
        if block is None:
            return []
        if exact := running.get(f"{block.function}:{block.line}"):
            return exact
        known = f"{block.function}:"
        return [
            each for name in running if name.startswith(known) for each in running[name]
        ]

    def _at(self, file: str, line: int, inside: Sequence[str]) -> Block | None:
        return block_at(self._blocks(file), line, ".".join(inside))

    def _blocks_of(self, file: str) -> Blocks:
        return blocks_of((self._root / file).read_bytes())

    def _mentions(self, slip: Slip) -> list[tuple[str, Block | None]]:
        """Find the blocks that speak of what a line gives a value to."""
        word = re.compile(rf"\b{re.escape(slip.name)}\b".encode())
        found: list[tuple[str, int]] = []
        for path in sorted(product(self._root)):
            file = path.relative_to(self._root).as_posix()
            lines = path.read_bytes().split(b"\n")
            found += [(file, n) for n, line in enumerate(lines, 1) if word.search(line)]
        if len(found) > MOST_MENTIONS:
            found = [each for each in found if each[0] == slip.file]
        return [(file, self._at(file, line, ())) for file, line in found]

    @staticmethod
    def _cut(found: list[Near], naming: Collection[str]) -> list[str]:
        def rank(near: Near) -> tuple[bool, int, str]:
            file = near.test.split("::", maxsplit=1)[0]
            return file not in naming, near.blocks, near.test

        found.sort(key=rank)
        alike: Counter[str] = Counter()
        ranked: list[tuple[int, Near]] = []
        for near in found:
            function = near.test.split("[", maxsplit=1)[0]
            ranked.append((alike[function] // ALIKE, near))
            alike[function] += 1
        chosen: list[str] = []
        seconds = 0.0
        for _, near in sorted(ranked, key=lambda each: each[0]):
            if near.seconds > SLOW or seconds + near.seconds > MOST_SECONDS:
                continue
            seconds += near.seconds
            chosen.append(near.test)
        return chosen[:MOST_TESTS]


def kept() -> Path:
    """Say where it is kept what was noted."""
    return Path(tempfile.gettempdir()) / "callboard-blocks"


def bits(number: int) -> Iterator[int]:
    """Go through the places of the bits that are set."""
    while number:
        lowest = number & -number
        yield lowest.bit_length() - 1
        number ^= lowest


def files_of_tests(root: Path) -> Iterator[str]:
    """Go through the files of tests that may find a mistake in a line."""
    for path in sorted((root / "tests").rglob("test_*.py")):
        file = path.relative_to(root).as_posix()
        kind = file.split("/")[1]
        is_here = kind == "processes" and HERE in path.read_bytes()
        if is_here or kind not in LEFT_OUT or file.startswith(TAKEN):
            yield file


def note(copy: Path, folder: Path, files: Sequence[str], limit: float) -> None:
    """Run tests and note which blocks each of them runs."""
    options = ("-q", "-p", "no:randomly", "-p", "no:cacheprovider")
    noting = ("-p", "tests.mutants.related", f"--note-blocks={folder}")
    try:
        subprocess.run(
            (sys.executable, "-m", "pytest", *options, *noting, *files),
            cwd=copy,
            env=os.environ | {"PYTHONPATH": str(copy)},
            capture_output=True,
            timeout=limit,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return
