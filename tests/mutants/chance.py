"""Mistakes at random lines: what could go wrong in a line, made of its syntax tree.

Left out is what no test can see or need not: types, docstrings, `__all__`, what is
written to the log and whether it is, the words of errors and of help, how metrics are
described, and numbers that were chosen and have a name.
"""

from __future__ import annotations

import ast
import random  # noqa: TID251  only those with a seed are used
import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

SWAPPED: dict[type[ast.cmpop], str] = {
    ast.Lt: "<=",
    ast.LtE: "<",
    ast.Gt: ">=",
    ast.GtE: ">",
    ast.Eq: "!=",
    ast.NotEq: "==",
    ast.Is: "is not",
    ast.IsNot: "is",
    ast.In: "not in",
    ast.NotIn: "in",
}

LOGGED = {"debug", "info", "warning", "error", "exception", "fault"}
ENCODED = ("open", "read_text", "write_text")
DESCRIBED = {"counter", "gauge", "histogram", "TypeVar", "NewType"}
WORDED = {"help", "short_help", "metavar", "epilog"}
"""Arguments with the words of a command's help."""

HIDDEN = {"__all__", "__slots__", "__repr__", "__str__"}
DEFAULTS = {
    *((function, "encoding", "'utf-8'") for function in ENCODED),
    ("zip", "strict", "True"),
    ("run", "check", "False"),
    ("dataclass", "frozen", "True"),
    ("dataclass", "kw_only", "True"),
}
"""Function, argument, value: what holds without, or in a program without a mistake.

That nobody assigns to what is frozen, and that arguments are named, is what the type
checkers look at."""

MUCH = 60
"""From here on a number is a time or a bound that one more does not change."""

IS_FOR_TYPES = "TYPE_CHECKING"


class Slip(NamedTuple):
    """One mistake, and where it stands."""

    file: str
    """From the root of the repository."""

    lines: tuple[int, ...]
    """Of the expression; a test that runs one of them may find the mistake."""

    kind: str
    start: int
    end: int
    """Bytes of the file that it replaces."""

    after: str
    name: str
    """What the line gives a value to, outside of functions; empty inside of them."""

    inside: tuple[str, ...] = ()
    """The classes and functions that it stands in."""

    def make(self, text: bytes) -> bytes:
        """Give the text of the file with the mistake in it."""
        return text[: self.start] + self.after.encode() + text[self.end :]

    def shown(self, text: bytes) -> str:
        """Show the mistake in one line."""
        where = f"{self.file}:{self.lines[0]} {self.kind}: "
        if self.start == self.end:  # it stands before a statement
            return f"{where}`{text[self.start :].decode().splitlines()[0]}`"
        before = " ".join(text[self.start : self.end].decode().split())
        return f"{where}`{before}` → `{' '.join(self.after.split())}`"


def draw(root: Path, under: str, count: int, dice: random.Random) -> list[Slip]:
    """Draw lines below a path, and one mistake for each of them."""
    found: dict[tuple[str, int], list[Slip]] = {}
    for path in sorted((root / under).rglob("*.py") if under else product(root)):
        file = path.relative_to(root).as_posix()
        for slip in slips(file, path.read_bytes()):
            found.setdefault((file, slip.lines[0]), []).append(slip)
    places = dice.sample(sorted(found), min(count, len(found)))
    return [dice.choice(found[place]) for place in places]


def product(root: Path) -> Iterator[Path]:
    """Go through the modules of the program."""
    for package in ("runtime", "actors", "connectors"):
        yield from (root / package).rglob("*.py")


def slips(file: str, text: bytes) -> list[Slip]:
    """List the mistakes that one could make in a file; each is still a program."""
    finder = Finder(file, text)
    finder.visit(ast.parse(text))
    return finder.found


