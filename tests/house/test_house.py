"""Proves that the budgets and habits hold that no other tool looks at.

Every exception stands in this file, with its reason, so that all of them can be
seen at once.
"""

from __future__ import annotations

import ast
import fnmatch
import importlib
import re
from collections.abc import Iterator
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

import pytest

ROOT = Path(__file__).parents[2]
PACKAGES = ("runtime", "actors", "connectors")
CODE = (*PACKAGES, "tests", "benchmarks")

TOP_LEVEL = {
    ".ci",
    ".gitignore",
    "CHANGELOG.md",
    "CONTRIBUTING.md",
    "LICENSE",
    "README.md",
    "SECURITY.md",
    "actors",
    "benchmarks",
    "config",
    "connectors",
    "constraints.txt",
    "docs",
    "mkdocs.yml",
    "pyproject.toml",
    "runtime",
    "tests",
}

TEST_LINES = 30

# Tests that may be longer, and why, by "path::function".
EXCEPTIONS: dict[str, str] = {}

# Classes with an empty word in their name, and why they may.
NAMES: dict[str, str] = {
    "runtime/telemetry/logs.py::LineHandler": (
        "logging calls what writes a record a handler"
    ),
    "runtime/telemetry/logs.py::PacedHandler": ("same, for lines that wait a moment"),
}

# Who may swallow any `Exception`, and why nothing narrower will do. Others may
# catch it only to raise it again.
BROAD_CATCHES: dict[str, str] = {
    "connectors/asyncio_bridge/bridge.py": (
        "carries any error of the asyncio side back to its asker, and lets no"
        " listener's mistake end the others"
    ),
    "connectors/chat/websocket/transport.py": "one client's must not end all others'",
    "runtime/actor/dead_letters.py": "an observer's mistake must not end the kernel",
    "runtime/actor/kernel.py": "a report that fails must not end the kernel",
    "runtime/actor/posting.py": "an actor's own hook raises anything; `judge` decides",
    "connectors/hooks/runner.py": "a hook is somebody's own code: it raises anything",
    "connectors/media/extract.py": "a parser fed with anything may fail with anything",
    "connectors/app/reload/reload.py": (
        "the last good settings stay, whatever the new ones do"
    ),
    "connectors/sandbox/child/launcher.py": "a child that is not confined must end",
    "connectors/web/eliza/socketio/logs.py": "any library may log anything at all",
    "connectors/web/eliza/socketio/server.py": (
        "one event's must not keep the others untold"
    ),
    "runtime/actor/cell.py": "whatever a handler raises is its supervisor's business",
    "runtime/actor/dispatcher.py": "a foreign thread's mistake must end nobody else",
    "runtime/errors.py": "a stranger's error may have no text",
    "runtime/actor/messages.py": "a stranger's message may weigh itself wrongly",
    "runtime/store/jobs.py": "one caller's mistake must not leave the others waiting",
    "runtime/supervision/keyed.py": "whatever a child raises counts as its failure",
    "runtime/actor/lifecycle.py": "an actor's end must go on whatever its hooks raise",
    "runtime/supervision/supervisor.py": (
        "whatever a child raises, its restarts are counted"
    ),
    "runtime/system.py": "an actor without a supervisor may fail with anything",
}

# Words without a meaning of their own; see STYLE's names.
EMPTY_CLASS_WORDS = {
    "Data",
    "Handler",
    "Helper",
    "Helpers",
    "Info",
    "Manager",
    "Util",
    "Utils",
}
EMPTY_FILE_NAMES = {word.lower() for word in EMPTY_CLASS_WORDS}

# Put together here, so that this file does not contain what it looks for.
LEFT_FOR_LATER = re.compile(r"\b(?:TO" + r"DO|FIX" + r"ME|X" + r"XX)\b")
MACHINE_PATHS = re.compile(r"(?<![\w.])/(?:wo" + r"rk|ro" + r"ot)/")


@cache
def ignored_names() -> list[str]:
    """Give the patterns of `.gitignore`, for names at the top."""
    lines = (ROOT / ".gitignore").read_text().splitlines()
    return [".git", *(line.strip("/") for line in lines)]


