"""Marks each block of the program, so that one sees which of them a test runs.

A block is what runs from its first statement to its last, unless an error is raised: a
function's body up to the first branch, each branch, and what follows it. Its first
statement sets a byte of the module. That costs next to nothing, where to follow each
line makes tests three times as slow.

A block is named by its function and its line there, so that what was noted stays true
while other functions change.
"""

from __future__ import annotations

import ast
import sys
from bisect import bisect_right
from collections.abc import Sequence
from importlib.machinery import ModuleSpec, PathFinder, SourceFileLoader
from pathlib import Path
from types import CodeType, ModuleType
from typing import Any, NamedTuple

PRODUCT = ("runtime", "actors", "connectors")

MARKS = "__ran__"
"""The name of the bytes in each module."""

BRANCHING = (
    *(ast.If, ast.For, ast.AsyncFor, ast.While, ast.With, ast.AsyncWith),
    *(ast.Try, ast.Match),
)


class Block(NamedTuple):
    """Where a block begins."""

    function: str
    """With the classes and functions that it stands in: `Mailbox.put`."""

    line: int
    """Counted from the line of the `def`."""


class Blocks(ast.NodeTransformer):
    """Marks the blocks of a module's functions, and lists them."""

    def __init__(self) -> None:
        self.found: list[Block] = []
        self.lines: list[int] = []
        """Where each begins in the file."""

        self._inside: tuple[str, ...] = ()
        self._first = 0

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.FunctionDef:
        """Mark the blocks of a function."""
        self._function(node)
        return node

    def visit_AsyncFunctionDef(
        self, node: ast.AsyncFunctionDef
    ) -> ast.AsyncFunctionDef:
        """Mark the blocks of a function."""
        self._function(node)
        return node

    def visit_ClassDef(self, node: ast.ClassDef) -> ast.ClassDef:
        """Mark the blocks of its functions."""
        outside, self._inside = self._inside, (*self._inside, node.name)
        self.generic_visit(node)
        self._inside = outside
        return node

    def _function(self, node: ast.FunctionDef | ast.AsyncFunctionDef) -> None:
        outside = self._inside, self._first
        self._inside, self._first = (*self._inside, node.name), node.lineno
        has_docstring = ast.get_docstring(node, clean=False) is not None
        head = node.body[:1] if has_docstring else []
        node.body = [*head, *self._marked(node.body[len(head) :])] or node.body
        self._inside, self._first = outside

    def _marked(self, body: Sequence[ast.stmt]) -> list[ast.stmt]:
        marked: list[ast.stmt] = []
        for place, each in enumerate(body):
            if not place or isinstance(body[place - 1], BRANCHING):
                marked.append(self._mark(each))
            marked.append(self.visit(each))
        return marked

    def generic_visit(self, node: ast.AST) -> ast.AST:
        """Mark the branches of a statement."""
        if not isinstance(node, (*BRANCHING, ast.ExceptHandler, ast.match_case)):
            return super().generic_visit(node)
        for name in ("body", "orelse", "finalbody"):
            branch: list[ast.stmt] = getattr(node, name, [])
            if branch:
                marked = (
                    self._marked(branch) if self._first else map(self.visit, branch)
                )
                setattr(node, name, [*marked])
        parts: list[ast.AST] = [
            *getattr(node, "handlers", ()),
            *getattr(node, "cases", ()),
        ]
        for each in parts:
            self.visit(each)
        return node

    def _mark(self, before: ast.stmt) -> ast.stmt:
        number = len(self.found)
        inside = ".".join(self._inside)
        self.found.append(Block(inside, before.lineno - self._first))
        self.lines.append(before.lineno)
        mark = ast.parse(f"{MARKS}[{number}] = 1").body[0]
        for each in ast.walk(mark):
            ast.copy_location(each, before)
        return mark


def blocks_of(text: bytes) -> Blocks:
    """List the blocks of a file."""
    found = Blocks()
    found.visit(ast.parse(text))
    return found


def block_at(blocks: Blocks, line: int, inside: str) -> Block | None:
    """Find the block of a function that a line of the file is in."""
    starts = sorted(
        (start, each)
        for start, each in zip(blocks.lines, blocks.found, strict=True)
        if not inside or each.function == inside
    )
    place = bisect_right(starts, line, key=lambda each: each[0])
    return starts[max(0, place - 1)][1] if starts else None


class Marking(SourceFileLoader):
    """Loads a module of the program with its blocks marked."""

    def __init__(self, name: str, path: str, marks: Marks) -> None:
        super().__init__(name, path)
        self._marks = marks

    def get_code(self, fullname: str) -> CodeType:
        """Compile the module; what Python keeps of it has no marks."""
        path = Path(self.get_filename(fullname))
        blocks = Blocks()
        tree = blocks.visit(ast.parse(path.read_bytes()))
        self._marks.note(path, blocks.found)
        code: CodeType = compile(tree, path, "exec", dont_inherit=True)
        return code

    def exec_module(self, module: ModuleType) -> None:
        """Give the module its bytes, and run it."""
        path = Path(self.get_filename(module.__name__))
        code = self.get_code(module.__name__)
        setattr(module, MARKS, self._marks.ran[path])
        exec(code, module.__dict__)  # noqa: S102  it is the program


class Marks:
    """Knows which blocks ran.

    Args:
        root: of the program; what is imported from now on is marked.
    """

    def __init__(self, root: Path) -> None:
        self._root = root
        self.ran: dict[Path, bytearray] = {}
        self._blocks: dict[Path, list[Block]] = {}
        sys.meta_path.insert(0, self)

    def find_spec(
        self, name: str, path: Sequence[str] | None, target: Any = None
    ) -> ModuleSpec | None:
        """Find a module of the program; others are for those who come next."""
        if name.split(".", maxsplit=1)[0] not in PRODUCT:
            return None
        spec = PathFinder.find_spec(name, path, target)
        if spec and spec.origin and isinstance(spec.loader, SourceFileLoader):
            spec.loader = Marking(name, spec.origin, self)
        return spec

    def note(self, path: Path, blocks: list[Block]) -> None:
        """Take in the blocks of a module."""
        self._blocks[path] = blocks
        self.ran.setdefault(path, bytearray(len(blocks)))

    def take(self) -> dict[str, set[Block]]:
        """Give the blocks that ran since this was asked last, by file."""
        found: dict[str, set[Block]] = {}
        for path, ran in self.ran.items():
            if any(ran):
                file = path.relative_to(self._root).as_posix()
                blocks = self._blocks[path]
                found[file] = {blocks[at] for at, byte in enumerate(ran) if byte}
                ran[:] = bytes(len(ran))
        return found
