"""Which test files are the likeliest to find a mistake, by words, names and imports.

Nothing is run for that. A file of tests is near to a mistake if it bears the name of
its module; else the more, the more it speaks of what the function and the module speak
of (Okapi BM25), the nearer it stands to it by imports and folders, and the rarer are
the names and the texts for people that both have.
"""

from __future__ import annotations

import ast
import re
import textwrap
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from math import log
from pathlib import Path

from tests.mutants.chance import Slip, product
from tests.mutants.nearest import files_of_tests

FAR = 3
"""Imports between a test and a module that say nothing any more."""

COMMON = 40
"""Test files that use a name or a text which says nothing any more."""

FEW = 6
"""Test files, at most, that name a function so rarely used that they are about it."""

SAYS = 8
"""Characters from which on a text says something."""

PROCESSES = "tests/processes"
"""Tests that start the program; no line of theirs could be measured."""

# Chosen: by where the tests that found 31 random mistakes came in the order.
OF_PLACE, OF_NAMES = 0.4, 0.7
"""What imports and folders weigh, and what rare names; the words weigh 1."""

# Source: the usual ones of BM25, "The Probabilistic Relevance Framework", 2009.
SATURATED, BY_LENGTH = 1.5, 0.75

NAME = re.compile(r"\w+(?:-\w+)*")
LETTERS = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])")
ENDINGS = re.compile(r"(?<=\w{3})(?:ing|ed|es|s)$")

BESIDE = re.compile(r'"([\w-]+\.(?:txt|toml|json))"')
"""A file that holds what a test expects."""

IMPORT = re.compile(
    r"^ *from (?P<module>[\w.]+) import (?P<names>\([^)]*\)|.*)", re.MULTILINE
)


class Likely:
    """Knows what the test files speak of, and who imports whom.

    Args:
        root: of the repository.
    """

    def __init__(self, root: Path) -> None:
        self._root = root
        processes = (root / PROCESSES).rglob("test_*.py")
        started = [path.relative_to(root).as_posix() for path in processes]
        self._tests = list(dict.fromkeys((*files_of_tests(root), *sorted(started))))
        texts = {file: whole_text(root / file) for file in self._tests}
        self._texts = texts
        self._words = {file: words(f"{file} {text}") for file, text in texts.items()}
        self._lengths = {file: each.total() for file, each in self._words.items()}
        self._having = Counter(word for each in self._words.values() for word in each)
        self._using: dict[str, set[str]] = {}
        """By name, the test files that use it."""

        for file, text in texts.items():
            for name in set(NAME.findall(text)):
                self._using.setdefault(name, set()).add(file)
        paths = [*product(root), *(root / "tests").rglob("*.py")]
        names = {path.relative_to(root).as_posix() for path in paths}
        self._importers: dict[str, set[str]] = {}
        for name in names:
            for imported in imports((root / name).read_text("utf-8")):
                for file in (f"{imported}.py", f"{imported}/__init__.py"):
                    if file in names and file != name:
                        self._importers.setdefault(file, set()).add(name)

    def to(self, slip: Slip) -> list[str]:
        """List the test files for a mistake, the likeliest first."""
        *folders, name = slip.file.removesuffix(".py").split("/")
        folder = f"tests/{'/'.join(folders)}/"
        alike, placed = self._alike(slip), self._placed(slip.file)
        used = self._used((*slip.inside, name, name.replace("_", "-")))
        for file, rare in self._quoted(slip).items():
            used[file] = max(used.get(file, 0.0), rare)

        def rank(test: str) -> tuple[bool, float]:
            bears_its_name = test.startswith(f"{folder}test_{name}")
            score = alike[test] + OF_PLACE * placed(test)
            return not bears_its_name, -score - OF_NAMES * used.get(test, 0.0)

        return sorted(self._tests, key=rank)

    def naming(self, slip: Slip) -> set[str]:
        """Give the test files that name its function, if only a few do."""
        found = self._using.get(slip.inside[-1], set()) if slip.inside else set[str]()
        return found if len(found) <= FEW else set()

    def _alike(self, slip: Slip) -> dict[str, float]:
        """Say how much a test file speaks of the same; the one that does most: 1."""
        text = (self._root / slip.file).read_text("utf-8")
        module = words(text)
        length = 1 + len(module) / 150
        wanted = {word: log(1 + count) / length for word, count in module.items()}
        for word, count in words(around(text, slip.lines[0])).items():
            wanted[word] = wanted.get(word, 0.0) + min(2.0, 0.3 + log(1 + count))
        for word, count in words(slip.file).items():
            wanted[word] = wanted.get(word, 0.0) + 2 * count
        found = {test: self._about(test, wanted) for test in self._tests}
        most = max(found.values())
        return {test: score / most for test, score in found.items()}

    def _about(self, test: str, wanted: dict[str, float]) -> float:
        has, number = self._words[test], len(self._tests)
        usual = sum(self._lengths.values()) / number
        longer = 1 - BY_LENGTH + BY_LENGTH * self._lengths[test] / usual
        score = 0.0
        for word, weight in wanted.items():
            if count := has.get(word, 0):
                with_it = self._having[word]
                rare = log(1 + (number - with_it + 0.5) / (with_it + 0.5))
                often = count * (SATURATED + 1) / (count + SATURATED * longer)
                score += rare * often * weight
        return score

    def _placed(self, file: str) -> Callable[[str], float]:
        distances = self._distances(file)
        *folders, _ = file.split("/")
        floor, subject = f"tests/{folders[0]}/", folders[-1]
        its_own = (
            f"tests/{'/'.join(folders)}/",
            f"tests/stories/{subject}/",
            f"tests/contracts/{subject}",
        )

        def near(test: str) -> float:
            score = (FAR - distances.get(test, FAR)) / FAR + test.startswith(its_own)
            is_there = test.startswith((floor, "tests/stories/", "tests/contracts/"))
            return score + is_there / 2

        return near

    def _used(self, names: tuple[str, ...]) -> dict[str, float]:
        """Say how much the names that a test file uses tell, the rarer the more."""
        return rarity(self._using.get(name, set()) for name in names)

    def _quoted(self, slip: Slip) -> dict[str, float]:
        """Say the same of the texts for people in the function."""
        said = said_in((self._root / slip.file).read_text("utf-8"), slip.lines[0])
        return rarity(
            {file for file, text in self._texts.items() if each in text}
            for each in said
        )

    def _distances(self, file: str) -> dict[str, int]:
        found = {file: 0}
        front = {file}
        for distance in range(1, FAR):
            importers = (self._importers.get(each, set()) for each in front)
            front = {each for some in importers for each in some} - found.keys()
            found |= dict.fromkeys(front, distance)
        return found