def is_ignored(path: Path) -> bool:
    """Tell whether git would not take this file."""
    return any(
        fnmatch.fnmatch(part, pattern)
        for part in path.relative_to(ROOT).parts
        for pattern in ignored_names()
    )


@cache
def all_files() -> tuple[Path, ...]:
    """Give every file that git would take."""
    tops = [path for path in ROOT.iterdir() if not is_ignored(path)]
    found = [
        path for top in tops for path in ([top] if top.is_file() else top.rglob("*"))
    ]
    return tuple(sorted(p for p in found if p.is_file() and not is_ignored(p)))


def name_of(path: Path) -> str:
    """Give the path as it is written in this file's lists."""
    return path.relative_to(ROOT).as_posix()


@cache
def modules(*folders: str) -> tuple[Path, ...]:
    """Give every Python file under these folders."""
    return tuple(
        path
        for path in all_files()
        if path.suffix == ".py" and path.relative_to(ROOT).parts[0] in folders
    )


def tree_of(path: Path) -> ast.Module:
    """Give the syntax tree of a file; not kept, since all of them fill a gigabyte."""
    return ast.parse(path.read_text(), str(path))


def statements(tree: ast.AST) -> Iterator[ast.AST]:
    """Give what `ast.walk` gives, but for expressions; in a fifth of its time."""
    waiting = [tree]
    while waiting:
        node = waiting.pop()
        yield node
        for field in ("body", "handlers", "orelse", "finalbody", "cases"):
            waiting.extend(getattr(node, field, ()))


class Catch(NamedTuple):
    """One `except` clause."""

    line: int
    names: frozenset[str]
    """The last part of every name that it catches."""

    raises_again: bool


class Facts(NamedTuple):
    """What the habits below are about, of one file."""

    docstring: str
    classes: tuple[str, ...]
    functions: tuple[tuple[str, int], ...]
    """Every function and method with its number of lines."""

    catches: tuple[Catch, ...]


def caught_names(handler: ast.ExceptHandler) -> set[str]:
    """Give the last part of every name an `except` clause catches."""
    if handler.type is None:
        return {"BaseException"}
    return {
        node.attr if isinstance(node, ast.Attribute) else node.id
        for node in ast.walk(handler.type)
        if isinstance(node, ast.Attribute | ast.Name)
    }


def raises_again(handler: ast.ExceptHandler) -> bool:
    """Tell whether an `except` clause passes on what it caught."""
    return any(isinstance(n, ast.Raise) and not n.exc for n in ast.walk(handler))