class Finder(ast.NodeVisitor):
    """Goes through a file and notes what could be mistaken."""

    def __init__(self, file: str, text: bytes) -> None:
        self.found: list[Slip] = []
        self._file = file
        self._text = text
        ends = [each.end() for each in re.finditer(rb"\n", text)]
        self._begin = [0, *ends]
        self._name = ""
        self._depth = 0
        self._inside: tuple[str, ...] = ()

    # -- what is left out

    def visit_JoinedStr(self, node: ast.JoinedStr) -> None:
        """Places inside of them are not known before Python 3.12."""

    def visit_Raise(self, node: ast.Raise) -> None:
        """The words of an error."""

    def visit_Assert(self, node: ast.Assert) -> None:
        """For type checkers only."""

    def visit_arguments(self, node: ast.arguments) -> None:
        """Look at the values that are given if none is, not at types."""
        for each in (*node.defaults, *node.kw_defaults):
            if each is not None and not is_chosen(each):
                self.visit(each)

    def visit_AnnAssign(self, node: ast.AnnAssign) -> None:
        """Look at the value, not at the type."""
        if node.value is not None:
            self._assigned(node.target, node.value)

    def visit_Assign(self, node: ast.Assign) -> None:
        """Look at the value."""
        self._assigned(node.targets[0], node.value)

    def _assigned(self, target: ast.expr, value: ast.expr) -> None:
        name = target.id if isinstance(target, ast.Name) else ""
        if name in HIDDEN or (not self._depth and is_chosen(value)):
            return
        before = self._name
        if not self._depth:
            self._name = name
        self.visit(value)
        self._name = before

    # -- statements

    def visit_FunctionDef(self, node: ast.FunctionDef | ast.AsyncFunctionDef) -> None:
        """Look at what the function does."""
        if node.name in HIDDEN:
            return
        outside, self._inside = self._inside, (*self._inside, node.name)
        self.visit(node.args)
        self._depth += 1
        body = node.body[1:] if ast.get_docstring(node) else node.body
        for each in body:
            self.visit(each)
        while body and is_silent(body[-1]):
            body = body[:-1]
        for each in body[1:]:
            if not isinstance(each, ast.Return | ast.Raise | ast.Pass):
                start = self._start(each)
                indent = " " * each.col_offset
                self._add(each, "early return", f"return\n{indent}", start, start)
        self._depth -= 1
        self._inside = outside

    def visit_AsyncFunctionDef(self, node: ast.AsyncFunctionDef) -> None:
        """Look at what the function does."""
        self.visit_FunctionDef(node)

    def visit_ClassDef(self, node: ast.ClassDef) -> None:
        """Look at what the class has."""
        outside, self._inside = self._inside, (*self._inside, node.name)
        self.generic_visit(node)
        self._inside = outside

    def visit_If(self, node: ast.If) -> None:
        """Turn a condition round, unless it is about types or log lines alone."""
        if not (ast.unparse(node.test).endswith(IS_FOR_TYPES) or is_silent(node)):
            self._negate(node.test)
            self.generic_visit(node)

    def visit_While(self, node: ast.While) -> None:
        """Turn a condition round."""
        self._negate(node.test)
        self.generic_visit(node)

    def visit_IfExp(self, node: ast.IfExp) -> None:
        """Turn a condition round."""
        self._negate(node.test)
        self.generic_visit(node)

    def visit_comprehension(self, node: ast.comprehension) -> None:
        """Turn conditions round."""
        for each in node.ifs:
            self._negate(each)
        self.generic_visit(node)

    def _negate(self, test: ast.expr) -> None:
        if not isinstance(test, ast.Constant | ast.UnaryOp):
            self._add(test, "negation", f"(not ({ast.unparse(test)}))")

    def visit_Expr(self, node: ast.Expr) -> None:
        """Leave out a call."""
        value = node.value
        call = value.value if isinstance(value, ast.Await) else value
        if isinstance(call, ast.Call) and not said_only(call):
            self._add(node, "deleted call", "pass")
        self.generic_visit(node)

    def visit_Return(self, node: ast.Return) -> None:
        """Go on instead of returning, or return something else."""
        value = node.value
        if value is None:
            self._add(node, "removed return", "pass")
        elif isinstance(value, ast.Constant) and isinstance(value.value, bool):
            self._add(value, "return value", str(not value.value))
        elif not (isinstance(value, ast.Constant) and value.value is None):
            self._add(node, "return value", "return None")
        self.generic_visit(node)

    # -- expressions

    def visit_Compare(self, node: ast.Compare) -> None:
        """Compare otherwise."""
        if len(node.ops) == 1:
            left, right = ast.unparse(node.left), ast.unparse(node.comparators[0])
            swapped = SWAPPED[type(node.ops[0])]
            self._add(node, "comparison", f"({left} {swapped} {right})")
        self.generic_visit(node)

    def visit_BoolOp(self, node: ast.BoolOp) -> None:
        """Take one for the other."""
        word = " or " if isinstance(node.op, ast.And) else " and "
        parts = word.join(f"({ast.unparse(each)})" for each in node.values)
        self._add(node, "and/or", f"({parts})")
        self.generic_visit(node)

    def visit_UnaryOp(self, node: ast.UnaryOp) -> None:
        """Forget a `not`."""
        if isinstance(node.op, ast.Not):
            self._add(node, "negation", f"({ast.unparse(node.operand)})")
        self.generic_visit(node)

    def visit_Call(self, node: ast.Call) -> None:
        """Forget an argument."""
        if said_only(node):
            return
        for place, each in enumerate(node.keywords):
            if each.arg is not None and not is_default(node, each):
                keywords = [*node.keywords[:place], *node.keywords[place + 1 :]]
                shorter = ast.Call(node.func, node.args, keywords)
                self._add(node, "dropped argument", ast.unparse(shorter))
        if len(node.args) > 1 and not isinstance(node.args[-1], ast.Starred):
            shorter = ast.Call(node.func, node.args[:-1], node.keywords)
            self._add(node, "dropped argument", ast.unparse(shorter))
        self.generic_visit(node)

    def visit_Constant(self, node: ast.Constant) -> None:
        """Be off by one; nobody could notice that in what is long or much anyway."""
        value = node.value
        if isinstance(value, bool) or not isinstance(value, int | float):
            return
        if abs(value) < MUCH:
            self._add(node, "constant", str(value + 1))

    # -- where it stands

    def _add(
        self,
        node: ast.expr | ast.stmt,
        kind: str,
        after: str,
        start: int | None = None,
        end: int | None = None,
    ) -> None:
        last = node.end_lineno or node.lineno
        header = isinstance(node, ast.expr) or start is None
        self.found.append(
            Slip(
                file=self._file,
                lines=tuple(
                    range(node.lineno, last + 1 if header else node.lineno + 1)
                ),
                kind=kind,
                start=self._start(node) if start is None else start,
                end=self._end(node) if end is None else end,
                after=after,
                name="" if self._depth else self._name or "?",
                inside=self._inside,
            )
        )

    def _start(self, node: ast.expr | ast.stmt) -> int:
        return self._begin[node.lineno - 1] + node.col_offset

    def _end(self, node: ast.expr | ast.stmt) -> int:
        assert node.end_lineno
        assert node.end_col_offset is not None
        return self._begin[node.end_lineno - 1] + node.end_col_offset


