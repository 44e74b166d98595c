"""What is imported by its name, only when it is needed, is there."""

from __future__ import annotations

import ast
import importlib
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).parents[2]
FLOORS = ("runtime", "actors", "connectors")


def late_imports() -> Iterator[tuple[str, str]]:
    """Return each `import_module(NAME).attribute` of the product."""
    for floor in FLOORS:
        for file in sorted((ROOT / floor).rglob("*.py")):
            text = file.read_text()
            if "import_module(" in text:
                yield from in_module(ast.parse(text))


def in_module(tree: ast.Module) -> Iterator[tuple[str, str]]:
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
def test_it_is_there(module: str, attribute: str) -> None:
    assert hasattr(importlib.import_module(module), attribute)


def test_they_are_found() -> None:
    assert len(set(late_imports())) > 10