@cache
def facts_of(path: Path) -> Facts:
    """Read a file once for all habits."""
    tree = tree_of(path)
    classes: list[str] = []
    functions: list[tuple[str, int]] = []
    catches: list[Catch] = []
    for node in statements(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            lines = (node.end_lineno or 0) - node.lineno + 1
            functions.append((node.name, lines))
        elif isinstance(node, ast.ClassDef):
            classes.append(node.name)
        elif isinstance(node, ast.ExceptHandler):
            names = frozenset(caught_names(node))
            catches.append(Catch(node.lineno, names, raises_again(node)))
    docstring = ast.get_docstring(tree) or ""
    return Facts(docstring, tuple(classes), tuple(functions), tuple(catches))


def is_public(path: Path) -> bool:
    """Tell whether a module is meant to be imported by name."""
    return not path.stem.startswith("_") or path.stem == "__init__"


def text_files() -> list[tuple[str, str]]:
    """Give name and text of every file that is text."""
    found: list[tuple[str, str]] = []
    for path in all_files():
        try:
            found.append((name_of(path), path.read_text()))
        except UnicodeDecodeError:
            continue
    return found


def test_the_top_level_holds_what_was_agreed_and_nothing_else() -> None:
    found = {path.name for path in ROOT.iterdir() if not is_ignored(path)}
    assert found == TOP_LEVEL


def test_no_test_is_longer_than_its_budget() -> None:
    too_long = {
        name: lines
        for path in modules("tests")
        for function, lines in facts_of(path).functions
        if function.startswith("test_")
        and (name := f"{name_of(path)}::{function}") not in EXCEPTIONS
        and lines > TEST_LINES
    }
    assert not too_long, f"over {TEST_LINES} lines: {too_long}"


def test_every_exception_is_still_needed_and_has_a_reason() -> None:
    names = {name_of(path) for path in modules(*CODE)}
    for name, reason in (EXCEPTIONS | NAMES | BROAD_CATCHES).items():
        assert name.split("::")[0] in names, f"{name} is gone; take its exception out"
        assert len(reason.split()) > 3, f"{name}: the reason is no reason"


def test_every_module_says_what_it_is_for() -> None:
    silent = [
        name_of(path)
        for path in modules(*CODE)
        if is_public(path) and not facts_of(path).docstring
    ]
    assert not silent, f"without a docstring: {silent}"


def test_every_package_has_an_init_and_says_it_is_typed() -> None:
    for package in PACKAGES:
        assert (ROOT / package / "py.typed").is_file()
        folders = {path.parent for path in modules(package)}
        bare = [name_of(f) for f in folders if not (f / "__init__.py").is_file()]
        assert not bare, f"without an __init__.py: {bare}"


def offered_names(tree: ast.Module, package: str) -> set[str]:
    """Give what a package defines at its top, or takes up from its own modules."""
    names: set[str] = set()
    for node in tree.body:
        if isinstance(node, ast.ImportFrom):
            inside = f"{node.module}.".startswith(f"{package}.")
            names |= {a.asname or a.name for a in node.names if inside or node.level}
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            names.add(node.name)
    return {name for name in names if not name.startswith("_")}


# The order of `__all__` is ruff's business (RUF022).
@pytest.mark.parametrize(
    "init",
    [path for path in modules(*PACKAGES) if path.stem == "__init__"],
    ids=name_of,
)
def test_a_package_lists_all_that_it_offers(init: Path) -> None:
    package = ".".join(init.relative_to(ROOT).parent.parts)
    module = importlib.import_module(package)
    listed: list[str] = getattr(module, "__all__", [])
    assert offered_names(tree_of(init), package) <= set(listed)
    # A face names modules, which nobody has loaded yet; test_faces.py checks them.
    missing = [
        name
        for name in listed
        if not (hasattr(module, name) or find_spec(f"{package}.{name}"))
    ]
    assert not missing


def test_nothing_is_left_for_later() -> None:
    found = [name for name, text in text_files() if LEFT_FOR_LATER.search(text)]
    assert not found


def test_no_file_knows_the_machine_it_was_written_on() -> None:
    found = [
        f"{name}: {match.group()}"
        for name, text in text_files()
        if (match := MACHINE_PATHS.search(text))
    ]
    assert not found


def test_no_name_is_an_empty_word() -> None:
    classes = {
        f"{name_of(path)}::{name}"
        for path in modules(*CODE)
        for name in facts_of(path).classes
        if EMPTY_CLASS_WORDS & set(re.findall(r"[A-Z][a-z]+|[A-Z]+(?![a-z])", name))
    }
    files = {
        name_of(path)
        for path in modules(*CODE)
        if EMPTY_FILE_NAMES & set(path.stem.split("_"))
    }
    verbs = {
        f"{name_of(path)}::{function}"
        for path in modules(*CODE)
        for function, _ in facts_of(path).functions
        if function.lstrip("_").startswith("process_")
    }
    assert not (classes | files | verbs) - set(NAMES)


def test_nobody_catches_cancellation() -> None:
    found = [
        f"{name_of(path)}:{catch.line}"
        for path in modules(*CODE)
        for catch in facts_of(path).catches
        if "Cancelled" in catch.names
    ]
    assert not found


def test_only_the_agreed_few_swallow_any_exception() -> None:
    found = {
        f"{name_of(path)}:{catch.line}"
        for path in modules(*PACKAGES)
        for catch in facts_of(path).catches
        if catch.names & {"Exception", "BaseException"}
        and not catch.raises_again
        and name_of(path) not in BROAD_CATCHES
    }
    assert not found


def test_the_pins_name_versions_and_no_addresses() -> None:
    lines = (ROOT / "constraints.txt").read_text().splitlines()
    pins = [line for line in lines if not line.startswith("#")]
    assert lines[0].startswith("#")
    assert all(re.fullmatch(r"[A-Za-z0-9._-]+==[A-Za-z0-9.]+", pin) for pin in pins)
    assert pins == sorted(pins, key=str.upper)
