"""Which test files are the likeliest to find a mistake, by who imports whom.

Nothing is run for that. A file of tests is near to a module if it bears its name, else
if few imports lie between them, else if it is about the same subject.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from tests.mutants.chance import product
from tests.mutants.nearest import files_of_tests

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

FAR = 3
"""Imports between a test and a module that say nothing any more."""

IMPORT = re.compile(
    r"^ *from (?P<module>[\w.]+) import (?P<names>\([^)]*\)|.*)", re.MULTILINE
)


class Likely:
    """Knows who imports whom.

    Args:
        root: of the repository.
    """

    def __init__(self, root: Path) -> None:
        self._tests = list(files_of_tests(root))
        self._sizes = {file: (root / file).stat().st_size for file in self._tests}
        paths = [*product(root), *(root / "tests").rglob("*.py")]
        names = {path.relative_to(root).as_posix() for path in paths}
        self._importers: dict[str, set[str]] = {}
        for name in names:
            for imported in imports((root / name).read_text("utf-8")):
                for file in (f"{imported}.py", f"{imported}/__init__.py"):
                    if file in names and file != name:
                        self._importers.setdefault(file, set()).add(name)

    def to(self, file: str) -> list[str]:
        """List the test files for a module, the likeliest first."""
        distances = self._distances(file)
        *folders, name = file.removesuffix(".py").split("/")
        folder, subject = f"tests/{'/'.join(folders)}/", folders[-1]
        its_floor = (f"tests/{folders[0]}/", "tests/stories/", "tests/contracts/")
        its_own = (folder, f"tests/stories/{subject}/", f"tests/contracts/{subject}")

        def rank(test: str) -> tuple[bool, int, int]:
            bears_its_name = test.startswith(f"{folder}test_{name}")
            far = distances.get(test, FAR) - FAR * test.startswith(its_own)
            shared = {name, subject}.intersection(re.findall(r"[a-z]+", test))
            score = far - len(shared) + (not test.startswith(its_floor))
            return not bears_its_name, score, self._sizes[test]

        return sorted(self._tests, key=rank)

    def _distances(self, file: str) -> dict[str, int]:
        found = {file: 0}
        front = {file}
        for distance in range(1, FAR):
            importers = (self._importers.get(each, set()) for each in front)
            front = {each for some in importers for each in some} - found.keys()
            found |= dict.fromkeys(front, distance)
        return found


def imports(text: str) -> Iterator[str]:
    """List what a file imports, as paths without their ending."""
    for found in IMPORT.finditer(text):
        module = found["module"].replace(".", "/")
        yield module
        for name in re.findall(r"\w+", found["names"]):
            yield f"{module}/{name}"
