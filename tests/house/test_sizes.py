"""Proves that folders stay small, and that small modules and files only get fewer.

A module may be as long as its subject. `tests/conftest.py` prints those that are long
enough for a look.
"""

from __future__ import annotations

import ast
import re
from collections import Counter, defaultdict

from tests.house.test_house import (
    CODE,
    PACKAGES,
    all_files,
    modules,
    name_of,
    statements,
    tree_of,
)

MOST_ENTRIES = 20
"""Files and folders in one folder."""

# Folders whose entries are one line per subject.
ROOTS = {"actors": 30, "connectors/chat": 21, "connectors/commands": 35}

MARKERS = {"py.typed"}
"""Files that only say something of their folder."""

MOST_FILES = 636
"""Python files of the product; may only fall."""

MOST_IMPORTS = 7_775
"""Import statements of the product, those for types too; may only fall."""

IMPORT = re.compile(r"^ *(?:from [\w.]+ import |import [\w.]+)", re.MULTILINE)

MOST_SMALL_MODULES = 14
"""Modules under `SMALL` lines of code that one other module imports; may only fall."""

SMALL = 60


def entries() -> Counter[str]:
    """Count the files and folders in each folder of the code."""
    found: dict[str, set[str]] = defaultdict(set)
    for path in all_files():
        parts = name_of(path).split("/")
        if parts[-1] in MARKERS:
            continue
        for depth in range(1, len(parts)):
            found["/".join(parts[:depth])].add(parts[depth])
    return Counter(
        {
            folder: len(names)
            for folder, names in found.items()
            if folder.split("/")[0] in CODE
        }
    )


def lines_of_code(source: str) -> int:
    """Count the lines that are neither empty, comment nor docstring."""
    prose = {
        line
        for node in statements(ast.parse(source))
        if isinstance(node, ast.Expr)
        and isinstance(node.value, ast.Constant)
        and isinstance(node.value.value, str)
        for line in range(node.lineno, (node.end_lineno or node.lineno) + 1)
    }
    return sum(
        bool(line.strip()) and not line.strip().startswith("#") and number not in prose
        for number, line in enumerate(source.splitlines(), 1)
    )


def dotted(name: str) -> str:
    """Give the module's name as an import says it."""
    return name.removesuffix(".py").replace("/", ".").removesuffix(".__init__")


def imported_by(tree: ast.Module) -> set[str]:
    """Give all that a module imports, and what might be a module among it."""
    found: set[str] = set()
    for node in statements(tree):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            found |= {f"{node.module}.{alias.name}" for alias in node.names}
            found.add(node.module)
    return found


def small_modules() -> list[str]:
    """Name the small modules that belong into the only one that imports them."""
    product = {dotted(name_of(path)): path for path in modules(*PACKAGES)}
    importers: Counter[str] = Counter()
    for path in product.values():
        importers.update(imported_by(tree_of(path)) & product.keys())
    return [
        name
        for name, path in product.items()
        if importers[name] == 1
        and path.stem != "__init__"
        and lines_of_code(path.read_text()) < SMALL
    ]


def test_no_folder_holds_more_than_a_reader_takes_in() -> None:
    bounds = ROOTS
    too_full = {
        folder: count
        for folder, count in entries().items()
        if count > bounds.get(folder, MOST_ENTRIES)
    }
    assert not too_full, f"more than {MOST_ENTRIES} entries: {too_full}"


def test_product_files_only_get_fewer() -> None:
    assert len(modules(*PACKAGES)) <= MOST_FILES


def test_import_statements_only_get_fewer() -> None:
    # Not by the syntax tree: to parse the product takes seconds.
    found = sum(len(IMPORT.findall(p.read_text("utf-8"))) for p in modules(*PACKAGES))
    assert found <= MOST_IMPORTS


def test_an_import_is_counted_as_one_statement() -> None:
    source = "import os\nfrom a import (\n    b,\n)\nif x:\n    from c.d import e, f\n"
    assert len(IMPORT.findall(source)) == 3


def test_small_modules_of_one_importer_only_get_fewer() -> None:
    found = small_modules()
    assert len(found) <= MOST_SMALL_MODULES, found


def test_prose_and_empty_lines_are_no_code() -> None:
    assert lines_of_code('"""Says\nmore."""\n\n# why\nx = 1\n\ny = """a\nb"""\n') == 3
