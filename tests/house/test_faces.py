"""Proves that a package's face says which of its modules other packages may import.

Every package has one, in `__init__.py`: a docstring of about five lines (what the
package is, who uses it, where to begin) and `__all__`, the names of those modules. It
imports nothing, so it costs no start time and makes no circle. Whatever is not in
`__all__` is the package's own; a new file of that sort touches no list.
"""

from __future__ import annotations

import ast
from collections import defaultdict
from functools import cache
from pathlib import Path

import pytest

from tests.house.test_house import PACKAGES, ROOT, modules, statements, tree_of

WITH_CODE = {
    "runtime",
    "connectors",
    "connectors.commands",
    "connectors.web.page.views",
}
"""Packages with code in `__init__.py`: lists of what is loaded late."""


def folder(package: str) -> Path:
    return ROOT / Path(*package.split("."))


def face(package: str) -> ast.Module:
    return tree_of(folder(package) / "__init__.py")


@cache
def is_module(package: str, name: str) -> bool:
    path = folder(package) / name
    return path.is_dir() or path.with_suffix(".py").exists()


def shown(package: str) -> list[str]:
    """Give what stands in a package's `__all__`."""
    for node in face(package).body:
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__":
            return list(ast.literal_eval(node.value))
    return []


@cache
def packages() -> tuple[str, ...]:
    """Name all packages whose faces hold nothing else."""
    inits = (path for x in PACKAGES for path in modules(x) if path.stem == "__init__")
    found = (".".join(path.relative_to(ROOT).parent.parts) for path in inits)
    return tuple(x for x in found if x not in WITH_CODE)


def imported(tree: ast.Module) -> set[str]:
    """Name whatever a module imports, and what it takes out of it."""
    names: set[str] = set()
    for node in statements(tree):
        if isinstance(node, ast.Import):
            names.update(each.name for each in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            names.update(f"{node.module}.{each.name}" for each in node.names)
    return names


@cache
def importers() -> dict[tuple[str, str], set[str]]:
    """Give who imports which module of which package from outside of it."""
    found: dict[tuple[str, str], set[str]] = defaultdict(set)
    for path in (path for x in PACKAGES for path in modules(x)):
        for name in imported(tree_of(path)):
            package, *parts = name.split(".")
            for module in parts:
                if folder(package) not in path.parents and is_module(package, module):
                    found[package, module].add(str(path.relative_to(ROOT)))
                package = f"{package}.{module}"
    return found


@pytest.mark.parametrize("package", packages())
def test_a_face_shows_what_others_import_and_nothing_else(package: str) -> None:
    used = {module for each, module in importers() if each == package}
    hidden = {
        module: sorted(importers()[package, module])
        for module in used - set(shown(package))
    }
    assert not hidden, f"{package}.__all__ does not name what others import: {hidden}"
    assert shown(package) == sorted(used), "sorted; and no module that nobody imports"


@pytest.mark.parametrize("package", packages())
def test_a_face_says_what_the_package_is_and_imports_nothing(package: str) -> None:
    tree = face(package)
    lines = (ast.get_docstring(tree) or "").splitlines()
    assert 3 <= len(lines) <= 12, (
        "about five lines: what it is, who uses it, begin where"
    )
    allowed = (ast.Expr, ast.Assign)
    assert all(isinstance(node, allowed) for node in tree.body), "nothing else is in it"