def is_chosen(value: ast.expr) -> bool:
    """Tell whether a bound, a time-out or a default was chosen: `MOST_TRIES = 3`.

    A test of the rule takes the number by its name. Zero and one are no choice, but
    what is measured is, also one of it: `SOON = 0.1`, `LOOK_EVERY = 1.0`. Also
    `4 * 1024` is one number.
    """
    if isinstance(value, ast.BinOp) and isinstance(value.op, ast.Mult):
        return is_chosen(value.left) and is_chosen(value.right)
    number = value.value if isinstance(value, ast.Constant) else None
    is_measured = isinstance(number, float)
    return (
        isinstance(number, int | float) and number > 0 and (number != 1 or is_measured)
    )


def is_silent(statement: ast.stmt) -> bool:
    """Tell whether a statement at the end of a function does nothing anybody sees."""
    if isinstance(statement, ast.If):
        return all(is_silent(each) for each in (*statement.body, *statement.orelse))
    if isinstance(statement, ast.Expr):
        value = statement.value
        is_call = isinstance(value, ast.Call) and said_only(value)
        return is_call or isinstance(value, ast.Constant)
    names = statement.targets if isinstance(statement, ast.Delete) else []
    is_del = bool(names) and all(isinstance(each, ast.Name) for each in names)
    return is_del or isinstance(statement, ast.Assert | ast.Pass)


def is_default(call: ast.Call, given: ast.keyword) -> bool:
    """Tell whether an argument does nothing: it says what holds anyway, or helps."""
    function = ast.unparse(call.func).split(".")[-1]
    return (
        given.arg in WORDED
        or (function, given.arg, ast.unparse(given.value)) in DEFAULTS
        or (function == "start_soon" and given.arg == "name")
    )


def said_only(call: ast.Call) -> bool:
    """Tell whether a call only writes to the log, describes, or is for types."""
    function = call.func
    if isinstance(function, ast.Attribute):
        return function.attr in LOGGED | DESCRIBED or is_wording(call)
    return isinstance(function, ast.Name) and function.id in {
        *DESCRIBED,
        "assert_never",
        "cast",
    }


def is_wording(call: ast.Call) -> bool:
    """Tell whether a call gives an error its words: `super().__init__(f"…")`.

    Or nothing at all: what actors have in common does nothing when one is made.
    """
    base = call.func.value if isinstance(call.func, ast.Attribute) else None
    is_super = isinstance(base, ast.Call) and ast.unparse(base) == "super()"
    is_empty = ast.unparse(call) == "super().__init__()"
    return is_empty or (
        is_super and any(isinstance(each, ast.JoinedStr) for each in call.args)
    )
