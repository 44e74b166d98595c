"""Carries out what `docs/where-to-change-what.md` says, on a copy of the code.

A block of code there follows a line that says where it goes:

- "New file `path`": the whole file;
- "In `path`, in `NAME`": the last entry of a table, a union, a class or a function;
- "In `path`, before `NAME`": in front of it; "and in `NAME`": in the same file;
- "In `path`, in `[table]`": at the top of a TOML table.

Imports at the beginning of a block go to the top of the file.
"""

from __future__ import annotations

import ast
import re
import shutil
from pathlib import Path
from typing import NamedTuple

from tests.support.readme import ROOT

PAGE = ROOT / "docs" / "where-to-change-what.md"
BLOCK = re.compile(
    r"^(New file|In|and in) `([^`]+)`(.*?)\n\n```\w+\n(.*?)^```$",
    re.MULTILINE | re.DOTALL,
)
PLACE = re.compile(r", (in|before) `([^`]+)`")
PARTS = ("runtime", "actors", "connectors", "config")


class Addition(NamedTuple):
    """One block of the page, and where it goes."""

    path: str
    where: str
    """`new`, `in` or `before`."""

    name: str
    text: str


def additions(page: str) -> list[Addition]:
    """Read the blocks of the page, in its order."""
    found: list[Addition] = []
    for verb, first, rest, text in BLOCK.findall(page):
        if verb == "New file":
            found.append(Addition(first, "new", "", text))
        elif verb == "and in":
            found.append(Addition(found[-1].path, "in", first, text))
        else:
            place = PLACE.match(rest)
            assert place, f"where in {first}?"
            found.append(Addition(first, place[1], place[2], text))
    return found


def copy_with_additions(folder: Path) -> Path:
    """Copy the program into a folder, and add all that the page shows."""
    for part in PARTS:
        shutil.copytree(ROOT / part, folder / part)
    for addition in additions(PAGE.read_text(encoding="utf-8")):
        path = folder / addition.path
        before = path.read_text(encoding="utf-8") if path.exists() else ""
        path.write_text(added(before, addition), encoding="utf-8")
    return folder


def added(before: str, addition: Addition) -> str:
    """Put one block into the text of its file."""
    if addition.where == "new":
        assert not before, f"{addition.path} is there already"
        return addition.text
    lines = before.splitlines(keepends=True)
    if addition.name.startswith("["):
        at = lines.index(f"{addition.name}\n") + 1
        return "".join([*lines[:at], addition.text, *lines[at:]])
    block = addition.text.splitlines(keepends=True)
    imports = [line for line in block if line.startswith(("from ", "import "))]
    rest = [line for line in block if line not in imports]
    tree = ast.parse(before)
    node = find(tree, addition.name)
    at = place_of(node, is_before=addition.where == "before")
    lines[at:at] = [*rest, "\n"] if addition.where == "before" else rest
    future = "from __future__ import annotations\n"
    # Modules of settings do without it: there, imports follow the docstring.
    top = lines.index(future) + 1 if future in lines else tree.body[0].end_lineno
    lines[top:top] = imports
    return "".join(lines)


def find(tree: ast.Module | ast.ClassDef, name: str) -> ast.stmt:
    """Find a table, class or function by its name; `Class.method` is one, too."""
    first, _, rest = name.partition(".")
    for node in tree.body:
        match node:
            case ast.ClassDef(name=found) if found == first and rest:
                return find(node, rest)
            case ast.ClassDef(name=found) | ast.FunctionDef(name=found):
                names = [found]
            case ast.Assign(targets=targets):
                names = [each.id for each in targets if isinstance(each, ast.Name)]
            case ast.AnnAssign(target=ast.Name(id=found)):
                names = [found]
            case _:
                names = []
        if first in names:
            return node
    raise AssertionError(f"there is no {name}")


def place_of(node: ast.stmt, *, is_before: bool) -> int:
    """Give the line in front of which a block goes, counted from 0."""
    if is_before:
        return node.lineno - 1
    assert node.end_lineno is not None
    match node:
        case ast.Assign() | ast.AnnAssign():  # in front of the closing bracket
            return node.end_lineno - 1
        case _:
            return node.end_lineno