def whole_text(test: Path) -> str:
    """Give the text of a test file, with those beside it that it names."""
    text = test.read_text("utf-8")
    named = (test.with_name(each) for each in sorted({*BESIDE.findall(text)}))
    more = (each.read_text("utf-8") for each in named if each.is_file())
    return "\n".join((text, *more))


def rarity(found: Iterable[set[str]]) -> dict[str, float]:
    """Say for each file how rare the rarest is that it has, between 0 and 1."""
    told: dict[str, float] = {}
    for files in found:
        rare = max(0.0, 1 - len(files) / COMMON) ** 2
        for file in files:
            told[file] = max(told.get(file, 0.0), rare)
    return told


def words(text: str) -> Counter[str]:
    """Count the words of a text, also within names, without their endings."""
    found = (each.lower() for each in LETTERS.findall(text))
    return Counter(ENDINGS.sub("", each) for each in found if len(each) > 2)


def around(text: str, line: int) -> str:
    """Give the text of the innermost function around a line; empty outside of all."""
    found = ""
    for node in ast.walk(ast.parse(text)):  # outer ones first
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            last = node.end_lineno or node.lineno
            if node.lineno <= line <= last:
                found = "\n".join(text.splitlines()[node.lineno - 1 : last])
    return found


def said_in(text: str, line: int) -> set[str]:
    """Give the texts of the innermost function, also of constants that it names."""
    inner = ast.parse(textwrap.dedent(around(text, line)))
    named = {each.id for each in ast.walk(inner) if isinstance(each, ast.Name)}
    looked_at: list[ast.AST] = [inner]
    for each in ast.parse(text).body:
        target = each.targets[0] if isinstance(each, ast.Assign) else None
        if isinstance(target, ast.Name) and target.id in named:
            looked_at.append(each)
    found = (each for tree in looked_at for each in ast.walk(tree))
    return {
        each.value
        for each in found
        if isinstance(each, ast.Constant)
        and isinstance(each.value, str)
        and len(each.value) >= SAYS
    }


def imports(text: str) -> Iterator[str]:
    """List what a file imports, as paths without their ending."""
    for found in IMPORT.finditer(text):
        module = found["module"].replace(".", "/")
        yield module
        for name in re.findall(r"\w+", found["names"]):
            yield f"{module}/{name}"
