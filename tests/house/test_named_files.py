"""Proves that what is named is there: files in prose, attributes of late imports."""

from __future__ import annotations

import ast
import importlib
import io
import re
import tokenize
from collections.abc import Iterator

import pytest

from tests.house.test_house import PACKAGES, all_files, modules, name_of, tree_of

NAMED = re.compile(r"`([\w/]*\w\.py)`")

OF_EACH_PLATFORM = {"platform.py", "transport.py", "doctor.py", "markup.py"}
"""Said of the file of that name in any platform's folder."""


def texts(source: str) -> Iterator[str]:
    """Give all docstrings and comments of a module."""
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.COMMENT or token.string.startswith(('"""', 'r"""')):
            yield token.string


def test_files_that_are_named_exist() -> None:
    known = {name_of(path) for path in all_files()}
    missing: list[str] = []
    for path in modules(*PACKAGES):
        name = name_of(path)
        folder, floor = name.rpartition("/")[0], name.partition("/")[0]
        source = path.read_text("utf-8")
        for text in texts(source) if NAMED.search(source) else ():
            for found in NAMED.findall(text):
                is_there = (
                    found in known
                    or found in OF_EACH_PLATFORM
                    or f"{folder}/{found}" in known
                    or ("/" in found and f"{floor}/{found}" in known)
                )
                if not is_there:
                    missing.append(f"{name}: {found}")
    assert not missing, f"say the path from the root, or a neighbour's name: {missing}"


def late_imports() -> Iterator[tuple[str, str]]:
    """Return each `import_module(NAME).attribute` of the product."""
    for path in modules(*PACKAGES):
        if "import_module(" in path.read_text("utf-8"):
            yield from late_imports_of(tree_of(path))


def late_imports_of(tree: ast.Module) -> Iterator[tuple[str, str]]:
    """Return those whose module is a constant of their own one."""
    names = {
        target.id: statement.value.value
        for statement in tree.body
        if isinstance(statement, ast.Assign)
        and isinstance(statement.value, ast.Constant)
        and isinstance(statement.value.value, str)
        for target in statement.targets
        if isinstance(target, ast.Name)
    }
    for node in ast.walk(tree):
        match node:
            case ast.Attribute(
                value=ast.Call(
                    func=ast.Attribute(attr="import_module"), args=[ast.Name(id=name)]
                ),
                attr=attribute,
            ) if name in names:
                yield names[name], attribute
            case _:
                pass


@pytest.mark.parametrize(("module", "attribute"), sorted(set(late_imports())))
def test_what_is_imported_late_is_there(module: str, attribute: str) -> None:
    assert hasattr(importlib.import_module(module), attribute)


def test_late_imports_are_found() -> None:
    assert len(set(late_imports())) > 10
