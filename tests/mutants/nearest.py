"""Which tests are the nearest to a line: measured by running them once, and kept.

What was measured lies in a folder for temporary files, named by the text of the whole
program: a changed program is measured again, a changed test file alone.
"""

from __future__ import annotations

import json
import os
import re
import sqlite3
import subprocess
import sys
import tempfile
from collections import Counter
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from tests.mutants.chance import product
from tests.mutants.related import Page, digest, page_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from tests.mutants.chance import Slip

LEFT_OUT = ("house", "kills", "live", "mutants", "processes", "typing")
"""Folders of tests that look at no single line, or only at other processes."""

TAKEN = ("tests/house/kernel", "tests/house/settings")
"""But these do."""

MOST_TESTS = 60
MOST_SECONDS = 30.0
"""Of all tests that are run for one mistake, as measured."""

SLOW = 5.0
"""Seconds; a slower test could not be told from one that hangs."""

ALIKE = 6
"""Tests of one function that come before those of others; then its next ones."""

MOST_MENTIONS = 300


class Near(NamedTuple):
    """A test that may find a mistake."""

    test: str
    seconds: float
    lines: int
    """Of the program, that it runs; the fewer, the nearer it is to each."""


class Nearest:
    """Knows which tests run which lines.

    Args:
        root: of the repository.
        folder: keeps what was measured.
    """

    def __init__(self, root: Path, folder: Path) -> None:
        self._root = root
        self.folder = folder
        self.folder.mkdir(exist_ok=True)
        self._tests: dict[str, tuple[str, float]] = {}
        self._counts: dict[str, dict[str, int]] = {}

    def unmeasured(self, files: Sequence[str]) -> list[str]:
        """List the test files that were never measured, or have changed since."""
        return [each for each in files if self._page(each) is None]

    def _page(self, file: str) -> Page | None:
        path = page_of(self.folder, file)
        if not path.exists():
            return None
        page = Page(**json.loads(path.read_bytes()))
        is_true = page.digest == digest((self._root / file,))
        return page if is_true and (self.folder / page.lines).exists() else None

    def read(self) -> None:
        """Take in what was measured."""
        for file in files_of_tests(self._root):
            if page := self._page(file):
                for test, seconds in page.tests.items():
                    self._tests[test] = (page.lines, seconds)
        for lines in {lines for lines, _ in self._tests.values()}:
            self._counts[lines] = self._query(
                lines, "SELECT context, SUM(lines(numbits)) {} GROUP BY context", ()
            )

    def to(self, slip: Slip) -> list[str]:
        """List the tests that are the nearest to a mistake, the nearest first."""
        if not slip.name:
            places = {slip.file: slip.lines}
        else:
            places = self._mentions(slip) or {slip.file: ()}
        found = [
            Near(test, self._tests[test][1], self._counts[lines][test])
            for lines in self._counts
            for test in self._running(lines, places)
            if self._tests.get(test, ("", 0))[0] == lines
        ]
        return self._cut(found)

    def _running(self, lines: str, places: Mapping[str, Sequence[int]]) -> set[str]:
        tests: set[str] = set()
        for file, numbers in places.items():
            wanted = sum(1 << number for number in numbers) or -1
            mask = wanted.to_bytes(wanted.bit_length() // 8 + 1, "little", signed=True)
            tests |= self._query(
                lines,
                "SELECT context, 1 {} WHERE path LIKE ? AND meets(numbits, ?)",
                (f"%/{file}", mask),
            ).keys()
        return tests

    def _query(
        self, lines: str, query: str, given: tuple[object, ...]
    ) -> dict[str, int]:
        with closing(sqlite3.connect(self.folder / lines)) as db:
            db.create_function("lines", 1, count_lines)
            db.create_function("meets", 2, meets)
            tables = (
                "FROM line_bits JOIN context ON context.id = context_id "
                "JOIN file ON file.id = file_id"
            )
            return {
                test: count
                for test, count in db.execute(query.format(tables), given)
                if test
            }

    def _mentions(self, slip: Slip) -> dict[str, tuple[int, ...]]:
        """Find the lines that speak of what a line gives a value to."""
        word = re.compile(rf"\b{re.escape(slip.name)}\b".encode())
        found: dict[str, tuple[int, ...]] = {}
        for path in sorted(product(self._root)):
            lines = path.read_bytes().split(b"\n")
            numbers = tuple(n for n, line in enumerate(lines, 1) if word.search(line))
            if numbers:
                found[path.relative_to(self._root).as_posix()] = numbers
        count = sum(map(len, found.values()))
        return found if count <= MOST_MENTIONS else {slip.file: ()}

    @staticmethod
    def _cut(found: list[Near]) -> list[str]:
        found.sort(key=lambda near: (near.lines, near.test))
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


def kept(root: Path) -> Path:
    """Say where it is kept what was measured of the program as it stands."""
    text = digest(sorted(product(root)))
    return Path(tempfile.gettempdir()) / f"callboard-lines-{text}"


def count_lines(bits: bytes) -> int:
    """Count the lines that coverage notes, one bit for each."""
    return int.from_bytes(bits, "little").bit_count()


def meets(bits: bytes, mask: bytes) -> bool:
    """Tell whether a test ran one of the lines."""
    ran = int.from_bytes(bits, "little")
    return bool(ran & int.from_bytes(mask, "little", signed=True))


def files_of_tests(root: Path) -> Iterator[str]:
    """Go through the files of tests that may find a mistake in a line."""
    for path in sorted((root / "tests").rglob("test_*.py")):
        file = path.relative_to(root).as_posix()
        if file.split("/")[1] not in LEFT_OUT or file.startswith(TAKEN):
            yield file


def measure(copy: Path, folder: Path, files: Sequence[str], limit: float) -> None:
    """Run tests and note which lines each of them runs."""
    options = ("-q", "-p", "no:randomly", "-p", "no:cacheprovider")
    noting = ("-p", "tests.mutants.related", "--note-lines", str(folder))
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
